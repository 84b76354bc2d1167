//! The page at `/`, which lists what a server offers.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};

use super::config::{PageOptions, Protocols};
use super::context::Context;

/// Returns the page as text and as JSON.
pub(super) fn front(context: &Context, protocols: Protocols, pages: PageOptions) -> (Bytes, Bytes) {
    let server = concat!("Thalweg ", env!("CARGO_PKG_VERSION"));
    let (protocols, pages) = (protocol_names(protocols), page_paths(pages));
    let mut text = format!("Services of this server ({server}):\n");
    let mut services = serde_json::Map::new();
    for service in context.methods.services() {
        let methods = context.methods.methods_of(service);
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {service}");
        for (name, call_type) in &methods {
            let _ = writeln!(text, "    {name} ({call_type})");
        }
        let methods = methods.into_iter().map(|(name, call_type)| (name.to_owned(), call_type.into()));
        services.insert(service.to_owned(), Value::Object(methods.collect()));
    }
    let _ = writeln!(text, "Protocols: {}", protocols.join(", "));
    if !pages.is_empty() {
        let _ = writeln!(text, "Pages: {}", pages.join(", "));
    }
    let json = json!({ "server": server, "services": services, "protocols": protocols, "pages": pages });
    (text.into(), json.to_string().into())
}

fn protocol_names(protocols: Protocols) -> Vec<&'static str> {
    let all = [
        ("gRPC", true),
        ("gRPC-Web", protocols.grpc_web),
        ("Connect", protocols.connect),
        ("JSON over HTTP", protocols.transcoding),
    ];
    enabled(all)
}

fn page_paths(pages: PageOptions) -> Vec<&'static str> {
    enabled([("/docs", pages.docs), ("/openapi.json", pages.openapi)])
}

fn enabled<const N: usize>(all: [(&'static str, bool); N]) -> Vec<&'static str> {
    all.into_iter().filter_map(|(name, is_on)| is_on.then_some(name)).collect()
}
