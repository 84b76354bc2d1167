//! What came of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thalweg_lab::record::{CpuTime, Distribution, Latency};

/// What a result says it is.
pub const SCHEMA: &str = "thalweg.load-run/1";

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whom it called.
    pub targets: Vec<String>,
    /// `package.Service/Method`.
    pub method: String,
    /// `unary`, `client-stream`, `server-stream` or `bidi-stream`.
    pub kind: String,
    /// `closed`; or `open`: calls had times to begin at, and latency counts from there.
    #[serde(rename = "loop")]
    pub loop_kind: String,
    /// The schedule of an open loop, as it was written.
    pub schedule: Option<String>,
    /// How starts lay about it: `constant` or `poisson`.
    pub spacing: Option<String>,
    /// Calls in flight, of an open loop at the most.
    pub in_flight: u32,
    /// Connections that were asked for, of all targets.
    pub connections: u32,
    /// Those that the kernel saw; `null` where it could not be asked.
    pub connections_established: Option<u32>,
    /// Driven first, and not counted.
    pub warmup_ns: u64,
    /// When measuring began and ended, as RFC 3339 has it.
    pub started: String,
    /// See `started`.
    pub ended: String,
    /// What was measured.
    pub duration_ns: u64,
    /// How long calls took that were under way at the end.
    pub drain_ns: u64,
    /// Calls that ended with OK, each second of the measured time.
    pub rate_per_s: f64,
    /// Calls that the schedule had, each second.
    pub scheduled_per_s: Option<f64>,
    /// Calls that ended with OK.
    pub ok: u64,
    /// Calls that did not.
    pub failed: u64,
    /// Those by their status.
    pub errors: BTreeMap<String, u64>,
    /// Calls that began more than a millisecond behind their time.
    pub late: u64,
    /// Calls that were to begin and never did.
    pub dropped: u64,
    /// Messages and their bytes.
    pub messages_sent: u64,
    /// See `messages_sent`.
    pub messages_received: u64,
    /// See `messages_sent`.
    pub bytes_sent: u64,
    /// See `messages_sent`.
    pub bytes_received: u64,
    /// From the intended start to the end, of calls that ended with OK.
    pub latency: Option<Timing>,
    /// From the actual start, of the same.
    pub service: Option<Timing>,
    /// From the intended start to the actual one, of all calls.
    pub wait: Option<Timing>,
    /// From the intended start to the end, of calls that failed.
    pub failed_latency: Option<Timing>,
    /// From the start of a stream to its first response.
    pub first_message: Option<Timing>,
    /// From a request of a bidi stream to the response of the same number.
    pub reply: Option<Timing>,
    /// How long an interval is.
    pub interval_ns: u64,
    /// The run over time.
    pub intervals: Vec<Interval>,
    /// How long the client looked at the clock for the next start.
    pub spun_ns: u64,
    /// The client's processor time.
    pub client_cpu: CpuTime,
    /// The same, for each call that ended with OK, without `spun_ns`.
    pub client_cpu_per_call: Option<CpuTime>,
    /// What was expected, and whether it was kept.
    #[serde(default)]
    pub gates: Vec<Judged>,
    /// What a reader must know.
    pub notes: Vec<RunNote>,
}

/// How something was distributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Of how many.
    pub count: u64,
    /// ns.
    #[serde(flatten)]
    pub ns: Latency,
    /// HdrHistogram V2, in Base64: three digits, up to an hour.
    pub histogram: String,
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, counted from where measuring did.
    pub at_ns: u64,
    /// Calls that the schedule had in it; 0 for a closed loop.
    pub scheduled: f64,
    /// Calls that ended with OK in it.
    pub ok: u64,
    /// Calls that did not.
    pub failed: u64,
    /// Of those that ended in it, how many had begun more than a millisecond behind their time.
    pub late: u64,
    /// Calls under way at its end.
    pub in_flight: u64,
    /// Of calls that ended with OK in it, ns.
    pub latency_ns: Option<Latency>,
    /// Bytes of messages.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_received: u64,
}

/// What a condition says of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The condition, as it was written.
    pub gate: String,
    /// The figure that the run has; none where it has none.
    pub figure: String,
    /// Whether it is kept. A figure that is not there keeps nothing.
    pub is_kept: bool,
}

/// Something that a reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNote {
    /// One sentence.
    pub text: String,
    /// The figures say nothing of the server.
    pub invalidates: bool,
}

impl Timing {
    pub(crate) fn of(distribution: &Distribution) -> Option<Self> {
        Some(Self {
            count: distribution.len(),
            ns: distribution.latency()?,
            histogram: distribution.encoded(),
        })
    }
}

impl Interval {
    /// Adds what another one has, of the same time or right behind it. Percentiles are the worse ones of both.
    pub(crate) fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.ok += other.ok;
        self.failed += other.failed;
        self.late += other.late;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.latency_ns = match (self.latency_ns, other.latency_ns) {
            (Some(one), Some(other)) => Some(one.worse(other)),
            (one, other) => one.or(other),
        };
    }
}

impl LoadRun {
    /// Calls that ended.
    pub fn calls(&self) -> u64 {
        self.ok + self.failed
    }

    /// The share of them that failed; 0 where there are none.
    pub fn failed_share(&self) -> f64 {
        if self.calls() == 0 { 0.0 } else { self.failed as f64 / self.calls() as f64 }
    }

    /// Whether the figures are the server's.
    pub fn is_valid(&self) -> bool {
        !self.notes.iter().any(|note| note.invalidates)
    }
}
