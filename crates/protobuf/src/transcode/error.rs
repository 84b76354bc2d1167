//! Why wire bytes cannot be printed.

use thiserror::Error;

use crate::message::DecodeError;

/// Why a message has no form in JSON or MessagePack.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The bytes are no message of the type, or more than decoding allows.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A string that is not UTF-8.
    #[error("{field}: a string is not UTF-8")]
    NotText {
        /// The full name of the field.
        field: String,
    },
    /// A message without a field that it must have, and `PrintOptions::allow_partial` is not set.
    #[error("the required field {field} is missing")]
    Required {
        /// The full name of the field.
        field: String,
    },
    /// An Any of a type that the schema does not have.
    #[error("an Any holds a message of the type `{type_url}`, which the schema does not have")]
    UnknownType {
        /// As the Any names it.
        type_url: String,
    },
    /// More than `PrintOptions::len_max`.
    #[error("it would be longer than {max} bytes")]
    TooLong {
        /// The bound.
        max: usize,
    },
    /// Records of one field in several places, which could not be brought together.
    #[error("the records of a field could not be brought together")]
    Unordered,
    /// A message of a well-known type that holds what the type must not.
    #[error("{type_name}: {problem}")]
    WellKnown {
        /// `google.protobuf.Timestamp`, say.
        type_name: String,
        /// What is wrong.
        problem: &'static str,
    },
}
