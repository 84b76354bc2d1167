//! A study as data: a list of windows, and how long each of them takes.

mod channels;
mod sizes;
mod strategy;
mod turns;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::figures::time;
use crate::record::CallType;
use crate::size::ByteSize;
use crate::stack::Pair;

pub use channels::{CHANNELS, ChannelsOptions, Grid, channels};
pub use sizes::{Comparison, SizesOptions, sizes};
pub use strategy::{Contender, Strategy, UnknownStrategy, contenders};

/// What is spent on a window besides driving: the driver's process starts, connects, and ends what is in flight.
const WINDOW_OVERHEAD: Duration = Duration::from_millis(100);
/// What counting system calls takes besides driving: both processes are attached to and let go, twice.
const COUNTING_OVERHEAD: Duration = Duration::from_millis(700);
/// What is spent once: the servers start, the report is written.
const STUDY_OVERHEAD: Duration = Duration::from_secs(1);

/// Windows to measure, in the order of measuring.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What the study is called on the command line and in its results.
    pub name: &'static str,
    /// What to measure.
    pub windows: Vec<Window>,
}

/// A point measured once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What is measured.
    pub point: Point,
    /// Whose client and server; `None` for a bare socket, and only for that.
    pub pair: Option<Pair>,
    /// How the client comes by its connections; `None` where the point's number of them says all.
    pub strategy: Option<Strategy>,
    /// Which turn of the point, from 0.
    pub round: u32,
    /// What for.
    pub purpose: Purpose,
}

/// What a window is measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The study's figures.
    Figures,
    /// The noise floor: ours against ours.
    NoiseFloor(Label),
    /// System calls per operation. Counting slows what it counts, so nothing else is learnt from it.
    SystemCalls,
    /// Gaps between bytes. They are watched by a hop in between, so nothing else is learnt from it.
    Wire,
}

/// The two sides of an A/A comparison, which differ in nothing but their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they mean nothing: that is what they are for")]
pub enum Label {
    A,
    B,
}

/// One thing to measure: one cell of a study's grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// What moves the messages.
    pub work: Work,
    /// Payload bytes of a message.
    pub size_bytes: ByteSize,
    /// What carries them.
    pub transport: Transport,
    /// Unary calls, or streams, in flight over all connections; messages on a bare socket.
    pub in_flight: u32,
    /// Connections to open.
    pub connections: u32,
    /// What a network between client and server adds to a round trip; none where they talk directly.
    #[serde(rename = "round_trip_ns", with = "nanoseconds", default)]
    pub round_trip: Duration,
    /// Driven first, not counted.
    #[serde(rename = "warmup_ns", with = "nanoseconds")]
    pub warmup: Duration,
    /// Measured.
    #[serde(rename = "duration_ns", with = "nanoseconds")]
    pub duration: Duration,
}

/// What moves the messages of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Work {
    /// gRPC calls.
    Call(CallType),
    /// A bare socket moving the same bytes, as the limit.
    Socket(Pattern),
}

/// How messages cross a bare socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// Each comes back, and a fixed number is under way: the limit of unary calls.
    Echo,
    /// Each comes back, and as many are under way as a bidi stream's driver lets: its limit.
    Pipelined,
    /// They go one way: the limit of client and server streams.
    OneWay,
}

/// What carries the bytes between the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP over the loopback interface.
    Tcp,
    /// A Unix domain socket.
    Uds,
}

impl Study {
    /// How long the whole takes, starts and ends of processes included.
    pub fn total(&self) -> Duration {
        STUDY_OVERHEAD + self.windows.iter().map(Window::total).sum::<Duration>()
    }

    /// How many windows give the study's figures.
    pub fn figures(&self) -> usize {
        self.windows.iter().filter(|window| window.purpose == Purpose::Figures).count()
    }
}

impl Window {
    /// How long the window takes, starts and ends of processes included.
    pub fn total(&self) -> Duration {
        let Point { warmup, duration, .. } = self.point;
        match self.purpose {
            Purpose::Figures | Purpose::NoiseFloor(_) | Purpose::Wire => WINDOW_OVERHEAD + warmup + duration,
            Purpose::SystemCalls => {
                COUNTING_OVERHEAD + 2 * warmup + duration + Point::counted_first(duration)
            }
        }
    }
}

