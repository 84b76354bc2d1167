//! Plan of a JSON study: windows, their order and length.

use std::collections::BTreeSet;
use std::time::Duration;

use thalweg_messages::Kind;

use super::case::Case;
use super::endpoint::Endpoint;
use super::window::{JsonWindow, Purpose, WindowLength, start_time_max};
use crate::echo::{Protocol, Shape};
use crate::stack::Stack;
use crate::study::draft::{self, Planned};
use crate::study::rounds::Length as Bounds;
use crate::study::{Plan, PlanError};

/// The message of the published comparison.
pub const PUBLISHED: Shape = Shape::Strings { count: 5000, letters: 20 };
/// Further messages of the codec study.
const REALISTIC: [Kind; 4] = [Kind::Order, Kind::LogRecord, Kind::Visit, Kind::Samples];
/// Number of first calls measured, the same as in the published comparison.
const COLD_CALLS: u64 = 50;
/// Window length, warm-up included.
const BOUNDS: Bounds = Bounds {
    warmup_min: Duration::from_millis(30),
    warmup_share: 6,
    min: Duration::from_millis(120),
    max: Duration::from_secs(2),
};
/// Warm-up before windows with a fixed number of calls.
const CALLS_WARMUP: Duration = Duration::from_millis(200);
/// Fewest pairs for the noise floor: Student's t is 4.3 for three pairs and 2.6 for six.
const NOISE_PAIRS_MIN: u32 = 6;
/// Time for writing the report, spent once in addition to server starts.
const OVERHEAD: Duration = Duration::from_secs(3);

/// Extent of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonOptions {
    /// Endpoints in the order of tables, ours first.
    pub endpoints: Vec<Endpoint>,
    /// Main message of the study.
    pub published: Shape,
    /// Further echoed messages.
    pub shapes: Vec<Shape>,
    /// Shapes whose rates are also measured.
    pub rated: Vec<Shape>,
    /// Windows per endpoint and case.
    pub rounds: u32,
    /// Fewest lone calls of the published message per endpoint, over all rounds. `None`: as many as the time allows.
    pub calls: Option<u64>,
    /// Number of times a server is started for its first calls.
    pub cold_starts: u32,
    /// Networks: added round-trip time, and rate limit in bit/s.
    pub networks: Vec<(Duration, Option<u64>)>,
    /// Protocols measured with all stacks over networks, and with a new connection per call.
    pub network_protocols: Vec<Protocol>,
    /// Warm-up by each endpoint for servers with a just-in-time compiler, before the published message. The time
    /// applies twice: with the calls in flight of rates, and with one at a time. Other messages get half.
    pub warm_up: Duration,
    /// Names of stacks with a just-in-time compiler.
    pub compiled_late: Vec<String>,
    /// Time limit for all windows.
    pub budget: Budget,
}

/// Time limit of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// At most this.
    AtMost(Duration),
    /// This time, or longer if many endpoints would make windows too short.
    Usual {
        /// Usual time for a few servers.
        time: Duration,
        /// Shortest window, warm-up included.
        window: Duration,
    },
}

impl Budget {
    /// Returns the time available. `fixed` is the time that does not scale, and `stretching` the number of windows
    /// that do.
    fn of(self, fixed: Duration, stretching: u32) -> Duration {
        match self {
            Self::AtMost(budget) => budget,
            Self::Usual { time, window } => time.max(fixed + window.saturating_mul(stretching)),
        }
    }

    /// Returns the usual time, if the study exceeds it.
    pub fn exceeded(self, total: Duration) -> Option<Duration> {
        match self {
            Self::Usual { time, .. } if total > time => Some(time),
            Self::Usual { .. } | Self::AtMost(_) => None,
        }
    }
}

