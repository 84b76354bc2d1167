//! What is echoed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// So many letters of all strings together, at the most: a body of 64 MiB has room for them.
const LETTERS_MAX: u64 = 32 << 20;
/// So many strings, at the most.
const STRINGS_MAX: u32 = 1 << 20;

/// `strings:5000x20` or `person`. Its string in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Shape {
    /// So many strings of so many letters.
    Strings {
        /// How many.
        count: u32,
        /// How long each is, in bytes.
        letters: u32,
    },
    /// Name, age, three hobbies and an address: `person-full` of the codec study.
    Person,
}

/// A text that names no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no shape: write person, or strings:COUNTxLETTERS, such as strings:5000x20")]
pub struct NotAShape(String);

impl Shape {
    /// The method of `Echo`.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Strings { .. } => "EchoStrings",
            Self::Person => "EchoPerson",
        }
    }

    /// The path of the JSON API.
    pub(super) fn route(self) -> &'static str {
        match self {
            Self::Strings { .. } => "/v1/echo-strings",
            Self::Person => "/v1/echo-person",
        }
    }
}

impl FromStr for Shape {
    type Err = NotAShape;

    fn from_str(text: &str) -> Result<Self, NotAShape> {
        if text == "person" {
            return Ok(Self::Person);
        }
        let strings = text.strip_prefix("strings:").and_then(|numbers| numbers.split_once('x'));
        let numbers = strings.and_then(|(count, letters)| Some((count.parse().ok()?, letters.parse().ok()?)));
        match numbers {
            Some((count, letters))
                if count <= STRINGS_MAX && u64::from(count) * u64::from(letters) <= LETTERS_MAX =>
            {
                Ok(Self::Strings { count, letters })
            }
            _ => Err(NotAShape(text.to_owned())),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strings { count, letters } => f.pad(&format!("strings:{count}x{letters}")),
            Self::Person => f.pad("person"),
        }
    }
}

impl TryFrom<String> for Shape {
    type Error = NotAShape;

    fn try_from(text: String) -> Result<Self, NotAShape> {
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
    fn shapes_are_read_and_shown() {
        for text in ["strings:5000x20", "strings:0x0", "strings:1048576x32", "person"] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "strings",
            "strings:",
            "strings:5x",
            "strings:-1x2",
            "strings:1048577x1",
            "strings:2x16777217",
        ] {
            assert_eq!(text.parse::<Shape>(), Err(NotAShape(text.to_owned())), "{text}");
        }
    }
}
