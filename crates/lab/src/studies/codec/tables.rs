//! Tables of the `thalweg.codec/1` schema.

use serde::{Deserialize, Serialize};
use thalweg_measure::validity::Reason;

use super::line::{CodecLine, Decodes, Format};

/// A codec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecInfo {
    /// Name used in all other tables.
    pub(crate) name: String,
    /// Version of the crate.
    pub(crate) version: String,
    /// Format that it writes.
    pub(crate) format: Format,
    /// Whether the message's type is known only at run time.
    pub(crate) dynamic: bool,
    /// Ownership of decoded messages; `None` if the program does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decodes: Option<Decodes>,
    /// Short description of its usage.
    pub(crate) about: String,
}

/// A kind of message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataInfo {
    /// Name used in all other tables.
    pub(crate) name: String,
    /// Short description.
    pub(crate) about: String,
    /// Number of different messages converted in turn.
    pub(crate) messages: usize,
}

/// Mean size of the messages of a kind, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageSize {
    pub(crate) data: String,
    /// Name of the codec.
    pub(crate) codec: String,
    /// Size as written by the codec.
    pub(crate) raw: f64,
    /// Size with each message compressed alone with gzip, level 6.
    pub(crate) gzip: f64,
    /// Size with each message compressed alone with zstd, level 3.
    pub(crate) zstd: f64,
}

/// A line at one number of conversions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CodecStep {
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// Whether it is the line's duplicate, for the noise floor.
    #[serde(default, rename = "again", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_duplicate: bool,
    /// Conversions per window.
    pub(crate) conversions: u64,
    /// Duration of each valid window, by round.
    pub(crate) elapsed_ns: Vec<u64>,
    /// Why the other windows are not valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_valid: Vec<Reason>,
}

/// A step left out for lack of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLeftOut {
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    pub(crate) conversions: u64,
    /// Estimated duration of a window, ns.
    pub(crate) would_take_ns: u64,
}

/// Mean allocations per conversion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// Blocks; each growth counts as another block.
    pub(crate) blocks: f64,
    /// Bytes of these blocks.
    pub(crate) bytes: f64,
}

/// [`Allocations`] of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AllocationsOf {
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    #[serde(flatten)]
    pub(crate) allocations: Allocations,
}

/// Instructions per conversion of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstructionsOf {
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    pub(crate) instructions: f64,
}

/// Unary calls that echo a payload as large as a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallsOf {
    pub(crate) data: String,
    /// Format of the message.
    pub(crate) format: Format,
    /// Payload bytes each way.
    pub(crate) size_bytes: u64,
    pub(crate) in_flight: u32,
    /// Results by round.
    pub(crate) rounds: Vec<CallFigures>,
}

/// Results of one window of calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Median time of a call.
    pub(crate) p50_ns: f64,
    /// Processor time of client and server per call.
    pub(crate) cpu_ns: f64,
    pub(crate) rate_per_s: f64,
}

/// Results of a peer in another language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerResult {
    /// Name of the folder.
    pub(crate) name: String,
    /// Version that it reports.
    pub(crate) version: String,
    /// Its method in a sentence.
    pub(crate) method: String,
    pub(crate) codecs: Vec<CodecInfo>,
    /// Its figures.
    pub(crate) lines: Vec<PeerLine>,
    /// Results of plain loops, which many publications use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) loops: Vec<PeerLoop>,
}

/// One plain loop of a peer. It follows a few conversions and shorter loops, in a separate process for the codec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerLoop {
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// Index of the process, from 0.
    pub(crate) round: u32,
    pub(crate) conversions: u64,
    /// Total time.
    pub(crate) elapsed_ns: u64,
}

/// A line of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerLine {
    #[serde(flatten)]
    pub(crate) line: CodecLine,
    /// Time per conversion, by iteration.
    pub(crate) ns_per_conversion: Vec<f64>,
    /// Bytes of a message.
    pub(crate) bytes: f64,
}
