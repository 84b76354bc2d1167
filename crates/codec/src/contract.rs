//! What the lab and this program tell each other, as `peers/README.md` has it: a line of JSON each.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The contract's name and version.
pub(crate) const SCHEMA: &str = "thalweg.codec-bench/1";

/// Which messages and which codecs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selection {
    /// Whose messages.
    pub(crate) from: From,
    /// Of these kinds only.
    #[serde(default)]
    pub(crate) messages: Option<Vec<String>>,
    /// By these codecs only.
    #[serde(default)]
    pub(crate) codecs: Option<Vec<String>>,
}

/// Where messages come from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum From {
    /// Those of `shapes.proto`, made from this number.
    Seed(u64),
    /// The user's own.
    Own {
        /// The file that declares their type.
        proto: PathBuf,
        /// Their type's full name.
        #[serde(rename = "type")]
        type_name: String,
        /// The file of messages.
        data: PathBuf,
    },
}

/// What there is: the first line of `bench`.
#[derive(Debug, Serialize)]
pub(crate) struct Begun {
    pub(crate) schema: &'static str,
    pub(crate) codecs: Vec<CodecInfo>,
    pub(crate) data: Vec<DataInfo>,
    pub(crate) sizes: Vec<Size>,
    pub(crate) lines: Vec<Line>,
}

/// A line of `bench`'s stdin.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Converts so many times, untimed, and then so many times within the time that is told.
    Convert { line: Line, warm_ups: u64, conversions: u64 },
    /// What a conversion of the line asks of the allocator.
    Allocations { line: Line },
    /// What a conversion of each line takes, counted by callgrind, whose files go into the folder.
    Instructions { folder: PathBuf },
    /// Writes the messages into the folder, for programs that are not this one.
    Messages { folder: PathBuf },
}

/// A line of `bench`'s stdout, for each request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    ElapsedNs(u64),
    Allocations(Allocations),
    Instructions(Vec<InstructionsOf>),
    Messages(usize),
    Error(String),
}

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Encode,
    Decode,
    RoundTrip,
}

/// What bytes a codec makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Protobuf,
    Json,
    ProtoJson,
    MessagePack,
}

/// Whose memory holds what a codec decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decodes {
    /// The message's own: nothing of it is in the bytes any more.
    Owned,
    /// Strings stay in the bytes. Each field is read within the time, as its user still has to.
    Borrowed,
}

/// A codec doing something to a kind of message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) data: String,
    pub(crate) codec: String,
    pub(crate) operation: Operation,
}

/// A codec.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CodecInfo {
    pub(crate) name: String,
    /// Of the crate.
    pub(crate) version: String,
    pub(crate) format: Format,
    /// The message's type is known at run time only.
    pub(crate) dynamic: bool,
    pub(crate) decodes: Decodes,
    /// In a few words, how it is used.
    pub(crate) about: String,
}

/// A kind of message.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DataInfo {
    pub(crate) name: String,
    /// In a few words.
    pub(crate) about: String,
    /// How many different messages of it are converted in turn.
    pub(crate) messages: usize,
}

/// Bytes of a message, on average over the messages of its kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Size {
    pub(crate) data: String,
    pub(crate) codec: String,
    /// As the codec makes them.
    pub(crate) raw: f64,
    /// Each message compressed by itself with gzip, level 6.
    pub(crate) gzip: f64,
    /// Each message compressed by itself with zstd, level 3.
    pub(crate) zstd: f64,
}

/// What one conversion asks of the allocator, on average.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Allocations {
    /// Blocks; one that grows counts once more each time.
    pub(crate) blocks: f64,
    pub(crate) bytes: f64,
}

/// Instructions of one conversion of a line.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InstructionsOf {
    #[serde(flatten)]
    pub(crate) line: Line,
    pub(crate) instructions: f64,
}

impl Operation {
    /// All of them, in the order in which they are measured.
    pub(crate) const ALL: [Self; 3] = [Self::Encode, Self::Decode, Self::RoundTrip];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::RoundTrip => "round trip",
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} of {}", self.codec, self.operation, self.data)
    }
}
