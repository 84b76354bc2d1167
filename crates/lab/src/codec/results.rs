//! The `thalweg.codec/1` schema: everything a codec study found, and where and how it was found.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Format, Line, Operation};
use crate::results::{Machine, ReadError, Versions, read_schema};

/// The schema's name and version: a field that changes its meaning raises the number.
pub const CODEC_SCHEMA: &str = "thalweg.codec/1";

/// Everything a codec study found. Serialised, it is the schema [`CODEC_SCHEMA`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodecResults {
    /// [`CODEC_SCHEMA`].
    pub schema: String,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// When the last figure was taken: RFC 3339, UTC.
    pub ended: String,
    /// How many windows the plan had; fewer in [`Self::steps`]: the study was cut short.
    pub planned: usize,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub settings: Settings,
    /// What was compared, in the order of the tables.
    pub codecs: Vec<CodecInfo>,
    /// What was converted, in the order of the tables.
    pub data: Vec<DataInfo>,
    /// How large the messages are as bytes.
    pub sizes: Vec<Size>,
    /// How long conversions took.
    pub steps: Vec<Step>,
    /// Steps for which there was no time.
    pub steps_left_out: Vec<StepLeftOut>,
    /// What conversions ask of the allocator.
    pub allocations: Vec<AllocationsOf>,
    /// Instructions of conversions, counted by callgrind in a run of its own.
    pub instructions: Vec<InstructionsOf>,
    /// Calls over a UNIX socket, whose payloads are as large as the messages.
    pub calls: Vec<CallsOf>,
    /// Programs of other languages.
    pub peers: Vec<PeerResult>,
    /// What was asked for and could not be had: codecs, peers, instructions, calls.
    pub left_out: Vec<LeftOut>,
}

/// How a study was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Windows of each line at each step.
    pub rounds: u32,
    /// Conversions before each window that were not counted.
    pub warm_ups: u64,
    /// What messages were generated from; `null` where they are the user's own.
    pub seed: Option<u64>,
    /// The processor that conversions were kept on.
    pub cpu: Option<usize>,
}

/// A codec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecInfo {
    /// What it is called in all other tables.
    pub name: String,
    /// Of the crate.
    pub version: String,
    /// What it makes.
    pub format: Format,
    /// The message's type is known at run time only.
    pub dynamic: bool,
    /// In a few words, how it is used.
    pub about: String,
}

/// A kind of message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataInfo {
    /// What it is called in all other tables.
    pub name: String,
    /// In a few words.
    pub about: String,
    /// How many different messages of it are converted in turn.
    pub messages: usize,
}

/// Bytes of a message, on average over the messages of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// The message.
    pub data: String,
    /// Whose bytes.
    pub codec: String,
    /// As the codec makes them.
    pub raw: f64,
    /// Each message compressed by itself with gzip, level 6.
    pub gzip: f64,
    /// Each message compressed by itself with zstd, level 3.
    pub zstd: f64,
}

/// A line at one number of conversions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Which.
    #[serde(flatten)]
    pub line: Line,
    /// The line's double, for the noise floor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// How many conversions each window had.
    pub conversions: u64,
    /// How long each window took, by round.
    pub elapsed_ns: Vec<u64>,
}

/// A step that would have taken too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLeftOut {
    /// Which.
    #[serde(flatten)]
    pub line: Line,
    /// How many conversions.
    pub conversions: u64,
    /// How long a window would take, ns, as estimated.
    pub would_take_ns: u64,
}

/// What one conversion asks of the allocator, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// Blocks; one that grows counts once more each time.
    pub blocks: f64,
    /// Bytes of them.
    pub bytes: f64,
}

/// [`Allocations`] of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationsOf {
    /// Which.
    #[serde(flatten)]
    pub line: Line,
    /// How many.
    #[serde(flatten)]
    pub allocations: Allocations,
}

/// Instructions of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstructionsOf {
    /// Which.
    #[serde(flatten)]
    pub line: Line,
    /// For one conversion.
    pub instructions: f64,
}

/// Unary calls that echo a payload as large as a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallsOf {
    /// The message.
    pub data: String,
    /// As which bytes.
    pub format: Format,
    /// Payload bytes, each way.
    pub size_bytes: u64,
    /// Calls in flight.
    pub in_flight: u32,
    /// What was found, by round.
    pub rounds: Vec<CallFigures>,
}

/// What one window of calls found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Median time of a call.
    pub p50_ns: f64,
    /// Processor time of the client and the server together, for a call.
    pub cpu_ns: f64,
    /// Calls per second.
    pub rate_per_s: f64,
}

/// What a program of another language found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerResult {
    /// The folder's name.
    pub name: String,
    /// What it calls itself.
    pub version: String,
    /// How it measured, in a sentence.
    pub method: String,
    /// Its codecs.
    pub codecs: Vec<CodecInfo>,
    /// Its figures.
    pub lines: Vec<PeerLine>,
}

/// A line of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerLine {
    /// Which.
    #[serde(flatten)]
    pub line: Line,
    /// Time of a conversion, by iteration.
    pub ns_per_conversion: Vec<f64>,
    /// Bytes of a message.
    pub bytes: f64,
}

/// What could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl CodecResults {
    /// The codec of this name, of a peer as well.
    pub fn codec(&self, name: &str) -> Option<&CodecInfo> {
        let theirs = self.peers.iter().flat_map(|peer| &peer.codecs);
        self.codecs.iter().chain(theirs).find(|codec| codec.name == name)
    }

    /// How large the codec makes the message.
    pub fn size(&self, data: &str, codec: &str) -> Option<&Size> {
        self.sizes.iter().find(|size| size.data == data && size.codec == codec)
    }

    /// All windows were measured.
    pub fn is_complete(&self) -> bool {
        self.steps.iter().map(|step| step.elapsed_ns.len()).sum::<usize>() >= self.planned
    }

    /// A figure was taken just now.
    pub fn figure_taken(&mut self) {
        self.ended = now();
    }

    /// Windows that were measured.
    pub fn measured(&self) -> usize {
        self.steps.iter().map(|step| step.elapsed_ns.len()).sum()
    }

    /// The operations that were measured.
    pub fn operations(&self) -> Vec<Operation> {
        let has = |operation: &Operation| self.steps.iter().any(|step| step.line.operation == *operation);
        Operation::ALL.into_iter().filter(has).collect()
    }
}

pub(super) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// Reads the results of an earlier study.
pub fn read(path: &Path) -> Result<CodecResults, ReadError> {
    read_schema(path, CODEC_SCHEMA)
}