impl Point {
    /// System calls are counted in two runs, one of the point's duration and before it a shorter one. The difference
    /// is free of what starting and connecting cost.
    pub fn counted_first(duration: Duration) -> Duration {
        duration / 4
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = self.pair.as_ref().map(|pair| match self.strategy {
            None => pair.to_string(),
            Some(strategy) => format!("{pair}, {strategy}"),
        });
        match (&self.purpose, pair) {
            (Purpose::Figures, None) => self.point.fmt(f),
            (Purpose::Figures, Some(pair)) => write!(f, "{}: {pair}", self.point),
            (Purpose::NoiseFloor(label), _) => write!(f, "{}: ours against ours, {label:?}", self.point),
            (Purpose::SystemCalls, pair) => {
                write!(f, "{}: {}, system calls", self.point, pair.unwrap_or_default())
            }
            (Purpose::Wire, pair) => write!(f, "{}: {}, the wire", self.point, pair.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, size_bytes, transport, in_flight, .. } = self;
        write!(f, "{work} {size_bytes} over {transport}, {in_flight} in flight")?;
        if self.round_trip.is_zero() {
            return Ok(());
        }
        write!(f, ", {} away", time(self.round_trip.as_nanos() as f64))
    }
}

impl Work {
    /// The name in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call(call) => call.name(),
            Self::Socket(Pattern::Echo) => "socket-echo",
            Self::Socket(Pattern::Pipelined) => "socket-pipelined",
            Self::Socket(Pattern::OneWay) => "socket-one-way",
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Work> for String {
    fn from(work: Work) -> Self {
        work.name().to_owned()
    }
}

impl TryFrom<String> for Work {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name.as_str() {
            "socket-echo" => Ok(Self::Socket(Pattern::Echo)),
            "socket-pipelined" => Ok(Self::Socket(Pattern::Pipelined)),
            "socket-one-way" => Ok(Self::Socket(Pattern::OneWay)),
            call => call.parse().map(Self::Call).map_err(|_| format!("`{name}` is no kind of work")),
        }
    }
}

impl Pattern {
    /// How a bare socket moves the bytes that this kind of call moves.
    pub fn of(call: CallType) -> Self {
        match call {
            CallType::Unary | CallType::PingPong => Self::Echo,
            CallType::BidiStream => Self::Pipelined,
            CallType::ClientStream | CallType::ServerStream => Self::OneWay,
        }
    }

    /// The kind of call whose bytes it moves.
    pub fn call(self) -> CallType {
        match self {
            Self::Echo => CallType::Unary,
            Self::Pipelined => CallType::BidiStream,
            Self::OneWay => CallType::ClientStream,
        }
    }
}

impl Transport {
    /// Every transport, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Tcp, Self::Uds];
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "TCP",
            Self::Uds => "UDS",
        })
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A list that the study multiplies is empty.
    #[error("there is nothing to measure: name at least one of each")]
    NothingToMeasure,
    /// Zero in flight or zero connections.
    #[error("in flight and connections are at least 1, and in flight is at least the number of connections")]
    NoLoad,
    /// More windows than the time allows.
    #[error(
        "{windows} windows do not fit into {budget_s} s, they take {least_s} s at least: \
         name fewer sizes, call types, transports or stacks, or allow more time"
    )]
    BudgetTooSmall {
        /// How many there are.
        windows: usize,
        /// How long they may take, s.
        budget_s: u64,
        /// How long they take, s.
        least_s: u64,
    },
}

/// A name that is no transport's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a transport: use tcp or uds")]
pub struct UnknownTransport(String);

impl FromStr for Transport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, UnknownTransport> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "uds" => Ok(Self::Uds),
            _ => Err(UnknownTransport(text.to_owned())),
        }
    }
}

/// A `Duration` in JSON: whole nanoseconds.
mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}
