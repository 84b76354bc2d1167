//! Source of descriptors: files or the server.

use thalweg::Channel;
use thalweg_dynamic::{Catalogue, Reflection, ReflectionLimits, metadata};

use super::arguments::CallArgs;
use super::connecting::Connecting;
use crate::failure::Failure;
use crate::terminal;

/// Returns the files' descriptors. Without files, connects to the server and uses its descriptors.
pub(super) async fn of(
    files: Option<Catalogue>,
    connecting: Option<Connecting>,
    args: &CallArgs,
) -> Result<Catalogue, Failure> {
    match (files, connecting) {
        (Some(files), _) => Ok(files),
        (None, Some(connecting)) => Ok(of_server(&connecting.connect().await?, args)),
        (None, None) => {
            Err(Failure::bad_arguments("missing target or descriptors; add a target, --proto or --protoset"))
        }
    }
}

/// Returns the server's catalogue, by reflection.
pub(super) fn of_server(channel: &Channel, args: &CallArgs) -> Catalogue {
    Catalogue::Server(Box::new(Reflection::new(
        channel.clone(),
        metadata::map(args.with.of_reflection()),
        ReflectionLimits::with_response_timeout(args.connect_timeout),
    )))
}

/// Loads the descriptors of all services.
pub(super) async fn fetch_all(catalogue: &mut Catalogue) -> Result<(), Failure> {
    for name in catalogue.services().await.map_err(Failure::failed)? {
        if !catalogue.has(&name).await.map_err(Failure::failed)? {
            terminal::note(&format!("the server has no descriptors of {name}"));
        }
    }
    Ok(())
}
