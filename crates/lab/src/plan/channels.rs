//! The channels study: what a client moves over one connection and over several, by calls in flight and by delay.

use std::time::Duration;

use super::strategy::{Contender, Strategy};
use super::turns::{Slot, there_and_back};
use super::{Label, PlanError, Point, Purpose, Study, Transport, Window, Work};
use crate::record::CallType;
use crate::size::ByteSize;
use crate::stack::{Pair, Stack};

/// How long a window is, warm-up included, without what a channel takes to settle.
const SLOT: Slot = Slot { min: Duration::from_millis(300), max: Duration::from_secs(1) };
/// How a window's time is divided.
const WARMUP_PARTS: u32 = 1;
const MEASURED_PARTS: u32 = 4;
/// How long system calls are counted.
const COUNTED: Duration = Duration::from_millis(320);
/// How long the wire is watched, and driven before.
const WATCHED: Duration = Duration::from_millis(400);
const WATCHED_WARMUP: Duration = Duration::from_millis(100);
/// Rounds of ours against ours.
const NOISE_ROUNDS: u32 = 4;
/// Where a single figure stands for a whole line it is the one nearest to this.
const IN_FLIGHT_TYPICAL: u32 = 64;

/// Numbers of connections that a service may be advised to use.
const ADVISED: [u32; 5] = [1, 2, 4, 8, 16];

/// What the channels study varies, and how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelsOptions {
    /// Clients, their servers, and their ways to come by connections, in the order of measuring.
    pub contenders: Vec<Contender>,
    /// Kinds of call, what they are measured over.
    pub grids: Vec<Grid>,
    /// Payload bytes of a message.
    pub size: ByteSize,
    /// How many windows each contender gets at a point.
    pub rounds: u32,
    /// How long a channel that finds its own number of connections is driven before it is measured.
    pub settle: Duration,
    /// At how many calls in flight the wire is watched.
    pub watched: Vec<u32>,
    /// At how many calls in flight system calls are counted.
    pub counted: Vec<u32>,
    /// The plan's total stays within it.
    pub budget: Duration,
}

/// The points of one kind of call: every number in flight at every delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The kind.
    pub call: CallType,
    /// Calls in flight.
    pub in_flight: Vec<u32>,
    /// What the network adds to a round trip.
    pub round_trips: Vec<Duration>,
}

impl ChannelsOptions {
    /// From 1 to 1024 calls in flight, directly and over 0.2, 1 and 5 ms.
    pub fn whole(contenders: Vec<Contender>) -> Self {
        let round_trips = [0, 200, 1_000, 5_000].map(Duration::from_micros).to_vec();
        let in_flight = (0..=10).map(|power| 1 << power).collect();
        Self {
            contenders,
            grids: vec![
                Grid { call: CallType::Unary, in_flight, round_trips: round_trips.clone() },
                Grid { call: CallType::PingPong, in_flight: vec![1, 8, 64, 512], round_trips },
            ],
            size: ByteSize(0),
            rounds: 2,
            settle: Duration::from_secs(3),
            watched: vec![1, 16, 64, 256],
            counted: vec![1, 64],
            budget: Duration::from_secs(27 * 60),
        }
    }

    /// Our client at somebody else's server: which number of connections moves most.
    pub fn advice(in_flight: Vec<u32>) -> Self {
        let pair = Pair { client: Stack::ours(), server: Stack::target() };
        let with = |strategy| Contender { pair: pair.clone(), strategy };
        let numbers = ADVISED.into_iter().map(|connections| with(Strategy::Fixed(connections)));
        Self {
            contenders: numbers.chain([with(Strategy::Adaptive)]).collect(),
            grids: vec![Grid { call: CallType::Unary, in_flight, round_trips: vec![Duration::ZERO] }],
            size: ByteSize(0),
            rounds: 3,
            settle: Duration::from_secs(2),
            watched: Vec::new(),
            counted: Vec::new(),
            budget: Duration::from_secs(100),
        }
    }

    /// A look at the same range.
    pub fn quick(contenders: Vec<Contender>) -> Self {
        let micros = |round_trips: &[u64]| round_trips.iter().copied().map(Duration::from_micros).collect();
        Self {
            grids: vec![
                Grid {
                    call: CallType::Unary,
                    in_flight: vec![1, 4, 16, 64, 256],
                    round_trips: micros(&[0, 200, 1_000, 5_000]),
                },
                Grid { call: CallType::PingPong, in_flight: vec![8, 64], round_trips: micros(&[0, 5_000]) },
            ],
            rounds: 1,
            settle: Duration::from_secs(2),
            watched: vec![IN_FLIGHT_TYPICAL],
            counted: vec![IN_FLIGHT_TYPICAL],
            budget: Duration::from_secs(270),
            ..Self::whole(contenders)
        }
    }
}

