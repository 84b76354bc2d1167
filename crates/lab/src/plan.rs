//! A study as data: a list of points, and how long each of them takes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::CallType;
use crate::size::ByteSize;

/// What is spent on a point besides driving it: the driver's process starts, connects, and ends what is in flight.
const POINT_OVERHEAD: Duration = Duration::from_millis(100);
/// What is spent once: the server starts, the report is written.
const STUDY_OVERHEAD: Duration = Duration::from_secs(1);
/// Shorter than this, warm-up included, a point says nothing.
const SLOT_MIN: Duration = Duration::from_millis(200);
/// Longer than this, a point says nothing new.
const SLOT_MAX: Duration = Duration::from_secs(5);
/// With more than this under way a point is driven [`HEAVY_WEIGHT`] times as long as others.
const HEAVY_BYTES: u64 = 8 << 20;
const HEAVY_WEIGHT: u32 = 4;
/// How a point's time is divided.
const WARMUP_PARTS: u32 = 1;
const MEASURED_PARTS: u32 = 4;

/// Points to measure, in the order of measuring.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What the study is called on the command line and in its results.
    pub name: &'static str,
    /// What to measure.
    pub points: Vec<Point>,
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

/// What the sizes study varies, and how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct SizesOptions {
    /// Message sizes; sorted and freed of repeats by the plan.
    pub sizes: Vec<ByteSize>,
    /// Kinds of call.
    pub calls: Vec<CallType>,
    /// What carries them.
    pub transports: Vec<Transport>,
    /// Operations in flight where calls or messages overlap. Unary calls are measured one at a time as well.
    pub in_flight: u32,
    /// Connections of each point.
    pub connections: u32,
    /// The plan's total stays within it.
    pub budget: Duration,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A list that the study multiplies is empty.
    #[error("there is nothing to measure: name at least one size, one call type and one transport")]
    NothingToMeasure,
    /// Zero in flight or zero connections.
    #[error("in flight and connections are at least 1, and in flight is at least the number of connections")]
    NoLoad,
    /// More points than the time allows.
    #[error(
        "{points} points do not fit into {budget_s} s (each takes at least {min_ms} ms): \
         name fewer sizes, call types or transports, or allow more time",
        min_ms = (SLOT_MIN + POINT_OVERHEAD).as_millis()
    )]
    BudgetTooSmall {
        /// How many there are.
        points: usize,
        /// How long they may take, s.
        budget_s: u64,
    },
}

impl Study {
    /// How long the whole takes, starts and ends of processes included.
    pub fn total(&self) -> Duration {
        STUDY_OVERHEAD + self.points.iter().map(Point::total).sum::<Duration>()
    }
}

impl Point {
    /// How long the point takes, start and end of its driver included.
    pub fn total(&self) -> Duration {
        POINT_OVERHEAD + self.warmup + self.duration
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, size_bytes, transport, in_flight, .. } = self;
        write!(f, "{work} {size_bytes} over {transport}, {in_flight} in flight")
    }
}

impl SizesOptions {
    /// The whole study: sizes by powers of four from 0 B to 4 MiB, 32 KiB where stacks often bend, and 1.5 MB where
    /// they often peak.
    pub fn whole() -> Self {
        let sizes = [
            0,
            1,
            16,
            64,
            256,
            1 << 10,
            4 << 10,
            16 << 10,
            32 << 10,
            64 << 10,
            256 << 10,
            1 << 20,
            1_500_000,
        ];
        Self {
            sizes: sizes.into_iter().chain([4 << 20]).map(ByteSize).collect(),
            calls: CallType::ALL.to_vec(),
            transports: Transport::ALL.to_vec(),
            in_flight: 16,
            connections: 1,
            budget: Duration::from_secs(13 * 60),
        }
    }

    /// A look at the same range with fewer sizes and shorter points.
    pub fn quick() -> Self {
        let sizes = [0, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1_500_000, 4 << 20].map(ByteSize);
        Self { sizes: sizes.to_vec(), budget: Duration::from_secs(75), ..Self::whole() }
    }
}

/// Plans the study of call types over message sizes and transports, with the bare socket beside them.
///
/// What is compared stands together in time: sizes are the outer loop, so that a machine that slows down slows all
/// lines of a plot alike, and an interrupted study has every line up to some size.
pub fn sizes(options: &SizesOptions) -> Result<Study, PlanError> {
    let SizesOptions { calls, transports, in_flight, connections, budget, .. } = options;
    let mut sizes = options.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if *connections == 0 || in_flight < connections {
        return Err(PlanError::NoLoad);
    }

    let loads = loads(calls, *in_flight, *connections);
    let count = sizes.len() * transports.len() * loads.len();
    if count == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let weights = sizes.iter().flat_map(|&size| loads.iter().map(move |load| load.weight(size))).sum::<u32>();
    let part = slot(*budget, count, weights * transports.len() as u32)? / (WARMUP_PARTS + MEASURED_PARTS);
    let mut points = Vec::with_capacity(count);
    for &size_bytes in &sizes {
        for &transport in transports {
            points.extend(loads.iter().map(|load| Point {
                work: load.work,
                size_bytes,
                transport,
                in_flight: load.in_flight,
                connections: load.connections,
                warmup: part * load.weight(size_bytes) * WARMUP_PARTS,
                duration: part * load.weight(size_bytes) * MEASURED_PARTS,
            }));
        }
    }
    Ok(Study { name: "sizes", points })
}

/// One line of the plots.
#[derive(Clone, Copy, PartialEq)]
struct Load {
    work: Work,
    in_flight: u32,
    connections: u32,
}