impl JsonOptions {
    /// Measures the small person, the codec study's realistic messages and 1 to 50,000 strings. Each endpoint makes
    /// 30,000 calls of the published message.
    pub fn whole(endpoints: Vec<Endpoint>, compiled_late: Vec<String>) -> Self {
        let strings = |count| Shape::Strings { count, letters: 20 };
        let shapes: Vec<Shape> = [Shape::Person]
            .into_iter()
            .chain(REALISTIC.map(Shape::Study))
            .chain([1, 10, 100, 1000, 50_000].map(strings))
            .collect();
        Self {
            endpoints,
            published: PUBLISHED,
            rated: [PUBLISHED].into_iter().chain(shapes.iter().copied()).collect(),
            shapes,
            rounds: 6,
            calls: Some(30_000),
            cold_starts: 5,
            networks: networks(&[200, 1000, 5000]),
            network_protocols: vec![Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2],
            warm_up: Duration::from_secs(10),
            compiled_late,
            budget: Budget::Usual { time: Duration::from_secs(50 * 60), window: Duration::from_millis(300) },
        }
    }

    /// Measures the published message, the small person and one string, within five minutes.
    pub fn quick(endpoints: Vec<Endpoint>, compiled_late: Vec<String>) -> Self {
        Self {
            shapes: vec![Shape::Person, Shape::Strings { count: 1, letters: 20 }],
            rated: vec![PUBLISHED, Shape::Person],
            rounds: 3,
            calls: None,
            cold_starts: 1,
            warm_up: Duration::from_secs(5),
            network_protocols: vec![Protocol::Grpc, Protocol::JsonHttp1],
            budget: Budget::Usual { time: Duration::from_secs(270), window: Duration::from_millis(200) },
            ..Self::whole(endpoints, compiled_late)
        }
    }

    /// Restricts the study to these messages, with `published` as the main one.
    #[must_use]
    pub fn about(self, published: Shape, shapes: Vec<Shape>) -> Self {
        let rated = [published].into_iter().chain(shapes.iter().copied()).collect();
        Self { published, shapes, rated, ..self }
    }
}

/// Returns networks with these round trips in µs without a rate limit, then the first of them with a slow line.
fn networks(round_trips: &[u64]) -> Vec<(Duration, Option<u64>)> {
    let round_trips = round_trips.iter().copied().map(Duration::from_micros);
    let slow = round_trips.clone().take(1).map(|round_trip| (round_trip, Some(100_000_000)));
    round_trips.map(|round_trip| (round_trip, None)).chain(slow).collect()
}

type Draft = draft::Draft<JsonWindow>;

/// Plans the study: first calls of servers, then each case with all endpoints in turn, in alternating order.
pub fn plan(options: &JsonOptions) -> Result<Plan<JsonWindow>, PlanError> {
    if options.endpoints.is_empty() || options.rounds == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let mut drafts = options.cold();
    let others = options.shapes.iter().copied().filter(|shape| *shape != options.published);
    for shape in std::iter::once(options.published).chain(others) {
        drafts.extend(options.warm_up(shape));
        drafts.extend(options.plain(shape));
    }
    for case in options.cases_apart() {
        drafts.extend(options.latencies(case));
    }
    let stacks: BTreeSet<&Stack> = drafts.iter().map(|draft| &draft.window.endpoint.stack).collect();
    let overhead = OVERHEAD + stacks.into_iter().map(start_time_max).sum::<Duration>();
    draft::fitted(drafts, BOUNDS, overhead, |fixed, stretching| options.budget.of(fixed, stretching))
}

impl JsonOptions {
    /// Returns a window for each endpoint that has the case's message, in order.
    fn windows(&self, case: Case, purpose: Purpose) -> Vec<JsonWindow> {
        let endpoints = self.endpoints.iter().filter(|endpoint| endpoint.supports(case.shape));
        let window = |endpoint: &Endpoint| JsonWindow {
            endpoint: endpoint.clone(),
            case,
            purpose,
            round: 0,
            is_duplicate: false,
            is_noise_baseline: false,
            in_flight: if purpose == Purpose::Rate { case.shape.saturating() } else { 1 },
            warmup_ns: 0,
            length: WindowLength::Ns(0),
        };
        endpoints.map(window).collect()
    }

