//! The user's own messages: a `.proto` file, a type, and a file of messages.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use prost::Message;
use prost::encoding::decode_varint;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::Value;

use crate::codecs::engine::{Engine, Json, MessagePack, Transcoded};
use crate::codecs::{engine, reflect, serde as serde_codec};
use crate::converter::{Entry, NotConverted};

/// More messages than these are not read: they would no longer lie in the processor's cache, and say nothing new.
const MESSAGES_MAX: usize = 1000;

/// Messages of a type that is known at run time only.
pub(crate) struct OwnData {
    /// The descriptor set that the type is in.
    set: Vec<u8>,
    descriptor: MessageDescriptor,
    messages: Vec<DynamicMessage>,
}

/// Why the user's data cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnDataError {
    /// The `.proto` file has an error, or is not there.
    #[error("{0}")]
    Proto(String),
    /// The type is not in it.
    #[error("there is no message `{name}` in {file}: it has {known}")]
    NoSuchType {
        /// What was asked for.
        name: String,
        /// Where.
        file: PathBuf,
        /// What there is.
        known: String,
    },
    /// The data cannot be read.
    #[error("cannot read {file}: {error}")]
    Io {
        /// Which file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A message in it is none of the type.
    #[error("{file}, {position}: {reason}")]
    Message {
        /// Which file.
        file: PathBuf,
        /// Where.
        position: Position,
        /// What is wrong.
        reason: String,
    },
    /// There is nothing to convert.
    #[error("{0} holds no message")]
    Empty(PathBuf),
}

/// Where in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The line on which a message begins, or on which it is no JSON.
    Line(usize),
    /// Which of the binary messages.
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

impl OwnData {
    /// Reads messages of the type `name` from `data`: JSON lines, or JSON documents one after the other, if its name
    /// ends in `.json` or `.jsonl`, and otherwise binary messages, each with its length before it as a varint.
    ///
    /// At most the first 1,000 messages are taken. Files that `proto` imports are looked for in its folder.
    pub(crate) fn read(proto: &Path, name: &str, data: &Path) -> Result<Self, OwnDataError> {
        let (set, descriptor) = descriptor(proto, name)?;
        let bytes = fs::read(data).map_err(|error| OwnDataError::Io { file: data.to_owned(), error })?;
        let is_json = data.extension().is_some_and(|extension| extension == "json" || extension == "jsonl");
        let messages =
            if is_json { from_json(&descriptor, &bytes) } else { from_binary(&descriptor, &bytes) };
        let messages = messages.map_err(|(position, reason)| OwnDataError::Message {
            file: data.to_owned(),
            position,
            reason,
        })?;
        if messages.is_empty() {
            return Err(OwnDataError::Empty(data.to_owned()));
        }
        Ok(Self { set, descriptor, messages })
    }

    /// The type's full name.
    pub(crate) fn name(&self) -> &str {
        self.descriptor.full_name()
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// The codecs that learn the type at run time.
    pub(crate) fn entries(self) -> Result<Vec<Entry>, NotConverted> {
        let Self { set, descriptor, messages } = self;
        let wires: Vec<Vec<u8>> = messages.iter().map(Message::encode_to_vec).collect();
        let of = engine::message_type(&set, descriptor.full_name())?;
        let of_engine = || engine::messages(of, &wires);
        let value = |message: &DynamicMessage| serde_json::to_value(message).map_err(NotConverted::new);
        let values = || messages.iter().map(value).collect::<Result<Vec<Value>, _>>();
        Ok(vec![
            Entry::new("thalweg", Engine::new(of), of_engine()?)?,
            Entry::new("prost-reflect", reflect::Reflect(descriptor.clone()), messages.clone())?,
            Entry::new("serde_json-value", serde_codec::SerdeJson(std::marker::PhantomData), values()?)?,
            Entry::new("prost-reflect-json", reflect::ReflectJson(descriptor.clone()), messages.clone())?,
            Entry::new("thalweg-json", Transcoded::<Json>::new(of), of_engine()?)?,
            Entry::new("rmp-serde-value", serde_codec::RmpSerde(std::marker::PhantomData), values()?)?,
            Entry::new("thalweg-msgpack", Transcoded::<MessagePack>::new(of), of_engine()?)?,
        ])
    }
}

fn descriptor(proto: &Path, name: &str) -> Result<(Vec<u8>, MessageDescriptor), OwnDataError> {
    let folder = proto.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let set = protox::compile([proto], [folder]).map_err(|error| OwnDataError::Proto(error.to_string()))?;
    let encoded = set.encode_to_vec();
    let pool = DescriptorPool::from_file_descriptor_set(set)
        .map_err(|error| OwnDataError::Proto(format!("{}: {error}", proto.display())))?;
    let descriptor = pool.get_message_by_name(name).ok_or_else(|| {
        let known: Vec<String> = pool.all_messages().map(|it| it.full_name().to_owned()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        OwnDataError::NoSuchType { name: name.to_owned(), file: proto.to_owned(), known }
    })?;
    Ok((encoded, descriptor))
}

type Positioned<T> = Result<T, (Position, String)>;

fn from_json(descriptor: &MessageDescriptor, text: &[u8]) -> Positioned<Vec<DynamicMessage>> {
    let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let mut messages = Vec::new();
    while messages.len() < MESSAGES_MAX {
        let before = documents.byte_offset();
        let Some(document) = documents.next() else { break };
        let document = document.map_err(|error| (Position::Line(error.line()), without_line(&error)))?;
        let message = DynamicMessage::deserialize(descriptor.clone(), document);
        messages
            .push(message.map_err(|error| (Position::Line(line_of_next(text, before)), error.to_string()))?);
    }
    Ok(messages)
}

/// What serde_json says, `… at line 3 column 5`, where the line is said before.
fn without_line(error: &serde_json::Error) -> String {
    error.to_string().replace(&format!("at line {} column", error.line()), "at column")
}

/// The line of what comes next behind `offset`, from 1.
fn line_of_next(text: &[u8], offset: usize) -> usize {
    let blank = text[offset..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    text[..offset + blank].split(|&byte| byte == b'\n').count()
}

fn from_binary(descriptor: &MessageDescriptor, bytes: &[u8]) -> Positioned<Vec<DynamicMessage>> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    while !rest.is_empty() && messages.len() < MESSAGES_MAX {
        let number = Position::Message(messages.len() + 1);
        let length = decode_varint(&mut rest).map_err(|error| (number, format!("its length: {error}")))?;
        let length =
            usize::try_from(length).ok().filter(|&length| length <= rest.len()).ok_or_else(|| {
                (number, format!("it should have {length} bytes, and the file has {} more", rest.len()))
            })?;
        let (wire, after) = rest.split_at(length);
        let message = DynamicMessage::decode(descriptor.clone(), wire);
        messages.push(message.map_err(|error| (number, error.to_string()))?);
        rest = after;
    }
    Ok(messages)
}
