//! The `thalweg.lab/2` schema: everything a study found, and where and how it was found.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cpus::CpuList;
pub use crate::plan::Label;
use crate::plan::{CHANNELS, Point, Strategy};
use crate::record::LoadResult;
use crate::stack::{Pair, Stack};

/// The schema's name and version: a field that changes its meaning raises the number.
pub const LAB_SCHEMA: &str = "thalweg.lab/2";
/// The name of the results in the study's directory.
pub const RESULTS_FILE: &str = "results.json";

/// Everything a study found. Serialised, it is the schema [`LAB_SCHEMA`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabResults {
    /// [`LAB_SCHEMA`].
    pub schema: String,
    /// Which study: `sizes` or `channels`.
    pub study: String,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// When the last point that is here ended: RFC 3339, UTC.
    pub ended: String,
    /// How many windows the plan has for [`Self::points`]; fewer there mean that the study was cut short.
    pub planned: usize,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub settings: Settings,
    /// The stacks that were measured, in the order in which they were named, ours first. More than one: the study
    /// compares them.
    pub stacks: Vec<StackInfo>,
    /// Stacks that were asked for and could not be had.
    pub left_out: Vec<LeftOut>,
    /// Ours against ours, measured before everything else, as stacks are compared: the noise floor. Empty where
    /// nothing is compared.
    pub aa: Vec<AaResult>,
    /// What was found, in the order of measuring.
    ///
    /// A *cell* is all of these with an equal [`Point`]. Where nothing is compared, a cell is one window of our own
    /// pair, or of the bare socket. Where stacks are compared, each pair (and the bare socket, if it was asked for) has
    /// a window in each round of the cell; round 0 goes through the pairs in order, round 1 back, and so on, so windows
    /// of one round stand next to each other in time.
    pub points: Vec<PointResult>,
    /// System calls, counted in runs of their own. Empty where nothing is compared.
    pub system_calls: Vec<SystemCallsResult>,
    /// Gaps between bytes, watched in windows of their own. Of the channels study alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wire: Vec<WireResult>,
}

/// Where a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model, as the kernel names it.
    pub cpu: String,
    /// Processors that the study may use.
    pub cores: usize,
    /// The kernel's name and release.
    pub kernel: String,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// How many threads ran or wanted to, on average over the minute before the study.
    #[serde(default)]
    pub load_average: f64,
}

/// With what a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Of the stack and the lab.
    pub thalweg: String,
    /// `release`, or `debug`, whose figures say nothing about the stack.
    pub build: String,
}

/// How a study was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Processors the clients were kept on; `null` where there is one processor only.
    pub client_cpus: Option<CpuList>,
    /// Processors the server was kept on.
    pub server_cpus: Option<CpuList>,
    /// Threads of each client, where it was told how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<u32>,
    /// Threads of each server, where it was told how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_threads: Option<u32>,
    /// The server that was driven, where it is none that the lab started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// A stack that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackInfo {
    /// Its name, with the variant that was asked for.
    pub stack: Stack,
    /// What it calls itself: `gRPC C++ 1.51.1`.
    pub version: String,
}

/// A stack that was asked for and is not among the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub stack: Stack,
    /// Why it could not be had.
    pub reason: String,
}

/// One window: a point measured once, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// What was asked.
    pub point: Point,
    /// Whose client and server; `None` for a bare socket.
    pub pair: Option<Pair>,
    /// How the client came by its connections; `None` where the point's number of them says all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Which turn of the cell, from 0.
    pub round: u32,
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What both processes used meanwhile, as the kernel accounts it: alike for every stack, unlike
    /// [`LoadResult::client_cpu`], which is what the driver says of itself. `None` for bare sockets, for windows that
    /// failed, and where the kernel does not tell.
    pub usage: Option<Usage>,
}

/// What the client's and the server's process used in the measured time, warm-up excluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Between the two moments at which the parent looked, which are just after those at which the driver said
    /// `measuring` and `measured`; ns. It is longer than [`LoadResult::duration_ns`] by some 0.1 ms.
    pub window_ns: u64,
    /// The driver's.
    pub client: ProcessUsage,
    /// The server's.
    pub server: ProcessUsage,
}