    /// Drafts first calls of the published message for all endpoints, each with a newly started server.
    fn cold(&self) -> Vec<Draft> {
        let mut windows = self.windows(Case::plain(self.published), Purpose::Cold);
        for window in &mut windows {
            window.length = WindowLength::Calls(COLD_CALLS);
        }
        in_rounds(windows, self.cold_starts, false)
    }

    /// Drafts warm-up of stacks with a just-in-time compiler, under the measured loads: many calls in flight, and one.
    fn warm_up(&self, shape: Shape) -> Vec<Draft> {
        let takes = if shape == self.published { self.warm_up } else { self.warm_up / 2 };
        // Many in flight come first, because a compiler optimizes sooner with more calls.
        let in_flight: Vec<u32> =
            self.rated.contains(&shape).then(|| shape.saturating()).into_iter().chain([1]).collect();
        let mut windows = self.windows(Case::plain(shape), Purpose::WarmUp);
        windows.retain(|window| self.compiled_late.iter().any(|name| name == window.endpoint.stack.name()));
        let warming = |window: JsonWindow| {
            let length = WindowLength::Ns(nanoseconds(takes));
            in_flight.clone().into_iter().map(move |in_flight| JsonWindow {
                in_flight,
                length,
                ..window.clone()
            })
        };
        windows.into_iter().flat_map(warming).map(|window| Draft { window, weight: 0 }).collect()
    }

    fn plain(&self, shape: Shape) -> Vec<Draft> {
        let windows = |purpose| with_duplicates(self.windows(Case::plain(shape), purpose), self.rounds);
        let mut latencies = windows(Purpose::Latency);
        let calls = self.calls.filter(|_| shape == self.published);
        if let Some(calls) = calls {
            for window in &mut latencies {
                window.warmup_ns = nanoseconds(CALLS_WARMUP);
                window.length = WindowLength::Calls(calls.div_ceil(u64::from(self.rounds)));
            }
        }
        let mut drafts = in_rounds(latencies, self.rounds, calls.is_none());
        if self.rated.contains(&shape) {
            drafts.extend(in_rounds(windows(Purpose::Rate), self.rounds, true));
        }
        drafts
    }

    /// Returns the cases with other conditions: over networks, with a new connection per call, and compressed.
    /// Compression is measured on this machine and over the slowest line.
    fn cases_apart(&self) -> Vec<Case> {
        let published = Case::plain(self.published);
        let over = |&(round_trip, rate_bit_per_s): &(Duration, Option<u64>)| {
            let round_trip_ns = nanoseconds(round_trip);
            Case { round_trip_ns, rate_bit_per_s, ..published }
        };
        let small = self.shapes.iter().find(|shape| **shape == Shape::Person).copied();
        let new_connections = small.into_iter().chain([self.published]);
        let slow = self.networks.iter().filter(|network| network.1.is_some()).min_by_key(|network| network.1);
        let gzip = std::iter::once(published).chain(slow.map(over)).map(|case| Case { gzip: true, ..case });
        let far = self.networks.iter().map(over);
        far.chain(new_connections.map(|shape| Case { new_connection: true, ..Case::plain(shape) }))
            .chain(gzip)
            .collect()
    }

    /// Drafts lone calls of a [separate case](Self::cases_apart), without variants of our server. Compression is
    /// measured with our server only.
    fn latencies(&self, case: Case) -> Vec<Draft> {
        let mut windows = self.windows(case, Purpose::Latency);
        windows.retain(|JsonWindow { endpoint, .. }| {
            let is_varied = endpoint.stack.is_ours() && endpoint.stack.variant().is_some();
            !is_varied
                && self.network_protocols.contains(&endpoint.protocol)
                && (endpoint.stack.is_ours() || !case.gzip)
        });
        in_rounds(windows, self.rounds, true)
    }
}

