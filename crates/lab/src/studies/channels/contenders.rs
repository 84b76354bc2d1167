//! Participants of a channels study: clients and their connection strategies.

use crate::load::Strategy;
use crate::stack::{Pair, Stack};

/// A client with a connection strategy, and the server that it calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contender {
    /// Client and server. The client's variant is part of the strategy.
    pub pair: Pair,
    /// Connection strategy.
    pub strategy: Strategy,
}

/// Returns the contenders of this pair. `connections` is the number that strategies with several use.
/// `client_variants` are the stack's client variants, the default first.
///
/// A peer has one connection, and several with each client variant. For gRPC C++ these are channels with equal
/// arguments, which share a connection, with different arguments, and with their own subchannel pool. If the pair
/// names a variant, only that is used.
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

/// Client variant that always has one channel.
const ONE: &str = "one";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stack_has_its_strategies() {
        let check = |stack: &str, variants: &[&str], expected: &[&str]| {
            let variants: Vec<String> = variants.iter().map(ToString::to_string).collect();
            let found = contenders(&Pair::own(stack.parse().unwrap()), &variants, 4);
            let shown: Vec<String> = found
                .iter()
                .map(|contender| format!("{} {}", contender.pair.client, contender.strategy.name()))
                .collect();
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
        // A server variant.
        check(
            "grpc-cpp:cq",
            &cpp,
            &["grpc-cpp:cq 1", "grpc-cpp:own 4", "grpc-cpp:distinct 4", "grpc-cpp:shared 4"],
        );
    }
}
