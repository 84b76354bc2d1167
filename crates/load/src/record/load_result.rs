//! The `thalweg.load/3` schema: the result of one measurement, with everything needed to interpret it.

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

/// Name and version of the schema. The version is raised when a field changes its meaning.
pub const LOAD_SCHEMA: &str = "thalweg.load/3";

/// Result of one run of the driver. Serialized by the schema `thalweg.load/3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// [`LOAD_SCHEMA`].
    pub schema: String,
    /// Requested settings.
    pub settings: LoadSettings,
    /// Start of the measured time (warm-up over): RFC 3339, UTC, nanoseconds.
    pub started: String,
    /// End of the measured time: RFC 3339, UTC, nanoseconds.
    pub ended: String,
    /// The measured time by the monotonic clock, warm-up excluded.
    pub duration_ns: u64,
    /// Time from the end of the measured time until the last call then in flight ended. Calls that ended in it are not
    /// counted. 0 if a number ended the run, since all calls count then.
    pub drain_ns: u64,
    /// Whether each call waited for the previous one: the load adapts to the server, and latency includes no waiting.
    pub closed_loop: bool,
    /// Successful [operations](CallType::operation) of [`LoadSettings::call`] per second, over all connections.
    pub rate_per_s: f64,
    /// Calls that ended with status OK. A stream counts once, when it ends.
    pub calls: u64,
    /// Successful operations: unary calls, or messages of a stream (bidi: messages that came back).
    pub messages: u64,
    /// Calls that ended otherwise, by canonical status code name (`UNAVAILABLE`).
    pub errors: BTreeMap<String, u64>,
    /// Payload bytes sent, without framing.
    pub bytes_sent: u64,
    /// Payload bytes received, without framing.
    pub bytes_received: u64,
    /// `null` if nothing succeeded, and for one-way streams, whose latency a client cannot observe.
    pub latency_ns: Option<Latency>,
    /// Pace of the messages of one-way streams; `null` for all other calls, and if nothing succeeded.
    #[serde(default)]
    pub pace_ns: Option<Pace>,
    /// Largest latencies, or gaps of one-way streams, with their times, largest first. They are also part of
    /// [`Self::latency_ns`] and [`Self::pace_ns`].
    pub spikes: Vec<Spike>,
    /// Whole distribution in ns, so that percentiles of several runs can be merged.
    pub histogram: Histogram,
    /// Duration of the first call, made before measuring, including the connect. Only for echo runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_call_ns: Option<u64>,
    /// Durations of the stages, in order, of calls whose server reported its timestamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTimes>,
    /// Processor time of the client process during the measured time.
    pub client_cpu: CpuTime,
    /// The client's processor time divided by [`Self::messages`]; `null` if nothing succeeded.
    pub client_cpu_per_call: Option<CpuTime>,
    /// Part of [`Self::client_cpu`] spent polling without result, where the client would otherwise have slept.
    #[serde(rename = "looked_in_vain_ns", default, skip_serializing_if = "is_zero")]
    pub busy_poll_wasted_ns: u64,
    /// Connections to the target.
    pub connections: Connections,
    /// Distribution of the calls over the active connections; bare client only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Changes of the channel's lane count over time; adaptive channels only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LanesAt>,
    /// Limits on how far the figures can be trusted, one sentence each. Empty for a good run.
    pub notes: Vec<Note>,
}

impl LoadResult {
    /// Returns the number of calls that ended with a status other than OK.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Removes the histogram, which makes up most of the size.
    pub fn without_histogram(mut self) -> Self {
        self.histogram = Histogram::default();
        self
    }

    /// Returns whether a note says that the client was the limit.
    pub fn is_client_limit(&self) -> bool {
        self.notes.iter().any(Note::is_client_limit)
    }

    /// Returns whether no note invalidates the figures.
    pub fn is_valid(&self) -> bool {
        self.notes.iter().all(|note| !note.invalidates)
    }
}

