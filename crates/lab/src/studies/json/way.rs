//! Who does the work, and how it is said.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::echo::{Protocol, Shape};
use crate::stack::{Stack, VIEWS};

/// The variant of our server that has no JSON on its port.
pub(super) const GRPC_ALONE: &str = "grpc-alone";

/// A stack's server, called by a protocol. The client is ours, whoever serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Way {
    /// Whose server.
    pub stack: Stack,
    /// How it is called.
    pub protocol: Protocol,
}

impl Way {
    /// gRPC at our server, which everything is compared with.
    pub(crate) fn reference() -> Self {
        Self { stack: Stack::ours(), protocol: Protocol::Grpc }
    }

    /// Ours, by this protocol.
    pub(crate) fn ours(protocol: Protocol) -> Self {
        Self { stack: Stack::ours(), protocol }
    }

    /// At our server, which serves nothing else on that port.
    pub(crate) fn alone() -> Self {
        let name = format!("{}:{GRPC_ALONE}", Stack::ours());
        Self { stack: name.parse().expect("the name is a constant"), protocol: Protocol::Grpc }
    }

    /// At our server whose handlers take views, by this protocol.
    pub(crate) fn views(protocol: Protocol) -> Self {
        let name = format!("{}:{VIEWS}", Stack::ours());
        Self { stack: name.parse().expect("the name is a constant"), protocol }
    }

    /// At our server whose handlers take views.
    pub(crate) fn is_views(&self) -> bool {
        self.stack.is_ours() && self.stack.variant() == Some(VIEWS)
    }

    /// Whether it has this message: our server has all, others and our views what the contract has.
    pub(crate) fn echoes(&self, shape: Shape) -> bool {
        (self.stack.is_ours() && !self.is_views()) || shape.is_in_contract()
    }

    /// By a JSON API: what a server's author writes by hand, or has transcoded.
    pub(crate) fn is_json_api(&self) -> bool {
        matches!(self.protocol, Protocol::JsonHttp1 | Protocol::JsonH2)
    }
}

/// The ways of our server: every protocol, gRPC on a port that serves nothing else, and where handlers take views gRPC
/// and JSON.
pub fn our_ways() -> Vec<Way> {
    let views = [Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2].map(Way::views);
    Protocol::ALL.into_iter().map(Way::ours).chain([Way::alone()]).chain(views).collect()
}

/// The ways of another server: gRPC, and what its JSON address speaks, of which JSON is Connect's where it speaks that.
/// A variant serves gRPC as the stack itself does, and is looked at for its JSON.
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
