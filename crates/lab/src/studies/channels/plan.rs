//! Plan of the channels study: one connection and several, by calls in flight and by delay.

use std::time::Duration;

use thalweg_measure::size::ByteSize;

use super::contenders::Contender;
use crate::load::gathered::distinct;
use crate::load::{Draft, Point, Purpose, Strategy, Transport, Window, Work, planned};
use crate::record::CallType;
use crate::stack::{Pair, Stack};
use crate::study::draft::in_rounds;
use crate::study::rounds::Length;
use crate::study::{Plan, PlanError};

/// Window length with warm-up, without the time an adaptive channel takes to settle.
const LENGTH: Length = Length {
    warmup_min: Duration::from_millis(100),
    warmup_share: 5,
    min: Duration::from_millis(300),
    max: Duration::from_secs(1),
};
/// Time for which the wire is watched, and warm-up before it.
const WATCHED: Duration = Duration::from_millis(400);
const WATCHED_WARMUP: Duration = Duration::from_millis(100);
/// Rounds of the noise floor.
const NOISE_ROUNDS: u32 = 6;
/// Loads at which the noise floor is measured. With few calls in flight, each waits for wake-ups, whose time varies
/// more.
const NOISE_IN_FLIGHT: [u32; 2] = [4, IN_FLIGHT_TYPICAL];
/// Calls in flight that represent a whole line; the nearest measured number is used.
const IN_FLIGHT_TYPICAL: u32 = 64;

/// Connection counts that the study may recommend for a service.
const ADVISED: [u32; 5] = [1, 2, 4, 8, 16];

/// Parameters of the channels study, and its time limit.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelsOptions {
    /// Clients with their servers and connection strategies, in the order of measuring.
    pub(crate) contenders: Vec<Contender>,
    /// Kinds of call with their points.
    pub grids: Vec<Grid>,
    /// Payload bytes of a message.
    pub size: ByteSize,
    /// Windows per contender and point.
    pub rounds: u32,
    /// Time for which an adaptive channel is driven before it is measured.
    pub(crate) settle: Duration,
    /// Calls in flight at which the wire is watched.
    pub(crate) watched: Vec<u32>,
    /// Calls in flight at which system calls are counted.
    pub(crate) counted: Vec<u32>,
    /// Limit of the plan's total time.
    pub budget: Duration,
}

/// Points of one kind of call: all combinations of load and delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Kind of call.
    pub call: CallType,
    /// Calls in flight.
    pub in_flight: Vec<u32>,
    /// Round-trip times added by the network.
    pub round_trips: Vec<Duration>,
}

impl ChannelsOptions {
    /// Plans 1 to 1024 calls in flight, directly and over 0.2, 1 and 5 ms.
    ///
    /// Six rounds are needed: with fewer pairs of windows, intervals are so wide that most loads stay undecided. Each
    /// window takes its own process, and an adaptive channel has to settle in each. Time therefore limits the number
    /// of points.
    pub fn whole(contenders: Vec<Contender>) -> Self {
        let micros = |round_trips: &[u64]| round_trips.iter().copied().map(Duration::from_micros).collect();
        Self {
            contenders,
            grids: vec![
                Grid {
                    call: CallType::Unary,
                    in_flight: vec![1, 2, 4, 16, 64, 256, 1024],
                    round_trips: micros(&[0, 200, 1_000, 5_000]),
                },
                Grid {
                    call: CallType::PingPong,
                    in_flight: vec![8, 64, 512],
                    round_trips: micros(&[0, 5_000]),
                },
            ],
            size: ByteSize(0),
            rounds: 6,
            settle: Duration::from_secs(2),
            watched: vec![1, 16, 64, 256],
            counted: vec![1, 64],
            budget: Duration::from_secs(25 * 60),
        }
    }

    /// Plans our client with an external server, to find the number of connections that moves most.
    pub fn advice(in_flight: Vec<u32>) -> Self {
        let pair = Pair { client: Stack::ours(), server: Stack::target() };
        let with = |strategy| Contender { pair: pair.clone(), strategy };
        let numbers = ADVISED.into_iter().map(|connections| with(Strategy::Fixed(connections)));
        Self {
            contenders: numbers.chain([with(Strategy::Adaptive)]).collect(),
            grids: vec![Grid { call: CallType::Unary, in_flight, round_trips: vec![Duration::ZERO] }],
            size: ByteSize(0),
            rounds: 4,
            settle: Duration::from_secs(2),
            watched: Vec::new(),
            counted: Vec::new(),
            budget: Duration::from_secs(100),
        }
    }

