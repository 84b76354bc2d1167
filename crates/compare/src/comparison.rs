//! The schema `thalweg.comparison/1`: two servers that were measured in turns.

use serde::{Deserialize, Serialize};
use thalweg_load::LoadRun;
use thalweg_load::record::LoadResult;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::machine::{Machine, Versions};

/// What a comparison says it is.
pub const SCHEMA: &str = "thalweg.comparison/1";

/// Two servers that were measured in turns, A B, B A, A B …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it began and ended: RFC 3339, UTC.
    pub started: String,
    /// See `started`.
    pub ended: String,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub settings: Settings,
    /// The base.
    pub a: MeasuredSide,
    /// What is compared with it.
    pub b: MeasuredSide,
    /// In the order of measuring.
    pub windows: Vec<WindowResult>,
}

/// How a comparison was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Rounds that were asked for: fewer windows mean that it was cut short.
    pub rounds: u32,
    /// What each window measured.
    pub window_ns: u64,
    /// Driven first in each, and not counted.
    pub warmup_ns: u64,
    /// What `thalweg load` was told besides.
    pub load: Vec<String>,
    /// Processors that servers were kept on.
    pub server_cpus: Option<CpuList>,
    /// Processors that the client was kept on.
    pub client_cpus: Option<CpuList>,
}

/// A server that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSide {
    /// What it is called in reports.
    pub name: String,
    /// The command that started it.
    pub command: String,
    /// Where it listened.
    pub target: String,
    /// What it was built from, where that was checked out for it.
    pub revision: Option<Revision>,
}

/// A revision of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// As it was named.
    pub name: String,
    /// The commit's hash.
    pub commit: String,
    /// What it was built by, if there was anything to build.
    pub build: Option<String>,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The base.
    A,
    /// What is compared with it.
    B,
}

/// A window: one run of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    /// Whose server.
    pub side: Which,
    /// From 0; windows of the same round are a pair.
    pub round: u32,
    /// Processor time of the server's processes in the measured time, ns; `null` where the kernel did not tell.
    pub server_cpu_ns: Option<u64>,
    /// What the client found, without histograms.
    pub run: WindowRun,
}

/// What a client finds: of any method, or of BenchmarkService.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WindowRun {
    /// `thalweg.load-run/2` or `/1`.
    Method(Box<LoadRun>),
    /// `thalweg.load/3`.
    Benchmark(Box<LoadResult>),
}

impl WindowRun {
    /// Calls, or messages of streams, that ended well, and calls that did not.
    pub(crate) fn ended(&self) -> u64 {
        match self {
            Self::Method(run) => {
                let messages = run.timed_messages(run.messages_sent, run.messages_received);
                messages.unwrap_or(run.ok) + run.failed
            }
            Self::Benchmark(result) => result.messages + result.error_count(),
        }
    }

    /// Each second.
    pub fn rate_per_s(&self) -> f64 {
        match self {
            Self::Method(run) => run.messages_per_s().unwrap_or(run.rate_per_s),
            Self::Benchmark(result) => result.rate_per_s,
        }
    }

    /// The same without what takes most of the room.
    pub(crate) fn without_histograms(self) -> Self {
        match self {
            Self::Method(run) => Self::Method(Box::new(run.without_histograms())),
            Self::Benchmark(result) => Self::Benchmark(Box::new(result.without_histogram())),
        }
    }
}
