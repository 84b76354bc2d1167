//! The protocol between the lab and this program, described in `peers/README.md`: JSON lines.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Name and version of the protocol.
pub(crate) const SCHEMA: &str = "thalweg.codec-bench/1";

/// Selected messages and codecs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selection {
    /// Source of the messages.
    pub(crate) from: From,
    /// Only these kinds, if set.
    #[serde(default)]
    pub(crate) messages: Option<Vec<String>>,
    /// Only these codecs, if set.
    #[serde(default)]
    pub(crate) codecs: Option<Vec<String>>,
}

/// Source of messages.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum From {
    /// Messages of `shapes.proto`, generated from this seed.
    Seed(u64),
    /// The user's own messages.
    Own {
        /// The file that declares their type.
        proto: PathBuf,
        /// Full name of the type.
        #[serde(rename = "type")]
        type_name: String,
        /// The file of messages.
        data: PathBuf,
    },
}

/// First line of `bench`: everything available.
#[derive(Debug, Serialize)]
pub(crate) struct Hello {
    pub(crate) schema: &'static str,
    pub(crate) codecs: Vec<CodecInfo>,
    pub(crate) data: Vec<DataInfo>,
    pub(crate) sizes: Vec<Size>,
    pub(crate) lines: Vec<Line>,
}

/// A request: a line of `bench`'s stdin.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Runs untimed warm-ups, then timed conversions.
    Convert { line: Line, warm_ups: u64, conversions: u64 },
    /// Returns the allocations of a conversion.
    Allocations { line: Line },
    /// Returns the instructions of a conversion of each line, counted by callgrind, whose files go to the folder.
    Instructions { folder: PathBuf },
    /// Writes the messages to the folder, for other programs.
    Messages { folder: PathBuf },
}

/// A response: a line of `bench`'s stdout.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Response {
    ElapsedNs(u64),
    Allocations(Allocations),
    Instructions(Vec<InstructionsOf>),
    Messages(usize),
    Error(String),
}

/// An operation on messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Encode,
    Decode,
    RoundTrip,
}

/// Format of encoded messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Protobuf,
    Json,
    ProtoJson,
    MessagePack,
}

/// Ownership of decoded messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decodes {
    /// The message owns all of its data.
    Owned,
    /// Strings stay in the input bytes. The measured time includes reading each field, because users must do that, too.
    Borrowed,
}

/// A codec's operation on a kind of message.
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
    /// Version of the crate.
    pub(crate) version: String,
    pub(crate) format: Format,
    /// Whether message types are only known at run time.
    pub(crate) dynamic: bool,
    pub(crate) decodes: Decodes,
    /// Short description of its usage.
    pub(crate) about: String,
}

/// A kind of message.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DataInfo {
    pub(crate) name: String,
    /// Short description.
    pub(crate) about: String,
    /// Number of different messages that are converted in turn.
    pub(crate) messages: usize,
}

/// Mean bytes of messages of a kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Size {
    pub(crate) data: String,
    pub(crate) codec: String,
    /// Size as encoded.
    pub(crate) raw: f64,
    /// Size with each message compressed separately with gzip, level 6.
    pub(crate) gzip: f64,
    /// Size with each message compressed separately with zstd, level 3.
    pub(crate) zstd: f64,
}

/// Mean allocations of a conversion.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Allocations {
    /// Allocated blocks; each reallocation counts again.
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
    /// All operations, in the order of measurement.
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
