//! Which windows a study has, in which order, and how long they are.

use std::time::Duration;

use thalweg_messages::Kind;

use super::case::Case;
use super::way::Way;
use super::window::{Length, Purpose, Window};
use crate::echo::{Protocol, Shape};
use crate::study::rounds::{Length as Bounds, interleaved};
use crate::study::{Plan, PlanError, Window as _};

/// The message of the published comparison.
pub const PUBLISHED: Shape = Shape::Strings { count: 5000, letters: 20 };
/// What else is echoed of the codec study's messages.
const REALISTIC: [Kind; 4] = [Kind::Order, Kind::LogRecord, Kind::Visit, Kind::Samples];
/// How many calls the published comparison made, and so many are the first ones of a server.
const COLD_CALLS: u64 = 50;
/// How long a window is, warm-up included.
const BOUNDS: Bounds = Bounds {
    warmup_min: Duration::from_millis(30),
    min: Duration::from_millis(120),
    max: Duration::from_secs(2),
};
/// This part of a window is warm-up.
const WARMUP_SHARE: u32 = 6;
/// Before windows that are so many calls long.
const CALLS_WARMUP: Duration = Duration::from_millis(200);
/// From so many pairs one learns what noise is: of three Student's t is 4.3, of six 2.6.
const NOISE_PAIRS_MIN: u32 = 6;
/// What is spent once: servers start, the report is written.
const OVERHEAD: Duration = Duration::from_secs(6);

/// How far a study goes.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonOptions {
    /// In the order of tables, ours first.
    pub ways: Vec<Way>,
    /// What the study is first about.
    pub published: Shape,
    /// What else is echoed.
    pub shapes: Vec<Shape>,
    /// Shapes of which rates are measured, too.
    pub rated: Vec<Shape>,
    /// Windows of each way at each case.
    pub rounds: u32,
    /// One call at a time, each way makes at least so many of the published message, in all rounds together. `None`:
    /// as many as the time allows.
    pub calls: Option<u64>,
    /// Networks between both ends: what they add to a round trip, and what they let through, bit/s.
    pub networks: Vec<(Duration, Option<u64>)>,
    /// What is asked of all stacks over networks, and with a connection for each call.
    pub apart: Vec<Protocol>,
    /// How long a server with a compiler that works while it runs is driven, by each way, before it is measured.
    pub warm_up: Duration,
    /// Names of stacks that have one.
    pub compiled_late: Vec<String>,
    /// All windows together take no longer.
    pub budget: Duration,
}

impl JsonOptions {
    /// The small person, the realistic messages of the codec study, from 1 to 50,000 strings, and 30,000 calls of the
    /// published message by each way.
    pub fn whole(ways: Vec<Way>, compiled_late: Vec<String>) -> Self {
        let strings = |count| Shape::Strings { count, letters: 20 };
        let shapes: Vec<Shape> = [Shape::Person]
            .into_iter()
            .chain(REALISTIC.map(Shape::Study))
            .chain([1, 10, 100, 1000, 50_000].map(strings))
            .collect();
        Self {
            ways,
            published: PUBLISHED,
            rated: [PUBLISHED].into_iter().chain(shapes.iter().copied()).collect(),
            shapes,
            rounds: 6,
            calls: Some(30_000),
            networks: networks(&[200, 1000, 5000]),
            apart: vec![Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2],
            warm_up: Duration::from_secs(10),
            compiled_late,
            budget: Duration::from_secs(50 * 60),
        }
    }

    /// The published message, the small person and one string, within five minutes.
    pub fn quick(ways: Vec<Way>, compiled_late: Vec<String>) -> Self {
        Self {
            shapes: vec![Shape::Person, Shape::Strings { count: 1, letters: 20 }],
            rated: vec![PUBLISHED, Shape::Person],
            rounds: 3,
            calls: None,
            warm_up: Duration::from_secs(3),
            apart: vec![Protocol::Grpc, Protocol::JsonHttp1],
            budget: Duration::from_secs(270),
            ..Self::whole(ways, compiled_late)
        }
    }
}

impl JsonOptions {
    /// Of these messages alone, the first of which it is first about.
    #[must_use]
    pub fn about(self, published: Shape, shapes: Vec<Shape>) -> Self {
        let rated = [published].into_iter().chain(shapes.iter().copied()).collect();
        Self { published, shapes, rated, ..self }
    }
}

/// These round trips in µs with no limit, and the slow line behind the first of them.
fn networks(round_trips: &[u64]) -> Vec<(Duration, Option<u64>)> {
    let round_trips = round_trips.iter().copied().map(Duration::from_micros);
    let slow = round_trips.clone().take(1).map(|round_trip| (round_trip, Some(100_000_000)));
    round_trips.map(|round_trip| (round_trip, None)).chain(slow).collect()
}

