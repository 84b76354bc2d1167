//! One point to measure: work, message size, transport, concurrency and duration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_measure::figures::time;
use thalweg_measure::size::ByteSize;

use crate::record::CallType;

/// One cell of a study's grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) work: Work,
    /// Payload bytes of a message.
    pub(crate) size_bytes: ByteSize,
    pub(crate) transport: Transport,
    /// Unary calls or streams in flight over all connections; messages in flight on a bare socket.
    pub(crate) in_flight: u32,
    /// Number of connections to open.
    pub(crate) connections: u32,
    /// Number of connections with calls, while the others stay idle; `None` if the client spreads calls over all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) active: Option<u32>,
    /// Whether connections use TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tls: bool,
    /// Round-trip time added by a network between client and server; 0 if they talk directly.
    #[serde(rename = "round_trip_ns", with = "nanoseconds", default)]
    pub(crate) round_trip: Duration,
    /// Warm-up, driven first and not counted.
    #[serde(rename = "warmup_ns", with = "nanoseconds")]
    pub(crate) warmup: Duration,
    /// Measured time.
    #[serde(rename = "duration_ns", with = "nanoseconds")]
    pub(crate) duration: Duration,
}

/// Work of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Work {
    /// gRPC calls.
    Call(CallType),
    /// A bare socket moving the same bytes, as a reference.
    Socket(Pattern),
}

/// Pattern of messages on a bare socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pattern {
    /// Each message is echoed, with a fixed number in flight. Reference for unary calls.
    Echo,
    /// Each message is echoed, with as many in flight as a bidi stream's driver allows. Reference for bidi streams.
    Pipelined,
    /// Messages move one way. Reference for client and server streams.
    OneWay,
}

/// Transport between the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP over the loopback interface.
    Tcp,
    /// A Unix domain socket.
    Uds,
}

impl Point {
    /// Creates a point over plain connections without an added network or duration. Each stream has its own
    /// connection; `in_flight` calls share `connections`.
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

    /// Returns the length of the first of two runs that count system calls; the second has the point's duration. Their
    /// difference excludes the cost of starting and connecting.
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
    /// Returns the name in JSON and in tables.
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
            call => call.parse().map(Self::Call).map_err(|_| format!("unknown kind of work `{name}`")),
        }
    }
}

impl Pattern {
    /// Returns the socket pattern that moves the same bytes as this kind of call.
    pub(crate) fn of(call: CallType) -> Self {
        match call {
            CallType::Unary | CallType::PingPong => Self::Echo,
            CallType::BidiStream => Self::Pipelined,
            CallType::ClientStream | CallType::ServerStream => Self::OneWay,
        }
    }

    /// Returns the kind of call with the same bytes as this pattern.
    pub(crate) fn call(self) -> CallType {
        match self {
            Self::Echo => CallType::Unary,
            Self::Pipelined => CallType::BidiStream,
            Self::OneWay => CallType::ClientStream,
        }
    }
}

impl Transport {
    /// All transports, in the order of reports.
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

/// Error for an unknown transport name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid transport `{0}`; use tcp or uds")]
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

/// Serializes a `Duration` as whole nanoseconds.
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
