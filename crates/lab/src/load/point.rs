//! One thing to measure: what moves which messages, over what, and for how long.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_measure::figures::time;
use thalweg_measure::size::ByteSize;

use crate::record::CallType;

/// One thing to measure: one cell of a study's grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// What moves the messages.
    pub(crate) work: Work,
    /// Payload bytes of a message.
    pub(crate) size_bytes: ByteSize,
    /// What carries them.
    pub(crate) transport: Transport,
    /// Unary calls, or streams, in flight over all connections; messages on a bare socket.
    pub(crate) in_flight: u32,
    /// Connections to open.
    pub(crate) connections: u32,
    /// So many of them have calls, and the others are idle; `None`: all have, as the client spreads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) active: Option<u32>,
    /// Connections are TLS's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tls: bool,
    /// What a network between client and server adds to a round trip; none where they talk directly.
    #[serde(rename = "round_trip_ns", with = "nanoseconds", default)]
    pub(crate) round_trip: Duration,
    /// Driven first, not counted.
    #[serde(rename = "warmup_ns", with = "nanoseconds")]
    pub(crate) warmup: Duration,
    /// Measured.
    #[serde(rename = "duration_ns", with = "nanoseconds")]
    pub(crate) duration: Duration,
}

/// What moves the messages of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Work {
    /// gRPC calls.
    Call(CallType),
    /// A bare socket moving the same bytes, as their reference.
    Socket(Pattern),
}

/// How messages cross a bare socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pattern {
    /// Each comes back, and a fixed number is under way: beside unary calls.
    Echo,
    /// Each comes back, and as many are under way as a bidi stream's driver lets: beside bidi streams.
    Pipelined,
    /// They go one way: beside client and server streams.
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

impl Point {
    /// Of a plain connection without a network, not driven yet. Streams have a connection each; `in_flight` calls have
    /// `connections`.
    pub(crate) fn new(
        work: Work,
        size_bytes: ByteSize,
        transport: Transport,
        in_flight: u32,
        connections: u32,
    ) -> Self {
        Self {
            work,
            size_bytes,
            transport,
            in_flight,
            connections,
            active: None,
            tls: false,
            round_trip: Duration::ZERO,
            warmup: Duration::ZERO,
            duration: Duration::ZERO,
        }
    }

    /// System calls are counted in two runs, one of the point's duration and before it a shorter one. The difference
    /// is free of what starting and connecting cost.
    pub(crate) fn counted_first(duration: Duration) -> Duration {
        duration / 4
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, size_bytes, transport, in_flight, .. } = self;
        let tls = if self.tls { " with TLS" } else { "" };
        write!(f, "{work} {size_bytes} over {transport}{tls}, {in_flight} in flight")?;
        if let Some(active) = self.active {
            write!(f, ", {active} of {} connections active", self.connections)?;
        }
        if self.round_trip.is_zero() {
            return Ok(());
        }
        write!(f, ", {} added round trip", time(self.round_trip.as_nanos() as f64))
    }
}

impl Work {
    /// The name in JSON and in tables.
    pub(crate) fn name(self) -> &'static str {
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
            call => call.parse().map(Self::Call).map_err(|_| format!("`{name}` is not a kind of work")),
        }
    }
}

impl Pattern {
    /// How a bare socket moves the bytes that this kind of call moves.
    pub(crate) fn of(call: CallType) -> Self {
        match call {
            CallType::Unary | CallType::PingPong => Self::Echo,
            CallType::BidiStream => Self::Pipelined,
            CallType::ClientStream | CallType::ServerStream => Self::OneWay,
        }
    }

    /// The kind of call whose bytes it moves.
    pub(crate) fn call(self) -> CallType {
        match self {
            Self::Echo => CallType::Unary,
            Self::Pipelined => CallType::BidiStream,
            Self::OneWay => CallType::ClientStream,
        }
    }
}

impl Transport {
    /// Every transport, in the order of reports.
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Uds];
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "TCP",
            Self::Uds => "UDS",
        })
    }
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