/// A window, and whether it takes its part of the time that there is.
struct Draft {
    window: Window,
    stretches: bool,
}

/// Plans the study: the first calls of servers, then case after case all ways in turn, there and back.
pub fn plan(options: &JsonOptions) -> Result<Plan<Window>, PlanError> {
    if options.ways.is_empty() || options.rounds == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let mut drafts = cold(options);
    let mut shapes = vec![options.published];
    shapes.extend(options.shapes.iter().filter(|shape| **shape != options.published));
    for shape in shapes {
        drafts.extend(warm_up(options, shape));
        drafts.extend(plain(options, shape));
    }
    drafts.extend(far(options));
    drafts.extend(afresh(options));
    drafts.extend(gzip(options));
    fitted(drafts, options.budget)
}

fn window(way: &Way, case: Case, purpose: Purpose) -> Window {
    let in_flight = if purpose == Purpose::Rate { case.shape.saturating() } else { 1 };
    Window {
        way: way.clone(),
        case,
        purpose,
        round: 0,
        again: false,
        for_noise: false,
        in_flight,
        warmup_ns: 0,
        length: Length::Ns(0),
    }
}

/// Everybody's first calls of the published message, each by a server that was started for them.
fn cold(options: &JsonOptions) -> Vec<Draft> {
    let case = Case::plain(options.published);
    let windows = ways_at(options, options.published)
        .map(|way| Window { length: Length::Calls(COLD_CALLS), ..window(way, case, Purpose::Cold) });
    windows.map(|window| Draft { window, stretches: false }).collect()
}

fn warm_up(options: &JsonOptions, shape: Shape) -> Vec<Draft> {
    let is_late = |way: &&Way| options.compiled_late.iter().any(|name| name == way.stack.name());
    let windows = ways_at(options, shape).filter(is_late).map(|way| Window {
        length: Length::Ns(nanoseconds(options.warm_up)),
        ..window(way, Case::plain(shape), Purpose::WarmUp)
    });
    windows.map(|window| Draft { window, stretches: false }).collect()
}

fn plain(options: &JsonOptions, shape: Shape) -> Vec<Draft> {
    let case = Case::plain(shape);
    let mut latencies: Vec<Window> =
        ways_at(options, shape).map(|way| window(way, case, Purpose::Latency)).collect();
    beside_itself(&mut latencies, options.rounds);
    let calls = options.calls.filter(|_| shape == options.published);
    if let Some(calls) = calls {
        for window in &mut latencies {
            window.warmup_ns = nanoseconds(CALLS_WARMUP);
            window.length = Length::Calls(calls.div_ceil(u64::from(options.rounds)));
        }
    }
    let mut drafts = in_rounds(&latencies, options.rounds, calls.is_none());
    if options.rated.contains(&shape) {
        let mut rates: Vec<Window> =
            ways_at(options, shape).map(|way| window(way, case, Purpose::Rate)).collect();
        beside_itself(&mut rates, options.rounds);
        drafts.extend(in_rounds(&rates, options.rounds, true));
    }
    drafts
}

/// The first of them once more, as far from it as the turn is long: what both differ by is noise. Where rounds are few
/// there are several of both in each.
fn beside_itself(windows: &mut Vec<Window>, rounds: u32) {
    let Some(first) = windows.first().cloned() else { return };
    let at = |turn: u32, again: bool| {
        let for_noise = turn > 0 && !again;
        Window { round: turn * rounds, again, for_noise, ..first.clone() }
    };
    let turns = NOISE_PAIRS_MIN.div_ceil(rounds);
    windows.splice(..1, (0..turns).map(|turn| at(turn, false)));
    windows.extend((0..turns).map(|turn| at(turn, true)));
}

fn far(options: &JsonOptions) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for &(round_trip, rate_bit_per_s) in &options.networks {
        let case =
            Case { round_trip_ns: nanoseconds(round_trip), rate_bit_per_s, ..Case::plain(options.published) };
        drafts.extend(latencies(
            case,
            ways_at(options, case.shape).filter(|way| is_apart(options, way)),
            options,
        ));
    }
    drafts
}

fn afresh(options: &JsonOptions) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for shape in small_and_large(options) {
        let case = Case { afresh: true, ..Case::plain(shape) };
        drafts.extend(latencies(
            case,
            ways_at(options, case.shape).filter(|way| is_apart(options, way)),
            options,
        ));
    }
    drafts
}

