//! What can be wrong with descriptors.

use std::fmt;

use thiserror::Error;

use crate::wire::WireError;

/// A descriptor from which no schema can be made: which file, which element of it, and what is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaError {
    /// The name of the file as its descriptor has it; empty if that could not be read.
    pub file: String,
    /// The full name of the message, field, enum, service …; empty if it is the file itself.
    pub element: String,
    /// What is wrong.
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

/// What is wrong with an element of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are no Protobuf. Offsets count from the start of the file's descriptor.
    #[error("the descriptor cannot be read: {0}")]
    Wire(#[from] WireError),
    /// A field of the descriptor has another wire type than `descriptor.proto` says.
    #[error("the descriptor has a field of the wrong wire type")]
    WireType,
    /// A name that is not text.
    #[error("a string of the descriptor is not UTF-8")]
    Utf8,
    /// Messages declared in each other.
    #[error("messages are declared in each other more than {max} deep")]
    Nesting {
        /// The bound.
        max: usize,
    },
    /// More of something than a schema can hold.
    #[error("there are more {what} than the {max} that a schema can hold")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// A syntax that is none of `proto2`, `proto3` and `editions`.
    #[error("syntax {0:?} is not known; there are proto2, proto3 and editions")]
    Syntax(String),
    /// An edition that came later, or none.
    #[error("edition {0} is not supported; 2023 and 2024 are")]
    Edition(String),
    /// A name that is empty, or that is no identifier.
    #[error("{0:?} is not a name")]
    Name(String),
    /// A name that is used already.
    #[error("the name is used twice; the other is in {other}")]
    DuplicateName {
        /// The file of the first.
        other: String,
    },
    /// Two different files of one name.
    #[error("there are two different files of this name")]
    DuplicateFile,
    /// Two fields that JSON could not tell apart.
    #[error("its {which} is {name:?}, and so is that of {other}")]
    JsonName {
        /// `JSON name`, or `default JSON name`, which field masks have whatever `json_name` says.
        which: &'static str,
        /// The name.
        name: String,
        /// The full name of the first.
        other: String,
    },
    /// A field number below 1, above 2^29 - 1, or from 19000 to 19999.
    #[error("{0} is not a field number: from 1 to 536870911, without 19000 to 19999")]
    Number(i32),
    /// Two fields with one number.
    #[error("number {number} is taken by {other}")]
    DuplicateNumber {
        /// The number of both.
        number: u32,
        /// The full name of the first.
        other: String,
    },
    /// A type that `descriptor.proto` does not have.
    #[error("field type {0} does not exist")]
    FieldType(i32),
    /// A label that `descriptor.proto` does not have.
    #[error("label {0} does not exist")]
    Label(i32),
    /// A type that is in none of the files.
    #[error("type {0} is not in any of the files; is an import missing?")]
    NotFound(String),
    /// The name of an enum where a message is needed, or the like.
    #[error("{name} is not {expected}")]
    NotA {
        /// What was named.
        name: String,
        /// What was needed.
        expected: &'static str,
    },
    /// A oneof index for which the message has no oneof, or a member that is repeated.
    #[error("oneof index {0} is out of place")]
    Oneof(i32),
    /// A oneof without members.
    #[error("the oneof has no member")]
    EmptyOneof,
    /// An enum without values.
    #[error("the enum has no value")]
    EmptyEnum,
    /// An open enum's first value is its default, and must be 0.
    #[error("the first value of an open enum must be 0, not {0}")]
    FirstValue(i32),
    /// Two values with one number, without `allow_alias`.
    #[error("number {number} is taken by {other}, and the enum has no allow_alias")]
    Alias {
        /// The number of both.
        number: i32,
        /// The name of the first.
        other: String,
    },
    /// Two values of an enum that generated code could not tell apart, since it may leave out the enum's name and
    /// write the rest in PascalCase.
    #[error("{value} without the enum's name, in PascalCase, is {name:?}, and so is {other}")]
    ValueName {
        /// The name of the second.
        value: String,
        /// What both are then.
        name: String,
        /// The name of the first.
        other: String,
    },
    /// A map entry that does not look like one.
    #[error(
        "the map entry must have a key (integer, bool or string) with number 1 and a value with number 2"
    )]
    MapEntry,
    /// An extension whose number its message did not set free.
    #[error("{extendee} has no extension range with {number}")]
    ExtensionRange {
        /// The message that is extended.
        extendee: String,
        /// The number of the extension.
        number: i32,
    },
    /// An extension without a message that it extends, or a field of a message with one.
    #[error("an extension needs a message that it extends, and a field has none")]
    Extendee,
    /// A default that is no value of the field's type.
    #[error("{0:?} is not a default for a field of this type")]
    Default(String),
    /// A combination that the language does not have.
    #[error("{0}")]
    Invalid(&'static str),
}
