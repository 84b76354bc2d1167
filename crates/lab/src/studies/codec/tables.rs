//! The tables of the `thalweg.codec/1` schema.

use serde::{Deserialize, Serialize};
use thalweg_measure::validity::Reason;

use super::line::{CodecLine, Decodes, Format};

/// A codec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecInfo {
    /// What it is called in all other tables.
    pub(crate) name: String,
    /// Of the crate.
    pub(crate) version: String,
    /// What it makes.
    pub(crate) format: Format,
    /// The message's type is known at run time only.
    pub(crate) dynamic: bool,
    /// Whose memory holds what it decodes; none where a program does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decodes: Option<Decodes>,
    /// In a few words, how it is used.
    pub(crate) about: String,
}

/// A kind of message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataInfo {
    /// What it is called in all other tables.
    pub(crate) name: String,
    /// In a few words.
    pub(crate) about: String,
    /// How many different messages of it are converted in turn.
    pub(crate) messages: usize,
}

/// Bytes of a message, on average over the messages of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageSize {
    /// The message.
    pub(crate) data: String,
    /// Whose bytes.
    pub(crate) codec: String,
    /// As the codec makes them.
    pub(crate) raw: f64,
    /// Each message compressed by itself with gzip, level 6.
    pub(crate) gzip: f64,
    /// Each message compressed by itself with zstd, level 3.
    pub(crate) zstd: f64,
}

/// A line at one number of conversions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CodecStep {
    /// Which.
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// The line's double, for the noise floor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) again: bool,
    /// How many conversions each window had.
    pub(crate) conversions: u64,
    /// How long each valid window took, by round.
    pub(crate) elapsed_ns: Vec<u64>,
    /// Why the others are not valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_valid: Vec<Reason>,
}

/// A step that would have taken too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLeftOut {
    /// Which.
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// How many conversions.
    pub(crate) conversions: u64,
    /// How long a window would take, ns, as estimated.
    pub(crate) would_take_ns: u64,
}

/// What one conversion asks of the allocator, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// Blocks; one that grows counts once more each time.
    pub(crate) blocks: f64,
    /// Bytes of them.
    pub(crate) bytes: f64,
}

/// [`Allocations`] of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AllocationsOf {
    /// Which.
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// How many.
    #[serde(flatten)]
    pub(crate) allocations: Allocations,
}

/// Instructions of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstructionsOf {
    /// Which.
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// For one conversion.
    pub(crate) instructions: f64,
}

/// Unary calls that echo a payload as large as a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallsOf {
    /// The message.
    pub(crate) data: String,
    /// As which bytes.
    pub(crate) format: Format,
    /// Payload bytes, each way.
    pub(crate) size_bytes: u64,
    /// Calls in flight.
    pub(crate) in_flight: u32,
    /// What was found, by round.
    pub(crate) rounds: Vec<CallFigures>,
}

/// What one window of calls found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Median time of a call.
    pub(crate) p50_ns: f64,
    /// Processor time of the client and the server together, for a call.
    pub(crate) cpu_ns: f64,
    /// Calls per second.
    pub(crate) rate_per_s: f64,
}

/// What a program of another language found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerResult {
    /// The folder's name.
    pub(crate) name: String,
    /// What it calls itself.
    pub(crate) version: String,
    /// How it measured, in a sentence.
    pub(crate) method: String,
    /// Its codecs.
    pub(crate) codecs: Vec<CodecInfo>,
    /// Its figures.
    pub(crate) lines: Vec<PeerLine>,
    /// The same in plain loops, as they are often published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) loops: Vec<PeerLoop>,
}

/// One loop of a peer: it came after a few conversions and shorter loops, in a process of the codec's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerLoop {
    /// Which.
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// Which process, from 0.
    pub(crate) round: u32,
    /// How many conversions.
    pub(crate) conversions: u64,
    /// How long all of them took.
    pub(crate) elapsed_ns: u64,
}

/// A line of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerLine {
    /// Which.
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// Time of a conversion, by iteration.
    pub(crate) ns_per_conversion: Vec<f64>,
    /// Bytes of a message.
    pub(crate) bytes: f64,
}