/// Of our own, on this machine and over the line that lets least through.
fn gzip(options: &JsonOptions) -> Vec<Draft> {
    let ours = |way: &&Way| {
        way.stack.is_ours() && way.stack.variant().is_none() && options.apart.contains(&way.protocol)
    };
    let slow = options.networks.iter().filter(|network| network.1.is_some()).min_by_key(|network| network.1);
    let mut drafts = Vec::new();
    for network in [None, slow] {
        let (round_trip, rate_bit_per_s) = network.copied().unwrap_or_default();
        let case = Case {
            round_trip_ns: nanoseconds(round_trip),
            rate_bit_per_s,
            gzip: true,
            ..Case::plain(options.published)
        };
        let is_new = drafts.iter().all(|draft: &Draft| draft.window.case != case);
        if is_new {
            drafts.extend(latencies(case, options.ways.iter().filter(ours), options));
        }
    }
    drafts
}

/// Who has that message.
fn ways_at(options: &JsonOptions, shape: Shape) -> impl Iterator<Item = &Way> {
    options.ways.iter().filter(move |way| way.echoes(shape))
}

/// A way that is looked at where it is not the messages that are varied.
fn is_apart(options: &JsonOptions, way: &Way) -> bool {
    let is_varied = way.stack.is_ours() && way.stack.variant().is_some();
    !is_varied && options.apart.contains(&way.protocol)
}

fn small_and_large(options: &JsonOptions) -> Vec<Shape> {
    let small = options.shapes.iter().find(|shape| **shape == Shape::Person).copied();
    small.into_iter().chain([options.published]).collect()
}

fn latencies<'w>(case: Case, ways: impl Iterator<Item = &'w Way>, options: &JsonOptions) -> Vec<Draft> {
    let windows: Vec<Window> = ways.map(|way| window(way, case, Purpose::Latency)).collect();
    in_rounds(&windows, options.rounds, true)
}

fn in_rounds(windows: &[Window], rounds: u32, stretches: bool) -> Vec<Draft> {
    let in_round = |(round, window): (u32, Window)| {
        let round = window.round + round;
        Draft { window: Window { round, ..window }, stretches }
    };
    interleaved(windows, rounds).into_iter().map(in_round).collect()
}

