//! Errors in descriptors.

use std::fmt;

use thiserror::Error;

use crate::wire::WireError;

/// A descriptor error: the file, the element and the problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaError {
    /// Name of the file in its descriptor; empty if it could not be read.
    pub file: String,
    /// Full name of the message, field, enum, service, …; empty if the problem concerns the file itself.
    pub element: String,
    /// The problem.
    pub problem: Problem,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SchemaError { file, element, problem } = self;
        let file = if file.is_empty() { "descriptor" } else { file };
        if element.is_empty() {
            write!(out, "{file}: {problem}")
        } else {
            write!(out, "{file}: {element}: {problem}")
        }
    }
}

impl std::error::Error for SchemaError {}

/// A problem with an element of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are not valid Protobuf. Offsets count from the start of the file's descriptor.
    #[error("failed to decode the descriptor: {0}")]
    Wire(#[from] WireError),
    /// A field of the descriptor has a wire type other than the one in `descriptor.proto`.
    #[error("the descriptor has a field of the wrong wire type")]
    WireType,
    /// A string is not UTF-8.
    #[error("a string of the descriptor is not UTF-8")]
    Utf8,
    /// Messages are nested too deeply.
    #[error("messages are nested more than {max} levels deep")]
    Nesting {
        /// The limit.
        max: usize,
    },
    /// The schema exceeds a size limit.
    #[error("more {what} than the maximum of {max}")]
    TooMany {
        /// The kind of element.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The syntax is not `proto2`, `proto3` or `editions`.
    #[error("unknown syntax {0:?}; use proto2, proto3 or editions")]
    Syntax(String),
    /// The edition is later than 2024, or does not exist.
    #[error("edition {0} is not supported; use 2023 or 2024")]
    Edition(String),
    /// A name is empty or not an identifier.
    #[error("invalid name {0:?}")]
    Name(String),
    /// The name is already used.
    #[error("duplicate name; the other one is in {other}")]
    DuplicateName {
        /// The file of the first declaration.
        other: String,
    },
    /// Two different files have the same name.
    #[error("two different files have this name")]
    DuplicateFile,
    /// Two fields have the same name in JSON.
    #[error("its {which} {name:?} is also that of {other}")]
    JsonName {
        /// `JSON name`, or `default JSON name`, which field masks use whatever `json_name` is.
        which: &'static str,
        /// The name.
        name: String,
        /// Full name of the first field.
        other: String,
    },
    /// A field number below 1, above 2^29 - 1, or from 19000 to 19999.
    #[error("invalid field number {0}; use 1 to 536870911, except 19000 to 19999")]
    Number(i32),
    /// Two fields have the same number.
    #[error("number {number} is already used by {other}")]
    DuplicateNumber {
        /// The number.
        number: u32,
        /// Full name of the first field.
        other: String,
    },
    /// A type that `descriptor.proto` does not have.
    #[error("unknown field type {0}")]
    FieldType(i32),
    /// A label that `descriptor.proto` does not have.
    #[error("unknown label {0}")]
    Label(i32),
    /// A type is not declared in any of the files.
    #[error("unknown type {0}; check the imports")]
    NotFound(String),
    /// A name refers to the wrong kind of element, such as an enum where a message is needed.
    #[error("{name} is not {expected}")]
    NotA {
        /// The name.
        name: String,
        /// The expected kind of element.
        expected: &'static str,
    },
    /// The message has no oneof of this index, or the member is repeated.
    #[error("invalid oneof index {0}")]
    Oneof(i32),
    /// A oneof without members.
    #[error("the oneof has no fields")]
    EmptyOneof,
    /// An enum without values.
    #[error("the enum has no values")]
    EmptyEnum,
    /// The first value of an open enum is its default, and must be 0.
    #[error("the first value of an open enum must be 0, not {0}")]
    FirstValue(i32),
    /// Two values have the same number, without `allow_alias`.
    #[error("number {number} is already used by {other}; set allow_alias if that is intended")]
    Alias {
        /// The number.
        number: i32,
        /// Name of the first value.
        other: String,
    },
    /// Two enum values conflict in generated code, which may strip the enum's name and write the rest in PascalCase.
    #[error("{value} and {other} are both {name:?} in PascalCase without the enum's name")]
    ValueName {
        /// Name of the second value.
        value: String,
        /// The name that both become.
        name: String,
        /// Name of the first value.
        other: String,
    },
    /// The map entry is malformed.
    #[error(
        "the map entry must have a key (integer, bool or string) with number 1 and a value with number 2"
    )]
    MapEntry,
    /// The extended message has no extension range for the extension's number.
    #[error("no extension range of {extendee} contains {number}")]
    ExtensionRange {
        /// The extended message.
        extendee: String,
        /// Number of the extension.
        number: i32,
    },
    /// An extension does not extend a message, or a message's field has an extendee.
    #[error("an extension needs an extendee, and a field cannot have one")]
    Extendee,
    /// The default is not a value of the field's type.
    #[error("invalid default {0:?} for a field of this type")]
    Default(String),
    /// The language does not allow this combination.
    #[error("{0}")]
    Invalid(&'static str),
}
