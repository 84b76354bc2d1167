//! The `thalweg.load/3` schema: what one measurement found, with everything needed to read it rightly.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::distribution::Latency;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::wording::enumerated;

use super::bare_run::BareRun;
use crate::echo::EchoWork;

/// The schema's name and version: a field that changes its meaning raises the number.
pub const LOAD_SCHEMA: &str = "thalweg.load/3";

/// What one run of the driver found. Serialised, it is the schema `thalweg.load/3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// [`LOAD_SCHEMA`].
    pub schema: String,
    /// What the run was asked to do.
    pub settings: LoadSettings,
    /// When measuring began (warm-up over): RFC 3339, UTC, nanoseconds.
    pub started: String,
    /// When measuring ended: RFC 3339, UTC, nanoseconds.
    pub ended: String,
    /// The measured time by the monotonic clock, warm-up excluded.
    pub duration_ns: u64,
    /// From the end of the measured time until the last call that was then under way had ended. What ended in it is
    /// not counted. 0 where a number ended the run, which counts all.
    pub drain_ns: u64,
    /// A call waited for the one before it: the load adapts to the server, and latency says nothing about waiting.
    pub closed_loop: bool,
    /// What succeeded per second, in units of [`LoadSettings::call`]'s [operation](CallType::operation). The total
    /// over all connections.
    pub rate_per_s: f64,
    /// Calls that ended with status OK. A stream counts once, when it ends.
    pub calls: u64,
    /// Operations that succeeded: unary calls, or messages of a stream (bidi: messages that came back).
    pub messages: u64,
    /// Calls that ended otherwise, by the status code's canonical name (`UNAVAILABLE`).
    pub errors: BTreeMap<String, u64>,
    /// Payload bytes sent, without framing.
    pub bytes_sent: u64,
    /// Payload bytes received, without framing.
    pub bytes_received: u64,
    /// `null` when nothing succeeded, and of streams one way, whose messages have no latency that a client could see.
    pub latency_ns: Option<Latency>,
    /// How the messages of streams one way followed each other; `null` of all other calls, and when nothing succeeded.
    #[serde(default)]
    pub pace_ns: Option<Pace>,
    /// The largest latencies, or gaps of streams one way, and when they fell, largest first. They are part of
    /// [`Self::latency_ns`] and [`Self::pace_ns`] too.
    pub spikes: Vec<Spike>,
    /// The whole distribution, in ns, so that percentiles of several runs can be merged.
    pub histogram: Histogram,
    /// What the first call took, with its connecting, before anything was measured: of a run that echoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_call_ns: Option<u64>,
    /// What the stages of calls took whose server said its times, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTimes>,
    /// Processor time of the client process in the measured time.
    pub client_cpu: CpuTime,
    /// The client's processor time divided by [`Self::messages`]; `null` when nothing succeeded.
    pub client_cpu_per_call: Option<CpuTime>,
    /// How much of [`Self::client_cpu`] went into looking for answers that were not there yet, where else the client
    /// would have slept.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub looked_in_vain_ns: u64,
    /// Connections to the target.
    pub connections: Connections,
    /// How the calls were spread over the active connections: of the bare client alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// How many lanes the client's channel had, each time that it was another number: of an adaptive channel alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LanesAt>,
    /// What limits how far the figures can be trusted, one sentence each. Empty in a good run.
    pub notes: Vec<Note>,
}

impl LoadResult {
    /// Calls that ended with a status other than OK.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The same without its histogram, which is the most of it.
    pub fn without_histogram(mut self) -> Self {
        self.histogram = Histogram::default();
        self
    }

    /// A note says that the client was the limit.
    pub fn is_client_limit(&self) -> bool {
        self.notes.iter().any(Note::is_client_limit)
    }

    /// No note forbids using the figures.
    pub fn is_valid(&self) -> bool {
        self.notes.iter().all(|note| !note.invalidates)
    }
}

