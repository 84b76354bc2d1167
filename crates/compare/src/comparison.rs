//! The schema `thalweg.comparison/1`: two servers measured alternately.

use serde::{Deserialize, Serialize};
use thalweg_load::LoadRun;
use thalweg_load::record::LoadResult;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::machine::{Machine, Versions};

/// Schema name in the file.
pub const SCHEMA: &str = "thalweg.comparison/1";

/// Two servers measured alternately, in the order A B, B A, A B …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// Start time (RFC 3339, UTC).
    pub started: String,
    /// End time (RFC 3339, UTC).
    pub ended: String,
    /// The machine that measured.
    pub machine: Machine,
    /// Versions of the programs used.
    pub versions: Versions,
    /// Settings of the measurement.
    pub settings: Settings,
    /// The base.
    pub a: MeasuredSide,
    /// The side compared with the base.
    pub b: MeasuredSide,
    /// Windows in the order of measurement.
    pub windows: Vec<WindowResult>,
}

/// Settings of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Requested rounds. The measurement was cut short if there are fewer windows.
    pub rounds: u32,
    /// Measured time of each window.
    pub window_ns: u64,
    /// Warm-up of each window, not measured.
    pub warmup_ns: u64,
    /// Other arguments of `thalweg load`.
    pub load: Vec<String>,
    /// CPUs that the servers were pinned to.
    pub server_cpus: Option<CpuList>,
    /// CPUs that the client was pinned to.
    pub client_cpus: Option<CpuList>,
}

/// A measured server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSide {
    /// Name in reports.
    pub name: String,
    /// Command that started it.
    pub command: String,
    /// Address it listened on.
    pub target: String,
    /// Revision it was built from, if it was checked out for this comparison.
    pub revision: Option<Revision>,
}

/// A revision of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Name given by the user.
    pub name: String,
    /// The commit's hash.
    pub commit: String,
    /// Build command, if any.
    pub build: Option<String>,
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideId {
    /// The base.
    A,
    /// The side compared with the base.
    B,
}

/// A window: one run of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    /// Side of the measured server.
    pub side: SideId,
    /// Round, from 0. Windows of the same round are a pair.
    pub round: u32,
    /// CPU time of the server's processes in the measured time, in ns. `null` if the kernel did not report it.
    pub server_cpu_ns: Option<u64>,
    /// The client's result, without histograms.
    pub run: WindowRun,
}

/// Result of a client, for any method or for BenchmarkService.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WindowRun {
    /// `thalweg.load-run/2` or `/1`.
    Method(Box<LoadRun>),
    /// `thalweg.load/3`.
    Benchmark(Box<LoadResult>),
}

impl WindowRun {
    /// Returns the number of finished calls, or of successful messages of streams plus failed calls.
    pub(crate) fn ended(&self) -> u64 {
        match self {
            Self::Method(run) => {
                let messages = run.timed_messages(run.messages_sent, run.messages_received);
                messages.unwrap_or(run.ok) + run.failed
            }
            Self::Benchmark(result) => result.messages + result.error_count(),
        }
    }

    /// Returns the rate per second.
    pub fn rate_per_s(&self) -> f64 {
        match self {
            Self::Method(run) => run.messages_per_s().unwrap_or(run.rate_per_s),
            Self::Benchmark(result) => result.rate_per_s,
        }
    }

    /// Returns the same result without histograms, which take most of the space.
    pub(crate) fn without_histograms(self) -> Self {
        match self {
            Self::Method(run) => Self::Method(Box::new(run.without_histograms())),
            Self::Benchmark(result) => Self::Benchmark(Box::new(result.without_histogram())),
        }
    }
}