/// The windows with the time that the budget allows.
fn fitted(drafts: Vec<Draft>, budget: Duration) -> Result<Plan<Window>, PlanError> {
    let fixed = OVERHEAD + drafts.iter().map(|draft| draft.window.total()).sum::<Duration>();
    let stretching = drafts.iter().filter(|draft| draft.stretches).count();
    let weights = u32::try_from(stretching).unwrap_or(u32::MAX);
    let length = BOUNDS.fit(budget, drafts.len(), fixed, weights)?;
    let warmup = BOUNDS.warmup_min.max(length / WARMUP_SHARE);
    let stretched = |draft: Draft| match draft {
        Draft { window, stretches: false } => window,
        Draft { window, stretches: true } => Window {
            warmup_ns: nanoseconds(warmup),
            length: Length::Ns(nanoseconds(length.saturating_sub(warmup))),
            ..window
        },
    };
    let windows = drafts.into_iter().map(stretched).collect();
    Ok(Plan { windows, overhead: OVERHEAD, is_compared: true })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways() -> Vec<Way> {
        let theirs = |name: &str, protocol| Way { stack: name.parse().unwrap(), protocol };
        let mut ways: Vec<Way> = Protocol::ALL.map(Way::ours).to_vec();
        ways.extend([Way::alone(), Way::views(Protocol::Grpc)]);
        ways.extend([Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2].map(|it| theirs("axum", it)));
        ways.extend([Protocol::Grpc, Protocol::JsonHttp1].map(|it| theirs("spring", it)));
        ways
    }

    fn options(quick: bool) -> JsonOptions {
        let late = vec!["spring".to_owned()];
        if quick { JsonOptions::quick(ways(), late) } else { JsonOptions::whole(ways(), late) }
    }

    #[test]
    fn a_study_stays_within_its_time() {
        for quick in [true, false] {
            let options = options(quick);
            let plan = plan(&options).unwrap();
            assert!(plan.total() <= options.budget, "{:?}", plan.total());
            assert!(plan.total() >= options.budget / 2, "{:?}", plan.total());
        }
        let budget = Duration::from_secs(10);
        assert!(matches!(
            plan(&JsonOptions { budget, ..options(true) }),
            Err(PlanError::BudgetTooSmall { .. })
        ));
        let nobody = JsonOptions { ways: Vec::new(), ..options(true) };
        assert_eq!(plan(&nobody), Err(PlanError::NothingToMeasure));
    }

    #[test]
    fn the_whole_study_makes_thirty_thousand_calls_of_the_published_message_by_each_way() {
        let plan = plan(&options(false)).unwrap();
        for way in ways() {
            let calls: u64 = plan
                .windows
                .iter()
                .filter(|it| it.way == way && it.case == Case::plain(PUBLISHED) && !it.again)
                .filter(|it| it.purpose == Purpose::Latency)
                .map(|it| match it.length {
                    Length::Calls(calls) => calls,
                    Length::Ns(_) => 0,
                })
                .sum();
            assert!(calls >= 30_000, "{way}: {calls}");
        }
    }

    #[test]
    fn others_are_asked_for_what_their_contract_has() {
        let mut options = options(false);
        let askers = |options: &JsonOptions, shape: Shape| {
            let plan = plan(options).unwrap();
            let of_shape = plan.windows.iter().filter(|window| window.case.shape == shape);
            let stacks = of_shape.map(|window| window.way.stack.name().to_owned());
            stacks.collect::<std::collections::BTreeSet<_>>().len()
        };
        let (order, full) = (Shape::Study(Kind::Order), Shape::Study(Kind::PersonFull));
        assert_eq!((askers(&options, Shape::Person), askers(&options, order)), (3, 1));
        let of_views = |shape: Shape| {
            let plan = plan(&options).unwrap();
            plan.windows.iter().filter(|window| window.way.is_views() && window.case.shape == shape).count()
        };
        assert!(of_views(Shape::Person) > 0);
        assert_eq!(of_views(order), 0);
        (options.published, options.shapes) = (order, vec![full]);
        assert_eq!((askers(&options, order), askers(&options, full)), (1, 3));
    }

    #[test]
    fn noise_is_told_from_six_pairs_that_are_as_far_apart_as_others() {
        for quick in [true, false] {
            let plan = plan(&options(quick)).unwrap();
            for purpose in [Purpose::Latency, Purpose::Rate] {
                let rounds = |again: bool| -> Vec<u32> {
                    let is_of = |it: &&Window| {
                        it.way == ways()[0] && it.case == Case::plain(PUBLISHED) && it.purpose == purpose
                    };
                    let of = plan.windows.iter().filter(is_of).filter(|it| it.again == again);
                    let mut rounds: Vec<u32> = of.map(|it| it.round).collect();
                    rounds.sort_unstable();
                    rounds
                };
                assert_eq!(rounds(false), (0..6).collect::<Vec<_>>(), "{purpose}");
                assert_eq!(rounds(true), rounds(false));
            }
            let at = |again: bool| {
                let of = |it: &Window| it.again == again && it.purpose == Purpose::Rate && it.round == 0;
                plan.windows.iter().position(of).unwrap()
            };
            assert!(at(true) - at(false) >= ways().len());
        }
    }

    #[test]
    fn what_compiles_late_is_cold_once_and_then_warm() {
        let plan = plan(&options(true)).unwrap();
        let spring = plan.windows.iter().filter(|it| it.way.stack.name() == "spring");
        let purposes: Vec<Purpose> =
            spring.filter(|it| it.way.protocol == Protocol::JsonHttp1).map(|it| it.purpose).collect();
        assert_eq!(purposes[..3], [Purpose::Cold, Purpose::WarmUp, Purpose::Latency]);
        let others = plan.windows.iter().filter(|it| it.way.stack.name() != "spring");
        assert!(others.clone().all(|it| it.purpose != Purpose::WarmUp));
        assert_eq!(others.filter(|it| it.purpose == Purpose::Cold).count(), ways().len() - 2);
    }

    #[test]
    fn each_question_has_its_cases() {
        let plan = plan(&options(false)).unwrap();
        let has = |is: &dyn Fn(&Case) -> bool| plan.windows.iter().any(|window| is(&window.case));
        assert!(has(&|case| case.round_trip_ns == 5_000_000));
        assert!(has(&|case| case.rate_bit_per_s == Some(100_000_000) && !case.gzip));
        assert!(has(&|case| case.rate_bit_per_s == Some(100_000_000) && case.gzip));
        assert!(has(&|case| case.gzip && !case.is_far()));
        assert!(has(&|case| case.afresh && case.shape == Shape::Person));
        assert!(has(&|case| case.afresh && case.shape == PUBLISHED));
        // Each is measured as early, on average, as any other.
        let rounds = |way: &Way| {
            let at = plan.windows.iter().enumerate().filter(|(_, it)| {
                it.way == *way
                    && it.case == Case::plain(PUBLISHED)
                    && it.purpose == Purpose::Rate
                    && !it.again
            });
            at.map(|(index, _)| index).sum::<usize>()
        };
        assert_eq!(rounds(&ways()[1]), rounds(&ways()[5]));
    }
}