/// Plans the study of channels: ours against ours for the noise floor, then the grid, then system calls and the wire.
///
/// At each point the contenders take turns in short windows, there and back, as the stacks of the sizes study do. Delays
/// are the outer loop and calls in flight the inner one: an interrupted study has whole lines of some delays.
pub fn channels(options: &ChannelsOptions) -> Result<Study, PlanError> {
    let grids = options.grids.iter().map(Grid::sorted).collect::<Vec<_>>();
    if grids.iter().flat_map(|grid| &grid.in_flight).any(|&in_flight| in_flight == 0) {
        return Err(PlanError::NoLoad);
    }
    let figures = figures(options, &grids);
    if figures.is_empty() || options.rounds == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let mut drafts = noise_floor(options, &grids);
    drafts.extend(figures);
    drafts.extend(apart(options, &grids));
    let fixed = drafts.iter().map(|draft| draft.window(Duration::ZERO).total()).sum();
    let stretching = drafts.iter().filter(|draft| draft.stretches()).count();
    let weights = u32::try_from(stretching).unwrap_or(u32::MAX);
    let slot = SLOT.fit(options.budget, drafts.len(), fixed, weights)?;
    let part = slot / (WARMUP_PARTS + MEASURED_PARTS);
    Ok(Study { name: CHANNELS, windows: drafts.iter().map(|draft| draft.window(part)).collect() })
}

/// What the study is called.
pub const CHANNELS: &str = "channels";

impl Grid {
    fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.in_flight.sort_unstable();
        sorted.in_flight.dedup();
        sorted.round_trips.sort_unstable();
        sorted.round_trips.dedup();
        sorted
    }

    /// Those of `wanted` that are in the grid, or the nearest to them.
    fn nearest(&self, wanted: &[u32]) -> Vec<u32> {
        let nearest =
            |wanted: &u32| self.in_flight.iter().copied().min_by_key(|in_flight| in_flight.abs_diff(*wanted));
        let mut nearest: Vec<u32> = wanted.iter().filter_map(nearest).collect();
        nearest.dedup();
        nearest
    }
}

/// A window whose length is still to be found.
#[derive(Clone)]
struct Draft {
    call: CallType,
    in_flight: u32,
    round_trip: Duration,
    size: ByteSize,
    contender: Contender,
    settle: Duration,
    round: u32,
    purpose: Purpose,
}

impl Draft {
    /// Without a delay, of the first round.
    fn new(
        options: &ChannelsOptions,
        call: CallType,
        in_flight: u32,
        contender: &Contender,
        purpose: Purpose,
    ) -> Self {
        Self {
            call,
            in_flight,
            round_trip: Duration::ZERO,
            size: options.size,
            contender: contender.clone(),
            settle: options.settle,
            round: 0,
            purpose,
        }
    }

    fn stretches(&self) -> bool {
        matches!(self.purpose, Purpose::Figures | Purpose::NoiseFloor(_))
    }

    fn window(&self, part: Duration) -> Window {
        let Self { call, in_flight, round_trip, size, round, purpose, .. } = *self;
        let Contender { pair, strategy } = self.contender.clone();
        let settle = if strategy == Strategy::Adaptive { self.settle } else { Duration::ZERO };
        let (warmup, duration) = match purpose {
            Purpose::SystemCalls => (settle, COUNTED),
            Purpose::Wire => (settle + WATCHED_WARMUP, WATCHED),
            Purpose::Figures | Purpose::NoiseFloor(_) => {
                (settle + part * WARMUP_PARTS, part * MEASURED_PARTS)
            }
        };
        let point = Point {
            work: Work::Call(call),
            size_bytes: size,
            transport: Transport::Tcp,
            in_flight,
            connections: strategy.connections(in_flight),
            round_trip,
            warmup,
            duration,
        };
        Window { point, pair: Some(pair), strategy: Some(strategy), round, purpose }
    }
}

fn figures(options: &ChannelsOptions, grids: &[Grid]) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for grid in grids {
        for &round_trip in &grid.round_trips {
            for &in_flight in &grid.in_flight {
                let turn = options.contenders.iter().map(|contender| Draft {
                    round_trip,
                    ..Draft::new(options, grid.call, in_flight, contender, Purpose::Figures)
                });
                drafts.extend(rounds(&turn.collect::<Vec<_>>(), options.rounds));
            }
        }
    }
    drafts
}

fn rounds(turn: &[Draft], rounds: u32) -> impl Iterator<Item = Draft> {
    there_and_back(turn, rounds).into_iter().map(|(round, draft)| Draft { round, ..draft })
}

/// Our one connection against our one connection, in the middle of the first grid.
fn noise_floor(options: &ChannelsOptions, grids: &[Grid]) -> Vec<Draft> {
    let Some(grid) = grids.first() else { return Vec::new() };
    let Some(ours) = options.contenders.iter().find(|it| it.pair.client.is_ours()) else { return Vec::new() };
    let contender = Contender { pair: ours.pair.clone(), strategy: Strategy::Fixed(1) };
    let turns = grid.nearest(&[IN_FLIGHT_TYPICAL]).into_iter().flat_map(|in_flight| {
        let sides = [Label::A, Label::B]
            .map(|label| Draft::new(options, grid.call, in_flight, &contender, Purpose::NoiseFloor(label)));
        rounds(&sides, NOISE_ROUNDS).collect::<Vec<_>>()
    });
    turns.collect()
}