    /// Plans a quick overview of the same range: six rounds of ours alone, four with other stacks.
    pub fn quick(contenders: Vec<Contender>) -> Self {
        let micros = |round_trips: &[u64]| round_trips.iter().copied().map(Duration::from_micros).collect();
        let grid = |call, in_flight: &[u32], round_trips: &[u64]| Grid {
            call,
            in_flight: in_flight.to_vec(),
            round_trips: micros(round_trips),
        };
        let is_alone = contenders.iter().all(|contender| contender.pair.client.is_ours());
        let (rounds, budget_s) = if is_alone { (6, 205) } else { (4, 250) };
        Self {
            grids: vec![
                grid(CallType::Unary, &[1, 4, 16, 64, 256], &[0]),
                grid(CallType::Unary, &[64], &[5_000]),
                grid(CallType::PingPong, &[8, 64], &[0]),
            ],
            rounds,
            watched: vec![IN_FLIGHT_TYPICAL],
            counted: vec![IN_FLIGHT_TYPICAL],
            budget: Duration::from_secs(budget_s),
            ..Self::whole(contenders)
        }
    }
}

/// Plans the channels study: the noise floor, then the grid, then system calls and the wire.
///
/// At each point the contenders take turns in short windows, in alternating order like the stacks of the sizes study.
/// Delays are the outer loop and calls in flight the inner one, so an interrupted study has whole lines of some
/// delays.
pub fn plan(options: &ChannelsOptions) -> Result<Plan<Window>, PlanError> {
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
    drafts.extend(separate_windows(options, &grids));
    planned(drafts, LENGTH, options.budget)
}

impl Grid {
    fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.in_flight.sort_unstable();
        sorted.in_flight.dedup();
        sorted.round_trips.sort_unstable();
        sorted.round_trips.dedup();
        sorted
    }

    /// Returns the grid's loads nearest to the `wanted` ones.
    fn nearest(&self, wanted: &[u32]) -> Vec<u32> {
        let nearest =
            |wanted: &u32| self.in_flight.iter().copied().min_by_key(|in_flight| in_flight.abs_diff(*wanted));
        let mut nearest: Vec<u32> = wanted.iter().filter_map(nearest).collect();
        nearest.dedup();
        nearest
    }
}

/// Drafts a window of figures in the first round. An adaptive channel is driven until it has settled.
fn draft(
    options: &ChannelsOptions,
    (call, in_flight, round_trip): (CallType, u32, Duration),
    contender: &Contender,
) -> Draft {
    let Contender { pair, strategy } = contender.clone();
    let connections = strategy.connections(in_flight);
    let point = Point {
        round_trip,
        // A lone call cannot use more connections, so the channel need not settle.
        warmup: if strategy == Strategy::Adaptive && in_flight > 1 { options.settle } else { Duration::ZERO },
        ..Point::new(Work::Call(call), options.size, Transport::Tcp, in_flight, connections)
    };
    Draft { window: Window::of_figures(point, Some(pair), Some(strategy)), weight: 1 }
}

fn figures(options: &ChannelsOptions, grids: &[Grid]) -> Vec<Draft> {
    let of_grid = |grid: &Grid| {
        let at =
            |&round_trip| grid.in_flight.iter().map(move |&in_flight| (grid.call, in_flight, round_trip));
        grid.round_trips.iter().flat_map(at).collect::<Vec<_>>()
    };
    let turns = |at| in_rounds(&compared(options, at), options.rounds);
    // A point that two grids share is measured once.
    distinct(grids.iter().flat_map(of_grid)).into_iter().flat_map(turns).collect()
}

/// Returns the contenders that take turns at a point.
fn compared(options: &ChannelsOptions, at: (CallType, u32, Duration)) -> Vec<Draft> {
    let taking_part = differing(&options.contenders, at.1).into_iter();
    taking_part.map(|contender| draft(options, at, contender)).collect()
}

