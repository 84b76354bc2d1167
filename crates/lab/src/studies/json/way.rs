//! Ways: servers with protocols, and their names.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::echo::{Protocol, Shape};
use crate::stack::{Stack, VIEWS};

/// Variant of our server without JSON on its port.
pub(super) const GRPC_ALONE: &str = "grpc-alone";

/// A stack's server, called over a protocol. The client is always ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Way {
    /// Stack of the server.
    pub stack: Stack,
    /// Protocol of the calls.
    pub protocol: Protocol,
}

impl Way {
    /// Returns gRPC at our server, the reference of all comparisons.
    pub(crate) fn reference() -> Self {
        Self { stack: Stack::ours(), protocol: Protocol::Grpc }
    }

    /// Returns our server over this protocol.
    pub(crate) fn ours(protocol: Protocol) -> Self {
        Self { stack: Stack::ours(), protocol }
    }

    /// Returns gRPC at our server on a port without JSON.
    pub(crate) fn alone() -> Self {
        let name = format!("{}:{GRPC_ALONE}", Stack::ours());
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

    /// Returns whether the way supports this message. Our server supports all; others and our views support those in
    /// the contract.
    pub(crate) fn echoes(&self, shape: Shape) -> bool {
        (self.stack.is_ours() && !self.is_views()) || shape.is_in_contract()
    }

    /// Returns whether it is a JSON API, written by hand or transcoded.
    pub(crate) fn is_json_api(&self) -> bool {
        matches!(self.protocol, Protocol::JsonHttp1 | Protocol::JsonH2)
    }
}

/// Returns the ways of our server: every protocol, gRPC on its own port, and gRPC and JSON with views.
pub fn our_ways() -> Vec<Way> {
    let views = [Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2].map(Way::views);
    Protocol::ALL.into_iter().map(Way::ours).chain([Way::alone()]).chain(views).collect()
}

/// Returns the ways of another server: gRPC and the protocols of its JSON address, with Connect instead of plain JSON
/// if supported. A variant is measured only for JSON, because it serves gRPC like the stack itself.
pub fn ways_of(stack: &Stack, speaks: &[String]) -> Vec<Way> {
    let has = |word: &str| speaks.iter().any(|speaks| speaks == word);
    let (over_http1, over_h2) = if has("connect") {
        (Protocol::ConnectHttp1, Protocol::ConnectH2)
    } else {
        (Protocol::JsonHttp1, Protocol::JsonH2)
    };
    let grpc = stack.variant().is_none().then_some(Protocol::Grpc);
    let json = [(over_http1, "http1"), (over_h2, "h2")].into_iter().filter(|(_, word)| has(word));
    let protocols = grpc.into_iter().chain(json.map(|(protocol, _)| protocol));
    protocols.map(|protocol| Way { stack: stack.clone(), protocol }).collect()
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.stack, self.protocol.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_the_ways_that_they_speak() {
        let check = |stack: &str, speaks: &str, expected: &[&str]| {
            let speaks: Vec<String> = speaks.split(' ').map(str::to_owned).collect();
            let ways = ways_of(&stack.parse().unwrap(), &speaks);
            let names: Vec<&str> = ways.iter().map(|way| way.protocol.name()).collect();
            assert_eq!(names, expected, "{stack}");
        };
        check("axum", "http1 h2", &["grpc", "json-http1", "json-h2"]);
        check("connect-go", "http1 h2 connect grpc-web", &["grpc", "connect-http1", "connect-h2"]);
        check("grpc-gateway:inside", "http1", &["json-http1"]);
        assert_eq!(our_ways().len(), Protocol::ALL.len() + 4);
    }
}