/// What one process used, with all its threads. Totals: divided by [`LoadResult::messages`] they are per operation.
/// Processor time includes that of threads that ended meanwhile; their context switches nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Processor time in user space, ns. [`Self::cpu_ns`] is exact; how it divides into user and system is sampled by
    /// the kernel's tick, and coarse in short windows.
    pub user_ns: u64,
    /// Processor time in the kernel on the process's behalf, ns.
    pub system_ns: u64,
    /// Times that a thread gave up its processor to wait.
    pub voluntary_switches: u64,
    /// Times that a thread's processor was taken from it.
    pub involuntary_switches: u64,
    /// Time in which a thread was ready to run and others ran, added up over threads, ns.
    #[serde(default)]
    pub waited_ns: u64,
}

impl ProcessUsage {
    /// Processor time, user and system, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Context switches of both kinds.
    pub fn context_switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }
}

/// A window of ours against ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AaResult {
    /// Which of the two it stands for. A and B are the same program, each with a server process of its own, as the
    /// stacks that are compared have.
    pub label: Label,
    /// The window. Its [`PointResult::pair`] is ours, and rounds interleave A and B as they do pairs.
    #[serde(flatten)]
    pub window: PointResult,
}

/// System calls per operation of a pair at a point, counted in a run of its own in which counting slowed everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemCallsResult {
    /// What was asked. Its times are those of the counting run.
    pub point: Point,
    /// Whose client and server.
    pub pair: Pair,
    /// How the client came by its connections; `None` where the point's number of them says all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// What was found.
    #[serde(flatten)]
    pub outcome: SystemCallsOutcome,
}

/// What came of counting system calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemCallsOutcome {
    /// How many there were.
    Counted(SystemCalls),
    /// Why they could not be counted.
    Failed(String),
}

/// System calls per operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// The driver's.
    pub client_per_operation: f64,
    /// The server's.
    pub server_per_operation: f64,
}

/// When bytes moved between a client and its server and when none did, watched by a hop in between. The hop takes time of
/// its own, so rates and latencies of the window are not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WireResult {
    /// What was asked.
    pub point: Point,
    /// Whose client and server.
    pub pair: Pair,
    /// How the client came by its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// What was found.
    #[serde(flatten)]
    pub outcome: WireOutcome,
}

/// What came of watching the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireOutcome {
    /// What was seen.
    Watched(Box<Wire>),
    /// Why nothing was.
    Failed(String),
}

/// What was seen on the wire in the measured time. The load is a closed loop, so calls were outstanding all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// For how long.
    pub watched_ns: u64,
    /// No byte was under way, on no connection.
    pub all: Idle,
    /// No byte was under way on a connection, for all of them and added up.
    pub each: Idle,
    /// Bytes that the client sent.
    pub sent_bytes: u64,
    /// Bytes that the server sent.
    pub received_bytes: u64,
    /// The share of the time in which the hop's thread did not sleep. Near 1, the hop was the limit.
    pub hop_busy_share: f64,
}

/// When nothing moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// The share of the time.
    pub share: f64,
    /// How many gaps there were, and how long, ns, to 1 %. The percentiles are 0 when there were none.
    pub gaps: u64,
    /// Half of the gaps are no longer.
    pub p50_ns: u64,
    /// 90 %.
    pub p90_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How many gaps are no longer than so many ns, and longer than the bound before. Bounds without any are left out.
    pub buckets: Vec<(u64, u64)>,
}

/// What came of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The driver's result.
    Measured(Box<LoadResult>),
    /// Why there is none.
    Failed(String),
}

impl PointResult {
    /// The driver's result, where there is one.
    pub fn measured(&self) -> Option<&LoadResult> {
        match &self.outcome {
            Outcome::Measured(result) => Some(result),
            Outcome::Failed(_) => None,
        }
    }
}

