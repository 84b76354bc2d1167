//! Who takes part in a channels study: clients, and their ways to come by connections.

use crate::load::Strategy;
use crate::stack::{Pair, Stack};

/// A client that comes by its connections in one way, and the server that it calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contender {
    /// Whose client and server. A variant of the client is a part of the way.
    pub pair: Pair,
    /// The way.
    pub strategy: Strategy,
}

/// The ways of this pair's client. `connections` is how many the ways with several have; `client_variants` are the
/// kinds of client that the stack offers, the default first.
///
/// Of a peer these are one connection, and several by each kind of client: gRPC C++ has channels of equal arguments,
/// which share a connection, those of different arguments, and those with a subchannel pool of their own. A variant
/// that the pair names is the only one.
pub fn contenders(pair: &Pair, client_variants: &[String], connections: u32) -> Vec<Contender> {
    let with = |pair: &Pair, strategy| Contender { pair: pair.clone(), strategy };
    let several = Strategy::Fixed(connections);
    if pair.client.is_ours() {
        let all = [Strategy::Adaptive, Strategy::Fixed(1), several, Strategy::PerWorker, Strategy::PerCall];
        return all.into_iter().map(|strategy| with(pair, strategy)).collect();
    }
    let is_own_choice = client_variants.len() < 2
        || pair.client.variant().is_some_and(|variant| client_variants.iter().any(|known| known == variant));
    let mut all = vec![with(pair, Strategy::Fixed(1))];
    if is_own_choice {
        all.push(with(pair, several));
        return all;
    }
    for variant in client_variants.iter().filter(|variant| *variant != ONE) {
        if let Ok(client) = format!("{}:{variant}", pair.client.name()).parse::<Stack>() {
            all.push(with(&Pair { client, server: pair.server.clone() }, several));
        }
    }
    all
}

/// The kind of client that has one channel whatever it is asked for.
const ONE: &str = "one";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stack_has_its_ways() {
        let check = |stack: &str, variants: &[&str], expected: &[&str]| {
            let variants: Vec<String> = variants.iter().map(ToString::to_string).collect();
            let ways = contenders(&Pair::own(stack.parse().unwrap()), &variants, 4);
            let shown: Vec<String> =
                ways.iter().map(|way| format!("{} {}", way.pair.client, way.strategy.name())).collect();
            assert_eq!(shown, expected, "{stack}");
        };
        let ours = ["thalweg adaptive", "thalweg 1", "thalweg 4", "thalweg per-worker", "thalweg per-call"];
        check("thalweg", &[], &ours);
        check("tonic", &[], &["tonic 1", "tonic 4"]);
        let cpp = ["own", "distinct", "shared", "one"];
        check(
            "grpc-cpp",
            &cpp,
            &["grpc-cpp 1", "grpc-cpp:own 4", "grpc-cpp:distinct 4", "grpc-cpp:shared 4"],
        );
        check("grpc-cpp:shared", &cpp, &["grpc-cpp:shared 1", "grpc-cpp:shared 4"]);
        // A kind of server.
        check(
            "grpc-cpp:cq",
            &cpp,
            &["grpc-cpp:cq 1", "grpc-cpp:own 4", "grpc-cpp:distinct 4", "grpc-cpp:shared 4"],
        );
    }
}