/// What would disturb the figures is found in windows of its own: of the first kind of call, without a delay.
fn apart(options: &ChannelsOptions, grids: &[Grid]) -> Vec<Draft> {
    let Some(grid) = grids.first() else { return Vec::new() };
    let windows = |wanted: &[u32], purpose: Purpose| {
        let mut drafts = Vec::new();
        for in_flight in grid.nearest(wanted) {
            let draft = |contender| Draft::new(options, grid.call, in_flight, contender, purpose);
            drafts.extend(options.contenders.iter().map(draft));
        }
        drafts
    };
    let mut drafts = windows(&options.watched, Purpose::Wire);
    drafts.extend(windows(&options.counted, Purpose::SystemCalls));
    drafts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::contenders;

    /// Ours, and peers with as many ways as tonic, gRPC C++ and grpc-go have.
    fn everybody() -> Vec<Contender> {
        let cpp = ["own", "shared", "one"].map(str::to_owned);
        let all: [(&str, &[String]); 4] =
            [("thalweg", &[]), ("tonic", &[]), ("grpc-cpp", &cpp), ("grpc-go", &[])];
        let of =
            |(name, variants): (&str, &[String])| contenders(&Pair::own(name.parse().unwrap()), variants, 4);
        all.into_iter().flat_map(of).collect()
    }

    fn figures(study: &Study) -> impl Iterator<Item = &Window> {
        study.windows.iter().filter(|window| window.purpose == Purpose::Figures)
    }

    #[test]
    fn both_studies_fit_their_budget_with_windows_long_enough() {
        let (quick, whole) = (ChannelsOptions::quick(everybody()), ChannelsOptions::whole(everybody()));
        for (options, limit) in [(quick, 5), (whole, 30)] {
            let study = channels(&options).unwrap();
            assert!(study.total() <= options.budget, "{:?} is over {:?}", study.total(), options.budget);
            assert!(options.budget < Duration::from_secs(limit * 60));
            for window in figures(&study) {
                let Point { duration, warmup, .. } = window.point;
                assert!(duration >= Duration::from_millis(240), "{window}: {duration:?}");
                let settles = window.strategy == Some(Strategy::Adaptive);
                assert_eq!(warmup >= options.settle, settles, "{window}: {warmup:?}");
            }
        }
    }

    #[test]
    fn every_contender_has_a_window_in_each_round_of_each_point() {
        let options = ChannelsOptions { rounds: 2, ..ChannelsOptions::quick(everybody()) };
        let options = ChannelsOptions { budget: options.budget * 2, ..options };
        let study = channels(&options).unwrap();
        for grid in &options.grids {
            for (&in_flight, &round_trip) in
                grid.in_flight.iter().flat_map(|n| grid.round_trips.iter().map(move |it| (n, it)))
            {
                let of_point: Vec<&Window> = figures(&study)
                    .filter(|window| {
                        let point = &window.point;
                        (point.work, point.in_flight, point.round_trip)
                            == (Work::Call(grid.call), in_flight, round_trip)
                    })
                    .collect();
                let names = |round| {
                    let of_round = of_point.iter().filter(move |window| window.round == round);
                    of_round.map(|it| (it.pair.clone(), it.strategy)).collect::<Vec<_>>()
                };
                assert_eq!(names(0).len(), options.contenders.len());
                assert_eq!(names(1), names(0).into_iter().rev().collect::<Vec<_>>(), "there and back");
            }
        }
    }

    #[test]
    fn the_wire_and_system_calls_have_windows_apart() {
        let study = channels(&ChannelsOptions::quick(everybody())).unwrap();
        for purpose in [Purpose::Wire, Purpose::SystemCalls] {
            let windows: Vec<_> = study.windows.iter().filter(|window| window.purpose == purpose).collect();
            assert_eq!(windows.len(), everybody().len(), "{purpose:?}");
            assert!(windows.iter().all(|it| it.point.in_flight == 64 && it.point.round_trip.is_zero()));
        }
        let first = study.windows.first().unwrap();
        assert_eq!(first.purpose, Purpose::NoiseFloor(Label::A));
    }

    #[test]
    fn what_makes_no_study_is_refused() {
        let check = |edit: fn(&mut ChannelsOptions), expected: &str| {
            let mut options = ChannelsOptions::quick(everybody());
            edit(&mut options);
            let error = channels(&options).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(|it| it.grids.clear(), "nothing to measure");
        check(|it| it.contenders.clear(), "nothing to measure");
        check(|it| it.rounds = 0, "nothing to measure");
        check(|it| it.grids[0].in_flight.push(0), "at least 1");
        check(|it| it.budget = Duration::from_secs(20), "do not fit");
    }
}