/// What a run was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSettings {
    /// Where the server listens, as it was given.
    pub target: String,
    /// Which kind of call.
    pub call: CallType,
    /// Payload bytes of one message, each way that the call type sends any.
    pub size_bytes: u64,
    /// Calls in flight, over all connections; a stream is one call.
    pub in_flight: u32,
    /// Connections asked for; of a channel that finds its own number, those it begins with.
    pub connections: u32,
    /// How calls come by a connection.
    #[serde(default)]
    pub lanes: LaneRule,
    /// What is called, where it is not the method of `grpc.testing.BenchmarkService` that [`Self::call`] names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodCall>,
    /// The work of the study of gRPC against a JSON API, where it is called in place of BenchmarkService.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<EchoWork>,
    /// What the bare client does, where that drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare: Option<BareRun>,
    /// How messages of streams went to the stack and came from it.
    #[serde(default)]
    pub handing: Handing,
    /// Driven before measuring begins, and not counted.
    pub warmup_ns: u64,
    /// How long to measure, when time ends the run.
    pub duration_ns: Option<u64>,
    /// How many operations to measure, when a count ends the run.
    pub total: Option<u64>,
    /// How long a connection of the client looks for an answer before it sleeps; 0: not at all; none: where that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_poll_ns: Option<u64>,
    /// Processors the client was kept on.
    pub cpus: Option<CpuList>,
}

/// How a stream's messages go from the stack to who reads them, and from who writes them to the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handing {
    /// Each is made anew and given away: `Streaming::message`, streams of messages. All that tonic has, and what a
    /// result had that does not say it.
    #[default]
    Owned,
    /// Read to a place that the reader has, and sent from where they are: `Streaming::message_into`,
    /// `thalweg::outbound`.
    InPlace,
}

impl Handing {
    /// Returns the name that it has in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Owned => "owned",
            Self::InPlace => "in-place",
        }
    }
}

/// A variant of our stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The ordinary API, with the library's defaults.
    #[default]
    Owned,
    /// Streams reuse the buffers of their messages.
    InPlace,
    /// Without busy polling: whoever waits sleeps at once.
    NoBusyPoll,
}

impl Variant {
    /// The default first.
    pub const ALL: [Self; 3] = [Self::Owned, Self::InPlace, Self::NoBusyPoll];

    /// Returns how its streams hand messages over.
    pub fn handing(self) -> Handing {
        match self {
            Self::Owned | Self::NoBusyPoll => Handing::Owned,
            Self::InPlace => Handing::InPlace,
        }
    }

    /// Returns how long it polls before it sleeps, unless that is the library's default.
    pub fn busy_poll(self) -> Option<Duration> {
        (self == Self::NoBusyPoll).then_some(Duration::ZERO)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Owned => "owned",
            Self::InPlace => "in-place",
            Self::NoBusyPoll => "no-busy-poll",
        })
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = Self::ALL.map(|variant| variant.to_string());
        Self::ALL
            .into_iter()
            .find(|variant| variant.to_string() == name)
            .ok_or_else(|| format!("unknown variant {name}: there are {}", enumerated(&all)))
    }
}

/// The four kinds of gRPC call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallType {
    /// One message out, one back. Latency: from the request handed over until its answer is in hand.
    Unary,
    /// Messages go out on a long stream, as fast as the stack takes them. A client does not see when one arrives:
    /// there is a [pace](LoadResult::pace_ns), and no latency.
    ClientStream,
    /// Messages come in on a long stream, as fast as the stack brings them. A client does not see when one was sent:
    /// there is a [pace](LoadResult::pace_ns), and no latency.
    ServerStream,
    /// Messages go out and come back on a long stream, several under way at once. Latency: from a message handed over
    /// until its echo is in hand.
    BidiStream,
    /// A bidi stream on which one message at a time is under way. Latency: as of a bidi stream.
    PingPong,
}

impl CallType {
    /// The four kinds of call that gRPC has, in the order of reports. A ping-pong is a bidi stream.
    pub const ALL: [Self; 4] = [Self::Unary, Self::ClientStream, Self::ServerStream, Self::BidiStream];

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client-stream",
            Self::ServerStream => "server-stream",
            Self::BidiStream => "bidi-stream",
            Self::PingPong => "ping-pong",
        }
    }

    /// What is counted and timed, in the plural.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Unary => "calls",
            Self::ClientStream | Self::ServerStream => "messages",
            Self::BidiStream | Self::PingPong => "round trips",
        }
    }

    /// Payloads of `size_bytes` that one operation sends and receives.
    pub fn payloads(self) -> (u64, u64) {
        match self {
            Self::Unary | Self::BidiStream | Self::PingPong => (1, 1),
            Self::ClientStream => (1, 0),
            Self::ServerStream => (0, 1),
        }
    }
}

impl fmt::Display for CallType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no call type's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a call type: use unary, client-stream, server-stream, bidi-stream or ping-pong")]
pub struct UnknownCallType(String);

