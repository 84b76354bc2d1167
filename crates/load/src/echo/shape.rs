//! Documents of the echo workload.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thalweg_messages::Kind;

/// Maximum total characters of the strings; they fit into a body of 64 MiB.
const LETTERS_MAX: u64 = 32 << 20;
/// Maximum number of strings.
const STRINGS_MAX: u32 = 1 << 20;

/// A kind of document: `strings:5000x20`, `person`, or a message of the codec study, such as `order`. Serialized as
/// this string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Shape {
    /// Strings of equal length.
    Strings {
        /// Number of strings.
        count: u32,
        /// Length of each, in bytes.
        letters: u32,
    },
    /// Name, age, three hobbies and an address: like `person-full` of the codec study, with other content.
    Person,
    /// Messages of the codec study, in turn.
    Study(Kind),
    /// User-provided messages, in turn.
    Own,
}

/// An invalid shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid message shape `{0}`; use strings:COUNTxLETTERS, such as strings:5000x20, person, own, or a message of \
     the codec study: {known}",
    known = Kind::ALL.map(Kind::name).join(", ")
)]
pub struct InvalidShape(String);

impl Shape {
    /// Returns service and method.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Strings { .. } => "Echo/EchoStrings",
            Self::Person | Self::Study(Kind::PersonFull | Kind::PersonSparse) => "Echo/EchoPerson",
            Self::Study(Kind::SeveralData) => "EchoShapes/EchoSeveralData",
            Self::Study(Kind::Order) => "EchoShapes/EchoOrder",
            Self::Study(Kind::LogRecord) => "EchoShapes/EchoLogRecord",
            Self::Study(Kind::Visit) => "EchoShapes/EchoVisit",
            Self::Study(Kind::Samples) => "EchoShapes/EchoSamples",
            Self::Own => "EchoOwn/Echo",
        }
    }

    /// Returns the path of the JSON API.
    pub(super) fn route(self) -> &'static str {
        match self {
            Self::Strings { .. } => "/v1/echo-strings",
            Self::Person | Self::Study(Kind::PersonFull | Kind::PersonSparse) => "/v1/echo-person",
            Self::Study(Kind::SeveralData) => "/v1/echo-several-data",
            Self::Study(Kind::Order) => "/v1/echo-order",
            Self::Study(Kind::LogRecord) => "/v1/echo-log-record",
            Self::Study(Kind::Visit) => "/v1/echo-visit",
            Self::Study(Kind::Samples) => "/v1/echo-samples",
            Self::Own => "/v1/echo-own",
        }
    }

    /// Returns the calls in flight that saturate a server: many for small messages, few for large ones.
    pub fn saturating(self) -> u32 {
        match self {
            Self::Strings { count, letters } => match u64::from(count) * u64::from(letters) {
                0..10_000 => 64,
                10_000..500_000 => 16,
                _ => 4,
            },
            Self::Person | Self::Study(_) => 64,
            // Their size is unknown.
            Self::Own => 16,
        }
    }

    /// Returns whether peers serve it too. Their contract has no person without hobbies.
    pub fn is_in_contract(self) -> bool {
        matches!(self, Self::Strings { .. } | Self::Person | Self::Study(Kind::PersonFull))
    }
}

impl FromStr for Shape {
    type Err = InvalidShape;

    fn from_str(text: &str) -> Result<Self, InvalidShape> {
        match text {
            "person" => return Ok(Self::Person),
            "own" => return Ok(Self::Own),
            _ => {}
        }
        if let Ok(kind) = text.parse() {
            return Ok(Self::Study(kind));
        }
        let strings = text.strip_prefix("strings:").and_then(|numbers| numbers.split_once('x'));
        let numbers = strings.and_then(|(count, letters)| Some((count.parse().ok()?, letters.parse().ok()?)));
        match numbers {
            Some((count, letters))
                if count <= STRINGS_MAX && u64::from(count) * u64::from(letters) <= LETTERS_MAX =>
            {
                Ok(Self::Strings { count, letters })
            }
            _ => Err(InvalidShape(text.to_owned())),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strings { count, letters } => f.pad(&format!("strings:{count}x{letters}")),
            Self::Person => f.pad("person"),
            Self::Study(kind) => f.pad(kind.name()),
            Self::Own => f.pad("own"),
        }
    }
}

impl TryFrom<String> for Shape {
    type Error = InvalidShape;

    fn try_from(text: String) -> Result<Self, InvalidShape> {
        text.parse()
    }
}

impl From<Shape> for String {
    fn from(shape: Shape) -> Self {
        shape.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_round_trip_through_text() {
        for text in [
            "strings:5000x20",
            "strings:0x0",
            "strings:1048576x32",
            "person",
            "person-full",
            "log-record",
            "own",
        ] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "people",
            "strings",
            "strings:",
            "strings:5x",
            "strings:-1x2",
            "strings:1048577x1",
            "strings:2x16777217",
        ] {
            assert_eq!(text.parse::<Shape>(), Err(InvalidShape(text.to_owned())), "{text}");
        }
    }
}