impl LabResults {
    /// It is a study of channels.
    pub fn is_channels(&self) -> bool {
        self.study == CHANNELS
    }

    /// More than one stack was asked for: the study compares.
    pub fn is_comparison(&self) -> bool {
        !self.is_channels() && self.stacks.len() + self.left_out.len() > 1
    }

    /// The pair with which all others are compared: our client at our server, or, where that is not measured, the first
    /// of those with which each round begins, such as our client at the server that all clients meet.
    pub fn reference(&self) -> Pair {
        let ours = Pair::ours();
        let mut pairs = self.points.iter().filter_map(|window| window.pair.as_ref());
        if pairs.clone().any(|pair| *pair == ours) { ours } else { pairs.next().cloned().unwrap_or(ours) }
    }

    /// Every planned point was tried.
    pub fn is_complete(&self) -> bool {
        self.points.len() >= self.planned
    }

    /// Some point was not measured, or some of its calls failed.
    pub fn has_failures(&self) -> bool {
        let is_good = |result: &LoadResult| result.error_count() == 0 && result.messages > 0;
        !self.points.iter().all(|point| point.measured().is_some_and(is_good))
    }
}

impl Machine {
    /// The machine this runs on. What the kernel does not tell is `unknown` or 0.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value_of = |text: &str, key: &str| {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = value_of(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu: value_of(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: CpuList::available().map_or(1, |list| list.as_slice().len()),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0.0),
        }
    }
}

impl Versions {
    /// This build's.
    pub fn this() -> Self {
        Self {
            thalweg: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

/// The directory of a study, and the results in it. Results are replaced as a whole: whoever reads them, or whatever
/// kills the study, sees either the old ones or the new ones.
#[derive(Debug)]
pub struct ResultsDirectory {
    path: PathBuf,
}

/// A directory that does not take the results.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {path}: {error}; name another directory with --out")]
pub struct NotWritable {
    path: PathBuf,
    error: io::Error,
}

impl ResultsDirectory {
    /// Makes the directory if need be and proves that files can be written there, before anything is measured.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, NotWritable> {
        let directory = Self { path: path.into() };
        let probe = directory.path.join(".writable");
        fs::create_dir_all(&directory.path)
            .and_then(|()| fs::write(&probe, b"probe"))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|error| directory.not_writable(error))?;
        Ok(directory)
    }

    /// Replaces the results.
    pub fn save(&self, results: &impl Serialize) -> Result<(), NotWritable> {
        let json = serde_json::to_string(results).expect("the schema has string keys only");
        self.write(RESULTS_FILE, &json)
    }

    /// Replaces the file of this name with `text`.
    pub fn write(&self, name: &str, text: &str) -> Result<(), NotWritable> {
        let unfinished = self.path.join(format!(".{name}.unfinished"));
        fs::File::create(&unfinished)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&unfinished, self.path.join(name)))
            .map_err(|error| self.not_writable(error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn not_writable(&self, error: io::Error) -> NotWritable {
        NotWritable { path: self.path.clone(), error }
    }
}

/// Results that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there, or not for us.
    #[error("cannot read {path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not the JSON of a study.
    #[error("{path} is not a study's results ({expected}): {reason}")]
    Schema {
        /// Which file.
        path: PathBuf,
        /// The schema that it should have.
        expected: &'static str,
        /// What is wrong with it, and where.
        reason: String,
    },
}

/// Reads what a study saved.
pub fn read(path: &Path) -> Result<LabResults, ReadError> {
    read_schema(path, LAB_SCHEMA)
}

/// Reads results of this schema.
pub(crate) fn read_schema<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let text = fs::read_to_string(path).map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
    let schema_error = |reason| ReadError::Schema { path: path.to_owned(), expected, reason };
    let head: Head = serde_json::from_str(&text).map_err(|error| schema_error(error.to_string()))?;
    if head.schema != expected {
        return Err(schema_error(format!("its schema is {}", head.schema)));
    }
    serde_json::from_str(&text).map_err(|error| schema_error(error.to_string()))
}
