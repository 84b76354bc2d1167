//! Errors in printing wire bytes.

use thiserror::Error;

use crate::message::DecodeError;

/// Error in converting a message to JSON or MessagePack.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The bytes are not a valid message of the type, or exceed the decoding limits.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A string is not UTF-8.
    #[error("{field}: a string is not UTF-8")]
    NotText {
        /// Full name of the field.
        field: String,
    },
    /// A required field is missing, and `PrintOptions::allow_partial` is not set.
    #[error("missing required field {field}")]
    Required {
        /// Full name of the field.
        field: String,
    },
    /// An Any holds a type that the schema does not have.
    #[error("an Any holds the unknown type `{type_url}`")]
    UnknownType {
        /// Type URL of the Any.
        type_url: String,
    },
    /// The output would exceed `PrintOptions::len_max`.
    #[error("the output exceeds {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// A field's records are scattered and could not be merged.
    #[error("failed to merge the scattered records of a field")]
    Unordered,
    /// A message of a well-known type holds an invalid value.
    #[error("{type_name}: {problem}")]
    WellKnown {
        /// The type's name, such as `google.protobuf.Timestamp`.
        type_name: String,
        /// The problem.
        problem: &'static str,
    },
}