/// Returns the contenders without duplicates. No client has more connections than calls in flight, so with one in
/// flight, four are the same as one. Among equal ones the one named for the number is kept.
fn differing(contenders: &[Contender], in_flight: u32) -> Vec<&Contender> {
    let does_as = |it: &Contender, other: &Contender| {
        let connections = |it: &Contender| {
            let is_fixed = matches!(it.strategy, Strategy::Fixed(_) | Strategy::PerWorker);
            is_fixed.then(|| it.strategy.connections(in_flight))
        };
        let alike = connections(it).filter(|&many| connections(other) == Some(many));
        // Variants of a client differ only if they have several channels.
        let same =
            |many| it.pair == other.pair || many == 1 && it.pair.client.name() == other.pair.client.name();
        it.pair.server == other.pair.server && alike.is_some_and(same)
    };
    let is_named = |it: &Contender| it.strategy == Strategy::Fixed(it.strategy.connections(in_flight));
    let stays = |(index, it): &(usize, &Contender)| {
        let mut others = contenders.iter().enumerate().filter(|(other, _)| other != index);
        is_named(it)
            || !others
                .any(|(other, contender)| does_as(it, contender) && (is_named(contender) || other < *index))
    };
    contenders.iter().enumerate().filter(stays).map(|(_, contender)| contender).collect()
}

/// Drafts the noise floor: our one connection against itself, without delay.
fn noise_floor(options: &ChannelsOptions, grids: &[Grid]) -> Vec<Draft> {
    let Some(grid) = grids.first() else { return Vec::new() };
    let Some(ours) = options.contenders.iter().find(|it| it.pair.client.is_ours()) else { return Vec::new() };
    let contender = Contender { pair: ours.pair.clone(), strategy: Strategy::Fixed(1) };
    let floors = grid.nearest(&NOISE_IN_FLIGHT).into_iter().flat_map(|in_flight| {
        let draft = draft(options, (grid.call, in_flight, Duration::ZERO), &contender);
        in_rounds(&draft.sides(), NOISE_ROUNDS)
    });
    floors.collect()
}

/// Drafts separate windows for measurements that disturb the figures, of the first kind of call without delay.
fn separate_windows(options: &ChannelsOptions, grids: &[Grid]) -> Vec<Draft> {
    let Some(grid) = grids.first() else { return Vec::new() };
    let drafts = |wanted: &[u32]| {
        let in_flight = grid.nearest(wanted).into_iter();
        in_flight.flat_map(|in_flight| compared(options, (grid.call, in_flight, Duration::ZERO)))
    };
    let watched = drafts(&options.watched).map(watched);
    let counted = drafts(&options.counted).map(Draft::counted);
    watched.chain(counted).collect()
}

