//! Connection strategies of a client.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::record::LaneRule;

/// Rule for a client's number of connections. Serialized as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Strategy {
    /// The channel adapts the number itself.
    Adaptive,
    /// This number, or one per call in flight if that is fewer.
    Fixed(u32),
    /// One connection for each call in flight.
    PerWorker,
    /// A new connection for each call.
    PerCall,
}

impl Strategy {
    /// Returns the name in JSON and on the command line: `adaptive`, a number, `per-worker`, `per-call`.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Adaptive => LaneRule::Adaptive.name().to_owned(),
            Self::Fixed(connections) => connections.to_string(),
            Self::PerWorker => "per-worker".to_owned(),
            Self::PerCall => LaneRule::PerCall.name().to_owned(),
        }
    }

    /// Returns the rule passed to a driver.
    pub(crate) fn rule(self) -> LaneRule {
        match self {
            Self::Adaptive => LaneRule::Adaptive,
            Self::Fixed(_) | Self::PerWorker => LaneRule::Fixed,
            Self::PerCall => LaneRule::PerCall,
        }
    }

    /// Returns the number of connections to request, at most one for each call in flight.
    pub(crate) fn connections(self, in_flight: u32) -> u32 {
        match self {
            Self::Adaptive | Self::PerCall => 1,
            Self::Fixed(connections) => connections.clamp(1, in_flight.max(1)),
            Self::PerWorker => in_flight,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adaptive => f.pad("adaptive"),
            Self::Fixed(1) => f.pad("one connection"),
            Self::Fixed(connections) => f.pad(&format!("{connections} connections")),
            Self::PerWorker => f.pad("a connection per worker"),
            Self::PerCall => f.pad("a channel per call"),
        }
    }
}

/// Error for an unknown strategy name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid strategy `{0}`; use adaptive, a number of connections, per-worker or per-call")]
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let named = [Self::Adaptive, Self::PerWorker, Self::PerCall];
        let number = || text.parse().ok().filter(|&connections| connections > 0).map(Self::Fixed);
        let known = named.into_iter().find(|strategy| strategy.name() == text).or_else(number);
        known.ok_or_else(|| UnknownStrategy(text.to_owned()))
    }
}

impl TryFrom<String> for Strategy {
    type Error = UnknownStrategy;

    fn try_from(text: String) -> Result<Self, UnknownStrategy> {
        text.parse()
    }
}

impl From<Strategy> for String {
    fn from(strategy: Strategy) -> Self {
        strategy.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_formatted() {
        let check = |text: &str, expected: Option<Strategy>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
            assert!(expected.is_none_or(|strategy| strategy.name() == text), "{text}");
        };
        check("adaptive", Some(Strategy::Adaptive));
        check("1", Some(Strategy::Fixed(1)));
        check("16", Some(Strategy::Fixed(16)));
        check("per-worker", Some(Strategy::PerWorker));
        check("per-call", Some(Strategy::PerCall));
        check("0", None);
        check("many", None);
    }

    #[test]
    fn connections_are_limited_by_calls_in_flight() {
        let check = |strategy: Strategy, expected: [u32; 2]| {
            assert_eq!([1, 64].map(|in_flight| strategy.connections(in_flight)), expected, "{strategy}");
        };
        check(Strategy::Adaptive, [1, 1]);
        check(Strategy::PerCall, [1, 1]);
        check(Strategy::Fixed(4), [1, 4]);
        check(Strategy::PerWorker, [1, 64]);
    }
}
