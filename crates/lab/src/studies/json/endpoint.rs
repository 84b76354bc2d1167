//! Endpoints: servers with protocols, and their names.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::echo::{Protocol, Shape};
use crate::stack::{Stack, VIEWS};

/// Variant of our server without JSON on its port.
pub(super) const GRPC_ONLY: &str = "grpc-alone";

/// A stack's server, called over a protocol. The client is always ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// Stack of the server.
    pub stack: Stack,
    /// Protocol of the calls.
    pub protocol: Protocol,
}

impl Endpoint {
    /// Returns gRPC at our server, the reference of all comparisons.
    pub(crate) fn reference() -> Self {
        Self { stack: Stack::ours(), protocol: Protocol::Grpc }
    }

    /// Returns our server over this protocol.
    pub(crate) fn ours(protocol: Protocol) -> Self {
        Self { stack: Stack::ours(), protocol }
    }

    /// Returns gRPC at our server on a port without JSON.
    pub(crate) fn grpc_only() -> Self {
        let name = format!("{}:{GRPC_ONLY}", Stack::ours());
        Self { stack: name.parse().expect("the name is a constant"), protocol: Protocol::Grpc }
    }

    /// Returns our server with handlers that take views, over this protocol.
    pub(crate) fn views(protocol: Protocol) -> Self {
        let name = format!("{}:{VIEWS}", Stack::ours());
        Self { stack: name.parse().expect("the name is a constant"), protocol }
    }

    /// Returns whether it is our server with handlers that take views.
    pub(crate) fn is_views(&self) -> bool {
        self.stack.is_ours() && self.stack.variant() == Some(VIEWS)
    }

    /// Returns whether the endpoint supports this message. Our server supports all; others and our views support those
    /// in the contract.
    pub(crate) fn supports(&self, shape: Shape) -> bool {
        (self.stack.is_ours() && !self.is_views()) || shape.is_in_contract()
    }

    /// Returns whether it is a JSON API, written by hand or transcoded.
    pub(crate) fn is_json_api(&self) -> bool {
        matches!(self.protocol, Protocol::JsonHttp1 | Protocol::JsonH2)
    }
}

/// Returns the endpoints of our server: every protocol, gRPC on its own port, and gRPC and JSON with views.
pub fn our_endpoints() -> Vec<Endpoint> {
    let views = [Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2].map(Endpoint::views);
    Protocol::ALL.into_iter().map(Endpoint::ours).chain([Endpoint::grpc_only()]).chain(views).collect()
}

/// Returns the endpoints of another server: gRPC and the protocols of its JSON address, with Connect instead of plain
/// JSON if supported. A variant is measured only for JSON, because it serves gRPC like the stack itself.
pub fn endpoints_of(stack: &Stack, speaks: &[String]) -> Vec<Endpoint> {
    let has = |word: &str| speaks.iter().any(|speaks| speaks == word);
    let (over_http1, over_h2) = if has("connect") {
        (Protocol::ConnectHttp1, Protocol::ConnectH2)
    } else {
        (Protocol::JsonHttp1, Protocol::JsonH2)
    };
    let grpc = stack.variant().is_none().then_some(Protocol::Grpc);
    let json = [(over_http1, "http1"), (over_h2, "h2")].into_iter().filter(|(_, word)| has(word));
    let protocols = grpc.into_iter().chain(json.map(|(protocol, _)| protocol));
    protocols.map(|protocol| Endpoint { stack: stack.clone(), protocol }).collect()
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.stack, self.protocol.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_servers_have_endpoints_for_their_protocols() {
        let check = |stack: &str, speaks: &str, expected: &[&str]| {
            let speaks: Vec<String> = speaks.split(' ').map(str::to_owned).collect();
            let endpoints = endpoints_of(&stack.parse().unwrap(), &speaks);
            let names: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.protocol.name()).collect();
            assert_eq!(names, expected, "{stack}");
        };
        check("axum", "http1 h2", &["grpc", "json-http1", "json-h2"]);
        check("connect-go", "http1 h2 connect grpc-web", &["grpc", "connect-http1", "connect-h2"]);
        check("grpc-gateway:inside", "http1", &["json-http1"]);
        assert_eq!(our_endpoints().len(), Protocol::ALL.len() + 4);
    }
}