/// Returns the same draft for watching the wire, with a fixed length.
fn watched(mut draft: Draft) -> Draft {
    draft.window.purpose = Purpose::Wire;
    draft.window.point.warmup += WATCHED_WARMUP;
    draft.window.point.duration = WATCHED;
    Draft { weight: 0, ..draft }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::contenders;
    use crate::load::AaSide;

    /// Returns ours, and peers with as many strategies as tonic, gRPC C++ and grpc-go have.
    fn all_contenders() -> Vec<Contender> {
        let cpp = ["own", "distinct", "shared", "one"].map(str::to_owned);
        let all: [(&str, &[String]); 4] =
            [("thalweg", &[]), ("tonic", &[]), ("grpc-cpp", &cpp), ("grpc-go", &[])];
        let of =
            |(name, variants): (&str, &[String])| contenders(&Pair::own(name.parse().unwrap()), variants, 4);
        all.into_iter().flat_map(of).collect()
    }

    fn figures(study: &Plan<Window>) -> impl Iterator<Item = &Window> {
        study.windows.iter().filter(|window| window.purpose == Purpose::Figures)
    }

    #[test]
    fn all_studies_fit_their_budget_with_windows_long_enough() {
        let alone = ChannelsOptions::quick(contenders(&Pair::ours(), &[], 4));
        let (quick, whole) =
            (ChannelsOptions::quick(all_contenders()), ChannelsOptions::whole(all_contenders()));
        let advice = ChannelsOptions::advice(vec![1, 4, 16, 64, 256]);
        for (options, limit, rounds) in [(alone, 4, 6), (quick, 5, 4), (whole, 30, 6), (advice, 2, 4)] {
            assert_eq!(options.rounds, rounds);
            let study = plan(&options).unwrap();
            assert!(study.total() <= options.budget, "{:?} is over {:?}", study.total(), options.budget);
            assert!(options.budget < Duration::from_secs(limit * 60));
            for window in figures(&study) {
                let Point { duration, warmup, .. } = window.point;
                assert!(duration >= Duration::from_millis(200), "{window}: {duration:?}");
                let settles = window.strategy == Some(Strategy::Adaptive) && window.point.in_flight > 1;
                assert_eq!(warmup >= options.settle, settles, "{window}: {warmup:?}");
            }
        }
    }

    #[test]
    fn every_contender_has_one_window_per_round_and_point() {
        let options = ChannelsOptions::quick(all_contenders());
        let study = plan(&options).unwrap();
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
                // With one call in flight each client has one connection, and ours also its non-fixed strategies. With
                // four in flight, a connection for each call is the same as four.
                let expected = [(1, 4 + 2), (4, all_contenders().len() - 1)];
                let expected = expected.iter().find(|(n, _)| *n == in_flight);
                assert_eq!(
                    names(0).len(),
                    expected.map_or(all_contenders().len(), |(_, contenders)| *contenders),
                    "{in_flight}"
                );
                assert_eq!(names(1), names(0).into_iter().rev().collect::<Vec<_>>(), "there and back");
                assert_eq!((names(2), names(3)), (names(0), names(1)));
            }
        }
    }

    #[test]
    fn wire_and_system_calls_have_separate_windows() {
        let study = plan(&ChannelsOptions::quick(all_contenders())).unwrap();
        for purpose in [Purpose::Wire, Purpose::SystemCalls] {
            let windows: Vec<_> = study.windows.iter().filter(|window| window.purpose == purpose).collect();
            assert_eq!(windows.len(), all_contenders().len(), "{purpose:?}");
            assert!(windows.iter().all(|it| it.point.in_flight == 64 && it.point.round_trip.is_zero()));
        }
        let first = study.windows.first().unwrap();
        assert_eq!(first.purpose, Purpose::NoiseFloor(AaSide::A));
    }

    #[test]
    fn plan_without_points_is_rejected() {
        let check = |edit: fn(&mut ChannelsOptions), expected: &str| {
            let mut options = ChannelsOptions::quick(all_contenders());
            edit(&mut options);
            let error = plan(&options).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(|it| it.grids.clear(), "nothing to measure");
        check(|it| it.contenders.clear(), "nothing to measure");
        check(|it| it.rounds = 0, "nothing to measure");
        check(|it| it.grids[0].in_flight.push(0), "at least 1");
        check(|it| it.budget = Duration::from_secs(20), "but --budget is 20 s");
    }

    #[test]
    fn equivalent_contenders_are_left_out() {
        let check = |strategies: &[Strategy], in_flight: u32, expected: &[Strategy]| {
            let with = |&strategy: &Strategy| Contender { pair: Pair::ours(), strategy };
            let all: Vec<Contender> = strategies.iter().map(with).collect();
            let left: Vec<Strategy> = differing(&all, in_flight).iter().map(|it| it.strategy).collect();
            assert_eq!(left, expected, "{in_flight}");
        };
        let [one, four, eight] = [1, 4, 8].map(Strategy::Fixed);
        let all = [Strategy::Adaptive, eight, four, one, Strategy::PerWorker, Strategy::PerCall];
        check(&all, 1, &[Strategy::Adaptive, one, Strategy::PerCall]);
        check(&all, 4, &[Strategy::Adaptive, four, one, Strategy::PerCall]);
        check(&all, 6, &[Strategy::Adaptive, eight, four, one, Strategy::PerCall]);
        check(&all, 64, &all);
    }

    #[test]
    fn point_in_two_grids_is_measured_once() {
        let mut options = ChannelsOptions::quick(all_contenders());
        for grid in &mut options.grids {
            (grid.call, grid.round_trips) = (CallType::Unary, vec![Duration::ZERO]);
        }
        let study = plan(&options).unwrap();
        let at_16 = figures(&study).filter(|window| window.point.in_flight == 16).count();
        assert_eq!(at_16, options.rounds as usize * all_contenders().len());
    }
}