/// The lines of the plots. Unary calls are measured alone, which is the latency that a lone caller sees, and with
/// `in_flight` of them overlapping; streams are one per connection, and the driver pipelines them.
fn loads(calls: &[CallType], in_flight: u32, connections: u32) -> Vec<Load> {
    let alone = Load { work: Work::Call(CallType::Unary), in_flight: 1, connections: 1 };
    let mut loads = Vec::new();
    for call in CallType::ALL.into_iter().filter(|call| calls.contains(call)) {
        let work = Work::Call(call);
        match call {
            CallType::Unary => {
                loads.extend((in_flight > 1).then_some(alone));
                loads.push(Load { work, in_flight, connections });
            }
            CallType::ClientStream | CallType::ServerStream | CallType::BidiStream => {
                loads.push(Load { work, in_flight: connections, connections });
            }
        }
    }
    let mut limits: Vec<Load> = Vec::new();
    for load in &loads {
        let limit = load.limit();
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    loads.extend(limits);
    loads
}

impl Load {
    /// How much longer than others a point is driven: 16 calls of 4 MiB under way take some 0.2 s until the first is
    /// back, and a point that is to say anything of them lasts several times that.
    fn weight(self, size: ByteSize) -> u32 {
        let under_way = match self.work {
            Work::Call(CallType::Unary) | Work::Socket(Pattern::Echo) => size.0 * u64::from(self.in_flight),
            _ => size.0,
        };
        match under_way {
            ..=HEAVY_BYTES => 1,
            _ => HEAVY_WEIGHT,
        }
    }

    /// What the bare socket does beside it, on one connection.
    fn limit(self) -> Self {
        match self.work {
            Work::Call(call) => {
                let in_flight = if call == CallType::Unary { self.in_flight } else { 1 };
                Self { work: Work::Socket(Pattern::of(call)), in_flight, connections: 1 }
            }
            Work::Socket(_) => self,
        }
    }
}

/// What a point of weight 1 may take of the budget, without its overhead.
fn slot(budget: Duration, points: usize, weights: u32) -> Result<Duration, PlanError> {
    let too_small = PlanError::BudgetTooSmall { points, budget_s: budget.as_secs() };
    let overhead = STUDY_OVERHEAD + POINT_OVERHEAD * u32::try_from(points).map_err(|_| too_small.clone())?;
    let slot = budget.saturating_sub(overhead) / weights;
    if slot < SLOT_MIN { Err(too_small) } else { Ok(slot.min(SLOT_MAX)) }
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
            CallType::Unary => Self::Echo,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_studies_fit_their_budget_and_use_it() {
        for (options, limit_s) in [(SizesOptions::quick(), 90), (SizesOptions::whole(), 15 * 60)] {
            let study = sizes(&options).unwrap();
            assert!(study.total() <= options.budget, "{:?} is over {:?}", study.total(), options.budget);
            assert!(study.total() > options.budget.mul_f64(0.9));
            assert!(options.budget < Duration::from_secs(limit_s));
        }
    }

    #[test]
    fn the_whole_covers_every_call_type_size_and_transport_and_their_limit() {
        let options = SizesOptions::whole();
        let study = sizes(&options).unwrap();
        for &size_bytes in &options.sizes {
            for transport in Transport::ALL {
                for call in CallType::ALL {
                    let has = |work| {
                        study.points.iter().any(|point| {
                            (point.work, point.size_bytes, point.transport) == (work, size_bytes, transport)
                        })
                    };
                    assert!(has(Work::Call(call)), "{call} {size_bytes} {transport}");
                    assert!(has(Work::Socket(Pattern::of(call))), "limit of {call} {size_bytes} {transport}");
                }
            }
        }
        assert!(options.sizes.contains(&ByteSize(1_500_000)));
    }

    #[test]
    fn a_limit_has_the_in_flight_of_what_it_limits() {
        let names = |calls: &[CallType], in_flight| {
            loads(calls, in_flight, 1)
                .iter()
                .map(|load| format!("{} {}", load.work, load.in_flight))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[CallType::Unary], 1), ["unary 1", "socket-echo 1"]);
        assert_eq!(
            names(&[CallType::BidiStream, CallType::Unary], 16),
            ["unary 1", "unary 16", "bidi-stream 1", "socket-echo 1", "socket-echo 16", "socket-pipelined 1"]
        );
        assert_eq!(
            names(&[CallType::ClientStream, CallType::ServerStream], 16),
            ["client-stream 1", "server-stream 1", "socket-one-way 1"]
        );
    }

    #[test]
    fn few_points_are_not_stretched_over_the_whole_budget() {
        let options = SizesOptions { sizes: vec![ByteSize(0)], ..SizesOptions::whole() };
        let study = sizes(&options).unwrap();
        assert!(study.points.iter().all(|point| point.warmup + point.duration == SLOT_MAX), "{study:?}");
    }

    #[test]
    fn what_cannot_be_planned_is_said() {
        let whole = SizesOptions::whole;
        let check = |options: SizesOptions, expected| assert_eq!(sizes(&options), Err(expected));
        check(SizesOptions { sizes: vec![], ..whole() }, PlanError::NothingToMeasure);
        check(SizesOptions { calls: vec![], ..whole() }, PlanError::NothingToMeasure);
        check(SizesOptions { in_flight: 0, ..whole() }, PlanError::NoLoad);
        check(SizesOptions { connections: 17, ..whole() }, PlanError::NoLoad);
        let points = 14 * 2 * 9;
        check(
            SizesOptions { budget: Duration::from_secs(30), ..whole() },
            PlanError::BudgetTooSmall { points, budget_s: 30 },
        );
    }

    #[test]
    fn a_point_survives_json() {
        for point in sizes(&SizesOptions::quick()).unwrap().points {
            let json = serde_json::to_string(&point).unwrap();
            assert_eq!(serde_json::from_str::<Point>(&json).unwrap(), point, "{json}");
        }
    }
}
