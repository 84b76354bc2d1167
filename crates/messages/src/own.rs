//! The user's own messages: a `.proto` file, a type in it, and a file of messages.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use serde::de::IgnoredAny;
use thalweg_protobuf::json::{self, ParseError, ParseOptions};
use thalweg_protobuf::{Message, MessageType, Schema, sources};

use crate::OwnMessages;

/// Maximum number of messages read. More would not fit in the CPU cache, and add no information.
const MESSAGES_MAX: usize = 1000;

/// Why the user's own messages cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The `.proto` file is invalid.
    #[error("{0}")]
    Proto(String),
    /// The `.proto` file does not contain the type.
    #[error("unknown message `{name}` in {file}: it has {known}")]
    NoSuchType {
        /// Requested type.
        name: String,
        /// The `.proto` file.
        file: PathBuf,
        /// Types in the file.
        known: String,
    },
    /// A file cannot be read.
    #[error("failed to read {file}: {error}")]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A message in the data is invalid.
    #[error("{file}, {position}: {reason}")]
    Message {
        /// The file.
        file: PathBuf,
        /// Position in the file.
        position: Position,
        /// Description of the error.
        reason: String,
    },
    /// The data has no messages.
    #[error("{0} contains no messages")]
    Empty(PathBuf),
}

/// Position in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A line.
    Line(usize),
    /// A binary message.
    Message(usize),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Message(number) => write!(f, "message {number}"),
        }
    }
}

impl OwnMessages {
    /// Reads messages of the type `name` from `data`. A file ending in `.json` or `.jsonl` contains JSON lines or
    /// consecutive JSON documents. Other files contain binary messages, each preceded by its length as a varint.
    ///
    /// Reads at most the first 1,000 messages. Files that `proto` imports are searched in its folder.
    ///
    /// # Errors
    ///
    /// Returns an error for an unreadable file, and for an invalid schema, type or message.
    pub fn read(proto: &Path, name: &str, data: &Path) -> Result<Self, OwnError> {
        let set = descriptors(proto, name, |_| Vec::new())?;
        let schema = schema(proto, &set)?;
        let message_type = find_type(&schema, proto, name)?;
        let bytes = fs::read(data).map_err(|error| OwnError::Io { file: data.to_owned(), error })?;
        let is_json = data.extension().is_some_and(|extension| extension == "json" || extension == "jsonl");
        let wires = if is_json { from_json(message_type, &bytes) } else { from_binary(message_type, &bytes) };
        let wires = wires.map_err(|(position, reason)| OwnError::Message {
            file: data.to_owned(),
            position,
            reason,
        })?;
        if wires.is_empty() {
            return Err(OwnError::Empty(data.to_owned()));
        }
        Ok(Self { type_name: name.to_owned(), set, wires })
    }
}

/// Returns the descriptor set of `proto`, which must contain the type `name`, with its imports. `extra_files` gets
/// the name by which files can import `proto`, and returns additional files with their contents.
///
/// # Errors
///
/// Returns an error for an invalid schema, or if the type is missing.
pub fn descriptors(
    proto: &Path,
    name: &str,
    extra_files: impl FnOnce(&str) -> Vec<(&'static str, String)>,
) -> Result<Vec<u8>, OwnError> {
    let invalid = |reason: &dyn fmt::Display| OwnError::Proto(format!("{}: {reason}", proto.display()));
    let file = proto.file_name().and_then(|file| file.to_str());
    let file = file.ok_or_else(|| invalid(&"not a UTF-8 file name"))?.to_owned();
    fs::metadata(proto).map_err(|error| OwnError::Io { file: proto.to_owned(), error })?;
    let folder = proto.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let compiled = |extra_files: Vec<(&'static str, String)>| {
        let names: Vec<&str> = [file.as_str()].into_iter().chain(extra_files.iter().map(|it| it.0)).collect();
        let read = |name: &str| {
            let text =
                extra_files.iter().find(|(extra_file, _)| *extra_file == name).map(|(_, text)| text.clone());
            text.or_else(|| fs::read_to_string(folder.join(name)).ok())
        };
        sources::compile(&names, read).map_err(|error| OwnError::Proto(error.to_string()))
    };
    let set = compiled(Vec::new())?;
    // Checked before other files refer to it.
    find_type(&schema(proto, &set)?, proto, name)?;
    match extra_files(&file) {
        none if none.is_empty() => Ok(set),
        extra_files => compiled(extra_files),
    }
}

fn schema(proto: &Path, set: &[u8]) -> Result<Schema, OwnError> {
    Schema::from_descriptor_set(set).map_err(|error| OwnError::Proto(format!("{}: {error}", proto.display())))
}

fn find_type<'s>(schema: &'s Schema, proto: &Path, name: &str) -> Result<MessageType<'s>, OwnError> {
    schema.message(name).ok_or_else(|| {
        let declared = schema.messages().filter(|message| !message.is_map_entry());
        let known: Vec<&str> = declared.map(MessageType::full_name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        OwnError::NoSuchType { name: name.to_owned(), file: proto.to_owned(), known }
    })
}

type PositionedResult<T> = Result<T, (Position, String)>;

fn from_json(message_type: MessageType<'_>, text: &[u8]) -> PositionedResult<Vec<Vec<u8>>> {
    // Fields required by proto2 may be missing; codecs accept that.
    let options = ParseOptions::default().allow_partial(true);
    let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    let mut wires = Vec::new();
    while wires.len() < MESSAGES_MAX {
        let before = documents.byte_offset();
        let Some(document) = documents.next() else { break };
        document.map_err(|error| (Position::Line(error.line()), without_line(&error)))?;
        let document = &text[before..documents.byte_offset()];
        let mut wire = Vec::new();
        json::parse(message_type, document, &options, &mut wire)
            .map_err(|error| locate(text, before, error))?;
        wires.push(wire);
    }
    Ok(wires)
}

/// Returns serde_json's message, `… at line 3 column 5`, without the line, which is reported separately.
fn without_line(error: &serde_json::Error) -> String {
    error.to_string().replace(&format!("at line {} column", error.line()), "at column")
}

/// Locates an error in a document that starts at `offset`.
fn locate(text: &[u8], offset: usize, error: ParseError) -> (Position, String) {
    let ParseError { line, column, path, problem, .. } = error;
    let lines = text[..offset].split(|&byte| byte == b'\n').count() + line - 1;
    let path = if path.is_empty() { path } else { format!("{path}: ") };
    (Position::Line(lines), format!("{path}{problem} at column {column}"))
}

fn from_binary(message_type: MessageType<'_>, bytes: &[u8]) -> PositionedResult<Vec<Vec<u8>>> {
    let mut rest = bytes;
    let mut wires = Vec::new();
    while !rest.is_empty() && wires.len() < MESSAGES_MAX {
        let number = Position::Message(wires.len() + 1);
        let (length, after_length) =
            varint(rest).map_err(|reason| (number, format!("invalid length: {reason}")))?;
        let length = usize::try_from(length).ok().filter(|&length| length <= after_length.len());
        let (wire, after) =
            length.and_then(|length| after_length.split_at_checked(length)).ok_or_else(|| {
                let expected = varint(rest).map_or(0, |(length, _)| length);
                (number, format!("expected {expected} bytes, found {}", after_length.len()))
            })?;
        Message::decode(message_type, wire.to_vec()).map_err(|error| (number, error.to_string()))?;
        wires.push(wire.to_vec());
        rest = after;
    }
    Ok(wires)
}

/// Splits off a varint, and returns the rest.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    Err("expected a varint")
}
