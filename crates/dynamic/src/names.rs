//! Completion of names of services, methods and other symbols.

use thalweg_protobuf::{Schema, Service};

use crate::catalogue::Catalogue;
use crate::message;

/// Maximum number of services whose methods are completed, because each needs a request to the server. Beyond it only
/// service names are returned.
const SERVICES_EXPANDED_MAX: usize = 12;

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// `package.Service/Method`. For many services, `package.Service/`.
    Method,
    /// `package.Service`.
    Service,
    /// Any declared symbol.
    Symbol,
}

/// Returns the known names of this kind that start with `typed`.
pub async fn completions(catalogue: &mut Catalogue, kind: NameKind, typed: &str) -> Vec<String> {
    let (service, is_method) = match typed.rsplit_once('/') {
        Some((service, _)) => (service, true),
        None => (typed, false),
    };
    let matches = |name: &String| match kind {
        // A type may be declared in the files of any service.
        NameKind::Symbol => true,
        _ if is_method => name == service,
        _ => name.starts_with(service),
    };
    let services: Vec<String> =
        catalogue.services().await.unwrap_or_default().into_iter().filter(matches).collect();
    if kind == NameKind::Service {
        return services;
    }
    let mut names = Vec::new();
    let is_expanded = services.len() <= SERVICES_EXPANDED_MAX;
    for name in &services {
        if !is_expanded {
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

/// Returns the messages and enums whose descriptors are known.
fn declared(catalogue: &Catalogue) -> Vec<String> {
    let Ok(schema) = Schema::from_descriptor_set(&catalogue.descriptor_set()) else { return Vec::new() };
    let messages = message::declared(&schema).map(|message| message.full_name().to_owned());
    messages.chain(schema.enumerations().map(|declared| declared.full_name().to_owned())).collect()
}