impl FromStr for CallType {
    type Err = UnknownCallType;

    fn from_str(text: &str) -> Result<Self, UnknownCallType> {
        let mut kinds = Self::ALL.into_iter().chain([Self::PingPong]);
        kinds.find(|call| call.name() == text).ok_or_else(|| UnknownCallType(text.to_owned()))
    }
}

/// A unary method of any service, called with the same bytes each time. What it answers is not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodCall {
    /// `/package.Service/Method`.
    pub path: String,
    /// The request message's bytes.
    pub request: Vec<u8>,
}

/// How a client's calls come by a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneRule {
    /// There are as many connections as were asked for.
    #[default]
    Fixed,
    /// The channel finds out by itself how many it needs.
    Adaptive,
    /// Each call makes a channel of its own, and with it a connection; a stream is one call.
    PerCall,
}

impl LaneRule {
    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Adaptive => "adaptive",
            Self::PerCall => "per-call",
        }
    }
}

/// A name that is no rule's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rule for lanes: use fixed, adaptive or per-call")]
pub struct UnknownLaneRule(String);

impl FromStr for LaneRule {
    type Err = UnknownLaneRule;

    fn from_str(text: &str) -> Result<Self, UnknownLaneRule> {
        let rules = [Self::Fixed, Self::Adaptive, Self::PerCall];
        rules.into_iter().find(|rule| rule.name() == text).ok_or_else(|| UnknownLaneRule(text.to_owned()))
    }
}

/// From one moment on a channel had so many lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanesAt {
    /// Counted from where measuring began; negative in the warm-up.
    pub at_ns: i64,
    /// Connected lanes.
    pub lanes: u32,
}

/// What one stage of the calls took, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// `client-encode`, `request`, `decode`, `handler`, `encode`, `response` or `client-decode`.
    pub name: String,
    /// Of all calls that were divided.
    pub latency_ns: Latency,
    /// The whole distribution, as [`LoadResult::histogram`].
    pub histogram: Histogram,
}

/// How the messages of streams one way followed each other, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// From one message to the next of the same stream, on average.
    pub mean: f64,
    /// The longest time between two readings of the clock: no two messages of a stream were farther apart.
    pub gap_max: u64,
    /// Messages from one reading of the clock to the next.
    pub messages_per_reading: u64,
}

impl Pace {
    /// From one reading of the clock to the next, on average.
    pub fn between_readings_ns(self) -> f64 {
        self.mean * self.messages_per_reading as f64
    }
}

/// One of the largest latencies of a run, or of the largest gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spike {
    /// How long it took.
    pub took_ns: u64,
    /// When it ended, counted from where measuring began.
    pub at_ns: u64,
}

/// How evenly the calls of a run were spread over connections that all had the same load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Active connections.
    pub connections: u32,
    /// Jain's index, (Σx)² ÷ (n · Σx²), of the calls of each: 1 where all have the same, 1 ÷ n where one has all.
    pub jain: f64,
    /// Calls of the connection that had fewest.
    pub least: u64,
    /// Of the one that had most.
    pub most: u64,
}

impl Fairness {
    /// Of the calls of each connection; `None` where there are none.
    pub(crate) fn of(calls: &[u64]) -> Option<Self> {
        let (sum, squares) = calls.iter().fold((0.0, 0.0), |(sum, squares), &calls| {
            let calls = calls as f64;
            (sum + calls, squares + calls * calls)
        });
        (squares > 0.0).then(|| Self {
            connections: u32::try_from(calls.len()).unwrap_or(u32::MAX),
            jain: sum * sum / (calls.len() as f64 * squares),
            least: calls.iter().copied().min().unwrap_or(0),
            most: calls.iter().copied().max().unwrap_or(0),
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_nothing(nanoseconds: &u64) -> bool {
    *nanoseconds == 0
}

/// Connections of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// How many were asked for.
    pub asked: u32,
    /// How many the kernel saw; `null` when it could not be asked.
    pub established: Option<u32>,
}

/// Something a reader of the figures must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// The figures must not be used as a measure of the server (the generator was the limit, say).
    pub invalidates: bool,
}

/// What the note of a saturated client begins with, in every driver.
const CLIENT_LIMIT: &str = "the client's processors were busy for";

impl Note {
    /// It says that the client was the limit of what it measured.
    pub fn is_client_limit(&self) -> bool {
        self.invalidates && self.text.starts_with(CLIENT_LIMIT)
    }
}
