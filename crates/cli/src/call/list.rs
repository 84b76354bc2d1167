//! `thalweg call list`.

use std::process::ExitCode;

use thalweg_dynamic::Catalogue;
use thalweg_dynamic::no_service;
use thalweg_protobuf::printable;

use super::printer;
use crate::failure::Failure;

/// Prints the services, or the methods of one: a name a line.
pub(super) async fn run(catalogue: &mut Catalogue, service: Option<&str>) -> Result<ExitCode, Failure> {
    let Some(name) = service else {
        let names = catalogue.services().await.map_err(Failure::failed)?;
        printer::lines(names.iter().map(|name| printable::line(name).into_owned()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let schema = catalogue.schema_of(name).await.map_err(Failure::failed)?;
    let service = schema.as_ref().and_then(|schema| schema.service(name));
    let Some(service) = service else { return Err(no_service(catalogue, name).await.into()) };
    printer::lines(service.methods().map(|method| method.path().trim_start_matches('/').to_owned()))?;
    Ok(ExitCode::SUCCESS)
}
