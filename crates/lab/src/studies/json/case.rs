//! Conditions of a measured call.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_measure::figures::time;
use thalweg_messages::Kind;

use crate::echo::Shape;

/// A message and the conditions of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Case {
    /// Echoed message.
    pub(crate) shape: Shape,
    /// Round-trip time added by the network, ns.
    pub(crate) round_trip_ns: u64,
    /// Rate limit of the network, bit/s; `None` if unlimited.
    pub(crate) rate_bit_per_s: Option<u64>,
    /// Whether each call has its own channel and connection.
    #[serde(rename = "afresh")]
    pub(crate) new_connection: bool,
    /// Whether messages are gzip-compressed both endpoints.
    pub(crate) gzip: bool,
}

impl Case {
    /// Creates a case without network and compression, over a persistent connection.
    pub(crate) fn plain(shape: Shape) -> Self {
        Self { shape, round_trip_ns: 0, rate_bit_per_s: None, new_connection: false, gzip: false }
    }

    pub(crate) fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.round_trip_ns)
    }

    /// Returns whether there is a network in between.
    pub(crate) fn is_far(&self) -> bool {
        self.round_trip_ns > 0 || self.rate_bit_per_s.is_some()
    }

    /// Describes the network; `None` if there is none.
    pub(crate) fn network(&self) -> Option<String> {
        let round_trip =
            (self.round_trip_ns > 0).then(|| format!("{} added round trip", time(self.round_trip_ns as f64)));
        let rate = self.rate_bit_per_s.map(|rate| format!("{} Mbit/s", rate / 1_000_000));
        match (round_trip, rate) {
            (Some(round_trip), Some(rate)) => Some(format!("{round_trip}, {rate}")),
            (one, other) => one.or(other),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", title(self.shape))?;
        if let Some(network) = self.network() {
            write!(f, ", {network}")?;
        }
        if self.new_connection {
            f.write_str(", a connection for each call")?;
        }
        if self.gzip {
            f.write_str(", gzip")?;
        }
        Ok(())
    }
}

/// Describes a shape: `5 000 strings of 20 letters`.
pub(crate) fn title(shape: Shape) -> String {
    match shape {
        Shape::Strings { count: 1, letters } => format!("one string of {letters} letters"),
        Shape::Strings { count, letters } => {
            format!("{} strings of {letters} letters", thalweg_measure::figures::grouped(f64::from(count)))
        }
        Shape::Person => "a small person".to_owned(),
        Shape::Study(kind) => of_study(kind).to_owned(),
        Shape::Own => "one of your own messages".to_owned(),
    }
}

fn of_study(kind: Kind) -> &'static str {
    match kind {
        Kind::PersonFull => "a full person",
        Kind::PersonSparse => "a sparse person",
        Kind::SeveralData => "a field of each type and 5 000 strings",
        Kind::Order => "an order",
        Kind::LogRecord => "a line of a log",
        Kind::Visit => "a visit",
        Kind::Samples => "rows of numbers",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_described_in_words() {
        let case = Case::plain(Shape::Strings { count: 5000, letters: 20 });
        assert_eq!(case.to_string(), "5 000 strings of 20 letters");
        let far = Case { round_trip_ns: 1_000_000, rate_bit_per_s: Some(100_000_000), gzip: true, ..case };
        assert_eq!(far.to_string(), "5 000 strings of 20 letters, 1 ms added round trip, 100 Mbit/s, gzip");
        let new_connection = Case { new_connection: true, ..Case::plain(Shape::Person) };
        assert_eq!(new_connection.to_string(), "a small person, a connection for each call");
    }
}
