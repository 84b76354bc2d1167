//! Kinds of message, by name.

use std::str::FromStr;

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A person with all fields.
    PersonFull,
    /// A person with two of four fields.
    PersonSparse,
    /// A field of each type, and 5,000 strings.
    SeveralData,
    /// A flat record.
    Order,
    /// A log record.
    LogRecord,
    /// Nested messages and maps.
    Visit,
    /// Arrays of numbers.
    Samples,
}

/// A name that matches no kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind;

impl Kind {
    /// All kinds, in table order.
    pub const ALL: [Self; 7] = [
        Self::PersonFull,
        Self::PersonSparse,
        Self::SeveralData,
        Self::Order,
        Self::LogRecord,
        Self::Visit,
        Self::Samples,
    ];

    /// Returns the name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::PersonFull => "person-full",
            Self::PersonSparse => "person-sparse",
            Self::SeveralData => "several-data",
            Self::Order => "order",
            Self::LogRecord => "log-record",
            Self::Visit => "visit",
            Self::Samples => "samples",
        }
    }

    /// Returns a short description.
    pub fn about(self) -> &'static str {
        match self {
            Self::PersonFull => "name, age, three hobbies, an address",
            Self::PersonSparse => "name and age: 17 bytes of Protobuf, 63 of JSON",
            Self::SeveralData => "a field of each type, and 5,000 strings of 20 characters",
            Self::Order => "a flat record of 13 fields",
            Self::LogRecord => "a line of a log",
            Self::Visit => "analytics: messages in messages, and maps",
            Self::Samples => "five rows of 160 numbers",
        }
    }

    /// Returns the Protobuf type.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::PersonFull | Self::PersonSparse => "shapes.Person",
            Self::SeveralData => "shapes.SeveralData",
            Self::Order => "shapes.Order",
            Self::LogRecord => "shapes.LogRecord",
            Self::Visit => "shapes.Visit",
            Self::Samples => "shapes.Samples",
        }
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(UnknownKind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_parse_from_their_names() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert_eq!("person".parse::<Kind>(), Err(UnknownKind));
    }
}