/// Repeats the first window at the end of the turn, for the noise floor. With few rounds, each turn has several of
/// both.
fn with_duplicates(mut windows: Vec<JsonWindow>, rounds: u32) -> Vec<JsonWindow> {
    let Some(first) = windows.first().cloned() else { return windows };
    let at = |turn: u32, is_duplicate: bool| {
        let is_noise_baseline = turn > 0 && !is_duplicate;
        JsonWindow { round: turn * rounds, is_duplicate, is_noise_baseline, ..first.clone() }
    };
    let turns = NOISE_PAIRS_MIN.div_ceil(rounds);
    windows.splice(..1, (0..turns).map(|turn| at(turn, false)));
    windows.extend((0..turns).map(|turn| at(turn, true)));
    windows
}

fn in_rounds(windows: Vec<JsonWindow>, rounds: u32, stretches: bool) -> Vec<Draft> {
    let draft = |window| Draft { window, weight: u32::from(stretches) };
    draft::in_rounds(&windows.into_iter().map(draft).collect::<Vec<_>>(), rounds)
}

impl Planned for JsonWindow {
    fn delay_rounds(&mut self, rounds: u32) {
        self.round += rounds;
    }

    fn stretch(&mut self, warmup: Duration, measured: Duration) {
        self.warmup_ns = nanoseconds(warmup);
        self.length = WindowLength::Ns(nanoseconds(measured));
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::ClientWork;

    fn endpoints() -> Vec<Endpoint> {
        let theirs = |name: &str, protocol| Endpoint { stack: name.parse().unwrap(), protocol };
        let mut endpoints: Vec<Endpoint> = Protocol::ALL.map(Endpoint::ours).to_vec();
        endpoints.extend([Endpoint::grpc_only(), Endpoint::views(Protocol::Grpc)]);
        endpoints
            .extend([Protocol::Grpc, Protocol::JsonHttp1, Protocol::JsonH2].map(|it| theirs("axum", it)));
        endpoints.extend([Protocol::Grpc, Protocol::JsonHttp1].map(|it| theirs("spring", it)));
        endpoints
    }

    fn options(quick: bool) -> JsonOptions {
        let late = vec!["spring".to_owned()];
        if quick { JsonOptions::quick(endpoints(), late) } else { JsonOptions::whole(endpoints(), late) }
    }

    #[test]
    fn study_fits_its_time_limit() {
        for quick in [true, false] {
            let options = options(quick);
            let Budget::Usual { time, .. } = options.budget else { panic!("{:?}", options.budget) };
            let plan = plan(&options).unwrap();
            assert!(plan.total() <= time, "{:?}", plan.total());
            assert!(plan.total() >= time / 2, "{:?}", plan.total());
            assert_eq!(options.budget.exceeded(plan.total()), None);
        }
        let budget = Budget::AtMost(Duration::from_secs(10));
        assert!(matches!(
            plan(&JsonOptions { budget, ..options(true) }),
            Err(PlanError::BudgetTooSmall { .. })
        ));
        let no_endpoints = JsonOptions { endpoints: Vec::new(), ..options(true) };
        assert_eq!(plan(&no_endpoints), Err(PlanError::NothingToMeasure));
    }

    /// Returns our endpoints, and those of four JVM servers and four in other languages.
    fn many_endpoints() -> Vec<Endpoint> {
        let speaks = ["http1", "h2"].map(str::to_owned);
        let others = [
            "axum",
            "grpc-gateway",
            "grpc-gateway:inside",
            "connect-go",
            "spring",
            "armeria",
            "armeria:transcoded",
            "lognet",
        ];
        let of_others =
            others.iter().flat_map(|stack| crate::json::endpoints_of(&stack.parse().unwrap(), &speaks));
        crate::json::our_endpoints().into_iter().chain(of_others).collect()
    }

    #[test]
    fn many_servers_take_longer_and_do_not_fail() {
        let late = || ["spring", "armeria", "lognet"].map(str::to_owned).to_vec();
        for (options, minutes_max) in [
            (JsonOptions::quick(many_endpoints(), late()), 10),
            (JsonOptions::whole(many_endpoints(), late()), 100),
        ] {
            let Budget::Usual { time, window } = options.budget else { panic!("{:?}", options.budget) };
            let plan = plan(&options).unwrap();
            let total = plan.total();
            assert_eq!(options.budget.exceeded(total), Some(time), "{total:?}");
            assert!(total <= Duration::from_secs(minutes_max * 60), "{total:?}");
            let is_short = |it: &&JsonWindow| it.driving_time() < window && it.purpose != Purpose::Cold;
            assert_eq!(plan.windows.iter().find(is_short), None);
            // A budget below the minimum is rejected.
            let options = JsonOptions { budget: Budget::AtMost(time), ..options };
            assert!(matches!(super::plan(&options), Err(PlanError::BudgetTooSmall { .. })));
        }
    }

    #[test]
    fn five_servers_are_usual() {
        let is_usual = |endpoint: &Endpoint| !["armeria", "lognet"].contains(&endpoint.stack.name());
        let endpoints = many_endpoints().into_iter().filter(is_usual).collect();
        let options = JsonOptions::quick(endpoints, vec!["spring".to_owned()]);
        assert_eq!(options.budget.exceeded(plan(&options).unwrap().total()), None);
    }

    #[test]
    fn plan_includes_time_of_slow_servers() {
        let plan = plan(&JsonOptions::whole(many_endpoints(), Vec::new())).unwrap();
        let of = |stack: &str, protocol| {
            let endpoint = Endpoint { stack: stack.parse().unwrap(), protocol };
            let is_of = |it: &&JsonWindow| {
                it.endpoint == endpoint && it.case == Case::plain(PUBLISHED) && it.purpose == Purpose::Latency
            };
            plan.windows.iter().find(is_of).unwrap().driving_time()
        };
        // 5,000 calls took 5 to 7 ms each at gateways, and 1 to 1.5 ms at ours.
        assert!(of("grpc-gateway", Protocol::JsonHttp1) > Duration::from_secs(20));
        let ours = of("thalweg", Protocol::JsonHttp1);
        assert!((5..10).contains(&ours.as_secs()), "{ours:?}");
    }

    #[test]
    fn whole_study_makes_30000_published_calls_per_endpoint() {
        let plan = plan(&options(false)).unwrap();
        for endpoint in endpoints() {
            let calls: u64 = plan
                .windows
                .iter()
                .filter(|it| it.endpoint == endpoint && it.case == Case::plain(PUBLISHED) && !it.is_duplicate)
                .filter(|it| it.purpose == Purpose::Latency)
                .map(|it| match it.length {
                    WindowLength::Calls(calls) => calls,
                    WindowLength::Ns(_) => 0,
                })
                .sum();
            assert!(calls >= 30_000, "{endpoint}: {calls}");
        }
    }

    #[test]
    fn other_stacks_get_messages_of_the_contract_only() {
        let mut options = options(false);
        let askers = |options: &JsonOptions, shape: Shape| {
            let plan = plan(options).unwrap();
            let of_shape = plan.windows.iter().filter(|window| window.case.shape == shape);
            let stacks = of_shape.map(|window| window.endpoint.stack.name().to_owned());
            stacks.collect::<std::collections::BTreeSet<_>>().len()
        };
        let (order, full) = (Shape::Study(Kind::Order), Shape::Study(Kind::PersonFull));
        assert_eq!((askers(&options, Shape::Person), askers(&options, order)), (3, 1));
        let of_views = |shape: Shape| {
            let plan = plan(&options).unwrap();
            plan.windows
                .iter()
                .filter(|window| window.endpoint.is_views() && window.case.shape == shape)
                .count()
        };
        assert!(of_views(Shape::Person) > 0);
        assert_eq!(of_views(order), 0);
        (options.published, options.shapes) = (order, vec![full]);
        assert_eq!((askers(&options, order), askers(&options, full)), (1, 3));
    }

    #[test]
    fn noise_floor_has_six_pairs_at_usual_distance() {
        for quick in [true, false] {
            let plan = plan(&options(quick)).unwrap();
            for purpose in [Purpose::Latency, Purpose::Rate] {
                let rounds = |is_duplicate: bool| -> Vec<u32> {
                    let is_of = |it: &&JsonWindow| {
                        it.endpoint == endpoints()[0]
                            && it.case == Case::plain(PUBLISHED)
                            && it.purpose == purpose
                    };
                    let of = plan.windows.iter().filter(is_of).filter(|it| it.is_duplicate == is_duplicate);
                    let mut rounds: Vec<u32> = of.map(|it| it.round).collect();
                    rounds.sort_unstable();
                    rounds
                };
                assert_eq!(rounds(false), (0..6).collect::<Vec<_>>(), "{purpose}");
                assert_eq!(rounds(true), rounds(false));
            }
            let at = |is_duplicate: bool| {
                let of = |it: &JsonWindow| {
                    it.is_duplicate == is_duplicate && it.purpose == Purpose::Rate && it.round == 0
                };
                plan.windows.iter().position(of).unwrap()
            };
            assert!(at(true) - at(false) >= endpoints().len());
        }
    }

    #[test]
    fn jit_servers_are_measured_cold_once_then_warm() {
        let plan = plan(&options(true)).unwrap();
        let spring = plan.windows.iter().filter(|it| it.endpoint.stack.name() == "spring");
        let purposes: Vec<Purpose> =
            spring.filter(|it| it.endpoint.protocol == Protocol::JsonHttp1).map(|it| it.purpose).collect();
        assert_eq!(purposes[..4], [Purpose::Cold, Purpose::WarmUp, Purpose::WarmUp, Purpose::Latency]);
        // Warm-up uses the measured endpoints.
        let of_person = plan.windows.iter().filter(|it| {
            it.endpoint.stack.name() == "spring"
                && it.endpoint.protocol == Protocol::Grpc
                && it.case == Case::plain(Shape::Person)
        });
        let warm_ups: Vec<(u32, ClientWork)> = of_person
            .clone()
            .filter(|it| it.purpose == Purpose::WarmUp)
            .map(|it| (it.in_flight, it.recording()))
            .collect();
        assert_eq!(warm_ups, [(64, ClientWork::Bytes), (1, ClientWork::Times)]);
        for measured in of_person.filter(|it| [Purpose::Latency, Purpose::Rate].contains(&it.purpose)) {
            assert!(warm_ups.contains(&(measured.in_flight, measured.recording())), "{measured}");
        }
        let others = plan.windows.iter().filter(|it| it.endpoint.stack.name() != "spring");
        assert!(others.clone().all(|it| it.purpose != Purpose::WarmUp));
        assert_eq!(others.filter(|it| it.purpose == Purpose::Cold).count(), endpoints().len() - 2);
    }

    #[test]
    fn each_question_has_its_cases() {
        let plan = plan(&options(false)).unwrap();
        let has = |is: &dyn Fn(&Case) -> bool| plan.windows.iter().any(|window| is(&window.case));
        assert!(has(&|case| case.round_trip_ns == 5_000_000));
        assert!(has(&|case| case.rate_bit_per_s == Some(100_000_000) && !case.gzip));
        assert!(has(&|case| case.rate_bit_per_s == Some(100_000_000) && case.gzip));
        assert!(has(&|case| case.gzip && !case.is_far()));
        assert!(has(&|case| case.new_connection && case.shape == Shape::Person));
        assert!(has(&|case| case.new_connection && case.shape == PUBLISHED));
        // Every endpoint is equally early on average.
        let rounds = |endpoint: &Endpoint| {
            let at = plan.windows.iter().enumerate().filter(|(_, it)| {
                it.endpoint == *endpoint
                    && it.case == Case::plain(PUBLISHED)
                    && it.purpose == Purpose::Rate
                    && !it.is_duplicate
            });
            at.map(|(index, _)| index).sum::<usize>()
        };
        assert_eq!(rounds(&endpoints()[1]), rounds(&endpoints()[5]));
    }
}
