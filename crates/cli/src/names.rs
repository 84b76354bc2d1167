//! Names that may come next on a command line: of services, methods, and what else a schema declares.

use thalweg_dynamic::Catalogue;
use thalweg_protobuf::Service;

/// Of more services than these that may be meant, the names come without their methods: those take a question to the
/// server for each.
const SERVICES_OPENED_MAX: usize = 12;

/// What is wanted in a place of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `package.Service/Method`; of many services those, with a slash.
    Method,
    Service,
    /// What `describe` takes.
    Symbol,
}

/// The names that begin with `typed`.
pub(crate) async fn beginning(catalogue: &mut Catalogue, place: Place, typed: &str) -> Vec<String> {
    let (service, is_method) = match typed.rsplit_once('/') {
        Some((service, _)) => (service, true),
        None => (typed, false),
    };
    let is_meant = |name: &String| match place {
        // A type may lie beside any of them.
        Place::Symbol => true,
        _ if is_method => name == service,
        _ => name.starts_with(service),
    };
    let services: Vec<String> =
        catalogue.services().await.unwrap_or_default().into_iter().filter(is_meant).collect();
    if place == Place::Service {
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
    if place == Place::Symbol {
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
    let Ok(schema) = thalweg_protobuf::Schema::from_descriptor_set(&catalogue.descriptor_set()) else {
        return Vec::new();
    };
    let messages = schema.messages().filter(|message| !message.is_map_entry());
    let messages = messages.map(|message| message.full_name().to_owned());
    messages.chain(schema.enumerations().map(|declared| declared.full_name().to_owned())).collect()
}
