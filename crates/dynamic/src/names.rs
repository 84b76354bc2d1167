//! Completion of names: of services, methods, and what else a schema declares.

use thalweg_protobuf::{Schema, Service};

use crate::catalogue::Catalogue;
use crate::message;

/// Of more services than these that may be meant, the names come without their methods: those take a question to the
/// server for each.
const SERVICES_OPENED_MAX: usize = 12;

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// `package.Service/Method`; of many services those, with a slash.
    Method,
    /// `package.Service`.
    Service,
    /// Anything that is declared.
    Symbol,
}

/// Returns the names of this kind that start with `typed`, as far as the catalogue knows them.
pub async fn completions(catalogue: &mut Catalogue, kind: NameKind, typed: &str) -> Vec<String> {
    let (service, is_method) = match typed.rsplit_once('/') {
        Some((service, _)) => (service, true),
        None => (typed, false),
    };
    let is_meant = |name: &String| match kind {
        // A type may lie beside any of them.
        NameKind::Symbol => true,
        _ if is_method => name == service,
        _ => name.starts_with(service),
    };
    let services: Vec<String> =
        catalogue.services().await.unwrap_or_default().into_iter().filter(is_meant).collect();
    if kind == NameKind::Service {
        return services;
    }
    let mut names = Vec::new();
    let is_opened = services.len() <= SERVICES_OPENED_MAX;
    for name in &services {
        if !is_opened {
            names.push(format!("{name}/"));
        } else if let Ok(Some(schema)) = catalogue.schema_of(name).await
            && let Some(service) = schema.service(name)
        {
            names.extend(methods(service));
        }
    }
    if kind == NameKind::Symbol {
        names.extend(services);
        names.extend(declared(catalogue));
    }
    names.retain(|name| name.starts_with(typed));
    names.sort_unstable();
    names.dedup();
    names
}

fn methods(service: Service<'_>) -> impl Iterator<Item = String> {
    service.methods().map(|method| method.path().trim_start_matches('/').to_owned())
}

/// Messages and enums of which the descriptors are there.
fn declared(catalogue: &Catalogue) -> Vec<String> {
    let Ok(schema) = Schema::from_descriptor_set(&catalogue.descriptor_set()) else { return Vec::new() };
    let messages = message::declared(&schema).map(|message| message.full_name().to_owned());
    messages.chain(schema.enumerations().map(|declared| declared.full_name().to_owned())).collect()
}