/// Requested settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSettings {
    /// Address of the server as given.
    pub target: String,
    /// Type of call.
    pub call: CallType,
    /// Payload bytes of one message, in each direction in which the call type sends any.
    pub size_bytes: u64,
    /// Calls in flight over all connections; a stream is one call.
    pub in_flight: u32,
    /// Requested connections; for an adaptive channel the initial ones.
    pub connections: u32,
    /// Assignment of calls to connections.
    #[serde(default)]
    pub lanes: LaneRule,
    /// Method to call instead of the method of `grpc.testing.BenchmarkService` that [`Self::call`] names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodCall>,
    /// Echo workload of the gRPC and JSON API comparison, called instead of BenchmarkService.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<EchoWork>,
    /// Settings of the bare client, if it drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare: Option<BareRun>,
    /// Ownership of stream messages between client and stack.
    #[serde(rename = "handing", default)]
    pub message_ownership: MessageOwnership,
    /// Duration of the warm-up, which is not counted.
    pub warmup_ns: u64,
    /// Measured time, if time ends the run.
    pub duration_ns: Option<u64>,
    /// Operations to measure, if a count ends the run.
    pub total: Option<u64>,
    /// Time a client connection busy-polls before it sleeps; 0 disables it, `None` polls adaptively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_poll_ns: Option<u64>,
    /// Processors the client was pinned to.
    pub cpus: Option<CpuList>,
}

/// Ownership of a stream's messages between the stack and their reader or writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageOwnership {
    /// Each message is newly allocated and passed by value: `Streaming::message`, streams of messages. The only mode of
    /// tonic, and of results without this field.
    #[default]
    Owned,
    /// Messages are received into the reader's buffer, and sent from a reference: `Streaming::message_into`,
    /// `thalweg::outbound`.
    InPlace,
}

impl MessageOwnership {
    /// Returns the name used in results.
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
    /// Ordinary API with the library's defaults.
    #[default]
    Owned,
    /// Streams reuse the buffers of their messages.
    InPlace,
    /// No busy polling: a waiting task sleeps at once.
    NoBusyPoll,
}

impl Variant {
    /// All variants, the default first.
    pub const ALL: [Self; 3] = [Self::Owned, Self::InPlace, Self::NoBusyPoll];

    /// Returns the ownership of its stream messages.
    pub fn message_ownership(self) -> MessageOwnership {
        match self {
            Self::Owned | Self::NoBusyPoll => MessageOwnership::Owned,
            Self::InPlace => MessageOwnership::InPlace,
        }
    }

    /// Returns its busy-poll time, or `None` for the library's default.
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
            .ok_or_else(|| format!("unknown variant {name}; use one of {}", enumerated(&all)))
    }
}

/// Types of gRPC call to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallType {
    /// One request, one response. Latency: from passing the request to the library until the response is available.
    Unary,
    /// Messages are sent on a long stream, as fast as the stack accepts them. The client cannot see their arrival, so
    /// there is a [pace](LoadResult::pace_ns), but no latency.
    ClientStream,
    /// Messages are received on a long stream, as fast as the stack delivers them. The client cannot see their sending,
    /// so there is a [pace](LoadResult::pace_ns), but no latency.
    ServerStream,
    /// Messages are echoed on a long stream, several in flight at once. Latency: from passing a message to the library
    /// until its echo is available.
    BidiStream,
    /// A bidi stream with one message in flight at a time. Latency as for a bidi stream.
    PingPong,
}

impl CallType {
    /// The four kinds of gRPC call, in the order of reports. A ping-pong is a bidi stream.
    pub const ALL: [Self; 4] = [Self::Unary, Self::ClientStream, Self::ServerStream, Self::BidiStream];

    /// Returns the name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client-stream",
            Self::ServerStream => "server-stream",
            Self::BidiStream => "bidi-stream",
            Self::PingPong => "ping-pong",
        }
    }

    /// Returns the name of the counted operations, in the plural.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Unary => "calls",
            Self::ClientStream | Self::ServerStream => "messages",
            Self::BidiStream | Self::PingPong => "round trips",
        }
    }

    /// Returns the payloads of `size_bytes` sent and received per operation.
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

/// An unknown call type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid call type `{0}`; use unary, client-stream, server-stream, bidi-stream or ping-pong")]
pub struct UnknownCallType(String);

impl FromStr for CallType {
    type Err = UnknownCallType;

    fn from_str(text: &str) -> Result<Self, UnknownCallType> {
        let mut kinds = Self::ALL.into_iter().chain([Self::PingPong]);
        kinds.find(|call| call.name() == text).ok_or_else(|| UnknownCallType(text.to_owned()))
    }
}

/// A unary method of any service, called with the same bytes each time. Its response is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodCall {
    /// `/package.Service/Method`.
    pub path: String,
    /// Encoded request message.
    pub request: Vec<u8>,
}

/// Assignment of a client's calls to connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneRule {
    /// A fixed number of connections, as requested.
    #[default]
    Fixed,
    /// The channel adapts the number of connections itself.
    Adaptive,
    /// Each call has its own channel, and thus connection; a stream is one call.
    PerCall,
}

impl LaneRule {
    /// Returns the name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Adaptive => "adaptive",
            Self::PerCall => "per-call",
        }
    }
}

/// An unknown lane rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid lane rule `{0}`; use fixed, adaptive or per-call")]
pub struct UnknownLaneRule(String);

impl FromStr for LaneRule {
    type Err = UnknownLaneRule;

    fn from_str(text: &str) -> Result<Self, UnknownLaneRule> {
        let rules = [Self::Fixed, Self::Adaptive, Self::PerCall];
        rules.into_iter().find(|rule| rule.name() == text).ok_or_else(|| UnknownLaneRule(text.to_owned()))
    }
}

/// A change of a channel's lane count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanesAt {
    /// Time since measuring began; negative in the warm-up.
    pub at_ns: i64,
    /// Connected lanes.
    pub lanes: u32,
}

/// Durations of one stage of the calls, in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// `client-encode`, `request`, `decode`, `handler`, `encode`, `response` or `client-decode`.
    pub name: String,
    /// Latency over all divided calls.
    pub latency_ns: Latency,
    /// Whole distribution, as for [`LoadResult::histogram`].
    pub histogram: Histogram,
}

/// Pace of the messages of one-way streams, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Mean time from one message to the next of the same stream.
    pub mean: f64,
    /// Longest time between two readings of the clock, an upper bound of the gap between two messages of a stream.
    pub gap_max: u64,
    /// Messages from one reading of the clock to the next.
    pub messages_per_reading: u64,
}

impl Pace {
    /// Returns the mean time between two readings of the clock.
    pub fn between_readings_ns(self) -> f64 {
        self.mean * self.messages_per_reading as f64
    }
}

/// One of the largest latencies, or gaps, of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spike {
    /// Duration.
    pub took_ns: u64,
    /// Time of its end since measuring began.
    pub at_ns: u64,
}

/// Distribution of a run's calls over connections with equal load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Active connections.
    pub connections: u32,
    /// Jain's index, (Σx)² ÷ (n · Σx²), of the calls of each: 1 if all have the same, 1 ÷ n if one has all.
    pub jain: f64,
    /// Calls of the connection with the fewest.
    pub least: u64,
    /// Calls of the connection with the most.
    pub most: u64,
}

impl Fairness {
    /// Returns the fairness of these calls per connection; `None` if there are none.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(nanoseconds: &u64) -> bool {
    *nanoseconds == 0
}

/// Connections of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Requested connections.
    pub asked: u32,
    /// Connections reported by the kernel; `null` if unknown.
    pub established: Option<u32>,
}

/// A note for readers of the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// Whether the figures do not measure the server, for example because the generator was the limit.
    pub invalidates: bool,
}

/// Start of the note about a saturated client, in every driver.
const CLIENT_LIMIT: &str = "the client's processors were busy for";

impl Note {
    /// Returns whether the note says that the client was the limit.
    pub fn is_client_limit(&self) -> bool {
        self.invalidates && self.text.starts_with(CLIENT_LIMIT)
    }
}
