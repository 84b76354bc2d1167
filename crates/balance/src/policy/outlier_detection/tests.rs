use super::*;
use crate::policy::tests::{Fleet, picks, tally};
use crate::policy::{Pick, PolicyConfig, RingHashConfig, WeightedRoundRobinConfig};

/// A policy over ready endpoints with calls, in virtual time.
struct World {
    policy: OutlierDetection,
    fleet: Fleet,
    start: Instant,
    /// Positions of the endpoints that fail their calls.
    bad: Vec<usize>,
    ejected: Vec<usize>,
}

impl World {
    fn new(config: OutlierDetectionConfig, endpoints: usize, bad: &[usize]) -> Self {
        let fleet = Fleet::new(&"R".repeat(endpoints));
        let policy = policy(config);
        let mut world = Self { policy, fleet, start: Instant::now(), bad: bad.to_vec(), ejected: Vec::new() };
        world.decide(0);
        world
    }

    fn decide(&mut self, second: u64) -> Decision {
        let decision = self.policy.decide(&self.fleet.views(), self.start + Duration::from_secs(second));
        self.ejected.clone_from(&decision.ejected);
        decision
    }

    /// Ends 100 calls at each endpoint that is not ejected, and returns the ejected ones at `second`.
    fn run(&mut self, second: u64) -> Vec<usize> {
        for (at, member) in self.fleet.0.iter_mut().enumerate().filter(|(at, _)| !self.ejected.contains(at)) {
            let outcomes = &mut member.outcomes;
            *if self.bad.contains(&at) { &mut outcomes.failed } else { &mut outcomes.succeeded } += 100;
        }
        self.decide(second).ejected
    }
}

const NONE: [usize; 0] = [];

fn policy(config: OutlierDetectionConfig) -> OutlierDetection {
    OutlierDetection::new(config, 1)
}

fn config() -> OutlierDetectionConfig {
    OutlierDetectionConfig::new(PolicyConfig::RoundRobin)
}

fn by_failures() -> OutlierDetectionConfig {
    config().failure_percentage_ejection(FailurePercentageEjection::default())
}

/// gRFC A50's defaults.
#[test]
fn defaults_are_of_the_grfc() {
    let config = config();
    let seconds =
        [config.interval, config.base_ejection_time, config.max_ejection_time].map(|time| time.as_secs());
    assert_eq!((seconds, config.max_ejection_percent), ([10, 30, 300], 10));
    assert_eq!((config.success_rate_ejection, config.failure_percentage_ejection), (None, None));
}

/// gRFC A50: the child sees TRANSIENT_FAILURE.
#[test]
fn ejected_endpoint_takes_no_calls() {
    for algorithm in [by_failures(), config().success_rate_ejection(SuccessRateEjection::default())] {
        let mut world = World::new(algorithm, 5, &[3]);
        assert_eq!(tally(5, picks(&world.decide(0), 0..10)), [2; 5]);
        assert_eq!(world.run(9), NONE);
        assert_eq!(world.run(10), [3]);
        assert_eq!(tally(5, picks(&world.decide(10), 0..8)), [2, 2, 2, 0, 2]);
    }
}

#[test]
fn ejected_endpoints_name_the_reason() {
    let detection = FailurePercentageEjection::default().minimum_hosts(2);
    let config = config().failure_percentage_ejection(detection).max_ejection_percent(100);
    let mut world = World::new(config, 2, &[0, 1]);
    assert_eq!(world.run(10), [0, 1]);
    let decision = world.decide(10);
    assert_eq!(decision.state, ConnectivityState::TransientFailure);
    let message = "none of 2 servers is ready: 10.0.0.0:1: ejected by outlier detection; \
                   10.0.0.1:1: ejected by outlier detection";
    assert_eq!(picks(&decision, 0..1).next(), Some(Pick::Fail(message.into())));
}

/// gRFC A50: 30 s, then 60 s, up to 300 s, measured at the ends of intervals.
#[test]
fn ejection_lasts_longer_each_time() {
    let mut world = World::new(by_failures(), 5, &[3]);
    let mut times = Vec::new();
    let mut was = false;
    for second in (10..2500).step_by(10) {
        let is = world.run(second) == [3];
        if is != was {
            times.push(second);
            was = is;
        }
    }
    let lengths: Vec<u64> = times.chunks_exact(2).map(|pair| pair[1] - pair[0]).collect();
    // More than 30 s: at the end of the fourth interval.
    assert_eq!(lengths, [40, 70, 100, 130, 160, 190, 220, 250, 280, 310, 310, 310]);
}

/// gRFC A50: the limit is the larger of the two times.
#[test]
fn base_time_may_exceed_the_limit() {
    let check = |base, max, expected: u64| {
        let config = by_failures().base_ejection_time(Duration::from_secs(base));
        let mut world = World::new(config.max_ejection_time(Duration::from_secs(max)), 5, &[3]);
        let ejected = (10..1000).step_by(10).take_while(|&second| world.run(second) == [3]).count();
        assert_eq!(ejected as u64 * 10, expected, "{base} s, at most {max} s");
    };
    check(30, 300, 40);
    check(0, 300, 10);
    check(400, 300, 410);
}

/// gRFC A50: each interval in service without an ejection forgets one.
#[test]
fn healed_endpoint_returns_and_its_ejections_are_forgotten() {
    let mut world = World::new(by_failures(), 5, &[3]);
    let ejected: Vec<u64> = (10..=110).step_by(10).filter(|&second| world.run(second) == [3]).collect();
    assert_eq!(ejected, [10, 20, 30, 40, 60, 70, 80, 90, 100, 110]);
    world.bad.clear();
    let ejected: Vec<u64> = (120..=200).step_by(10).filter(|&second| world.run(second) == [3]).collect();
    assert_eq!(ejected, [120]);
    // Two intervals have passed since: the next ejection is the first again.
    world.bad = vec![3];
    let ejected: Vec<u64> = (210..=250).step_by(10).filter(|&second| world.run(second) == [3]).collect();
    assert_eq!(ejected, [210, 220, 230, 240]);
}

/// gRFC A50: one interval in service forgets one ejection.
#[test]
fn ejections_are_forgotten_one_by_one() {
    let mut record = Record { counted: Outcomes::default(), ejected_at: None, multiplier: 2 };
    let multipliers = [1, 0, 0].map(|expected| {
        record.age(Duration::from_secs(30), Duration::from_secs(300), Instant::now());
        (record.multiplier, expected)
    });
    assert!(multipliers.iter().all(|(multiplier, expected)| multiplier == expected), "{multipliers:?}");
}

/// gRFC A50: no more are ejected once the percentage is reached, and always one.
#[test]
fn ejections_are_limited() {
    let check = |percent, endpoints, expected: &[usize]| {
        let bad: Vec<usize> = (0..endpoints).collect();
        let mut world = World::new(by_failures().max_ejection_percent(percent), endpoints, &bad);
        assert_eq!(world.run(10), expected, "{percent} % of {endpoints}");
        assert_eq!(world.run(20), expected, "{percent} % of {endpoints}");
    };
    check(0, 10, &[]);
    check(1, 10, &[0]);
    check(10, 10, &[0]);
    check(11, 10, &[0, 1]);
    check(30, 10, &[0, 1, 2]);
    check(100, 5, &[0, 1, 2, 3, 4]);
    check(250, 5, &[0, 1, 2, 3, 4]);
}

/// gRFC A61: outlier detection does not work with `pick_first`, nor would it help with one endpoint.
#[test]
fn lone_endpoint_is_never_ejected() {
    let detection = FailurePercentageEjection::default().minimum_hosts(0);
    for child in [PolicyConfig::RoundRobin, PolicyConfig::default()] {
        let config = OutlierDetectionConfig::new(child).failure_percentage_ejection(detection);
        assert_eq!(World::new(config, 1, &[0]).run(10), NONE);
    }
}

/// gRFC A50: `enforcement_percentage`.
#[test]
fn some_outliers_are_spared() {
    let check = |percent, expected: std::ops::RangeInclusive<usize>| {
        let failures = FailurePercentageEjection::default().enforcement_percentage(percent);
        let config = config().failure_percentage_ejection(failures).max_ejection_percent(100);
        let bad: Vec<usize> = (0..1000).collect();
        let ejected = World::new(config, 1000, &bad).run(10).len();
        assert!(expected.contains(&ejected), "{ejected} of 1000 at {percent} %");
    };
    check(0, 0..=0);
    check(30, 250..=350);
    check(100, 1000..=1000);
}

/// An endpoint that both algorithms find is ejected once.
#[test]
fn ejection_counts_once() {
    let both = by_failures().success_rate_ejection(SuccessRateEjection::default());
    let mut world = World::new(both.max_ejection_percent(100), 5, &[3]);
    let ejected: Vec<u64> = (10..=60).step_by(10).filter(|&second| world.run(second) == [3]).collect();
    assert_eq!(ejected, [10, 20, 30, 40, 60]);
}

/// gRFC A50: only calls of the interval count, and those before an endpoint was listed do not.
#[test]
fn calls_count_per_interval() {
    let failures = FailurePercentageEjection::default().request_volume(150);
    let mut world = World::new(config().failure_percentage_ejection(failures), 6, &[3]);
    for second in (10..100).step_by(10) {
        assert_eq!(world.run(second), NONE);
    }
    world.run(91);
    assert_eq!(world.run(100), [3]);
    let mut world = World::new(by_failures(), 5, &[]);
    world.fleet.0[3].id = 77;
    world.fleet.0[3].outcomes.failed = 5000;
    assert_eq!(world.run(5), NONE);
    assert_eq!(world.run(10), NONE);
}

#[test]
fn ejection_follows_its_endpoint() {
    let mut world = World::new(by_failures(), 6, &[3]);
    assert_eq!(world.run(10), [3]);
    world.fleet.0.remove(0);
    assert_eq!(world.decide(11).ejected, [2]);
    world.fleet.0.remove(2);
    assert_eq!(world.decide(12).ejected, NONE);
}

/// The policy wakes at the end of an interval, or when its child does.
#[test]
fn wakes_for_the_interval_and_for_the_child() {
    let at = |world: &mut World, second| {
        let wake_at = world.decide(second).wake_at.map(|at| at - world.start);
        wake_at.map(|after| after.as_secs_f64())
    };
    let mut world = World::new(by_failures(), 5, &[]);
    assert_eq!(at(&mut world, 0), Some(10.0));
    assert_eq!(at(&mut world, 7), Some(10.0));
    assert_eq!(at(&mut world, 10), Some(20.0));
    // gRFC A50: the next interval begins when the timer has fired.
    assert_eq!(at(&mut world, 25), Some(35.0));
    assert_eq!(at(&mut World::new(config(), 5, &[]), 3), None);
    let weighted =
        OutlierDetectionConfig::new(PolicyConfig::WeightedRoundRobin(WeightedRoundRobinConfig::default()));
    assert_eq!(at(&mut World::new(weighted.clone(), 5, &[]), 0), Some(1.0));
    let weighted = weighted.failure_percentage_ejection(FailurePercentageEjection::default());
    assert_eq!(at(&mut World::new(weighted.clone(), 5, &[]), 0), Some(1.0));
    let brief = OutlierDetectionConfig { interval: Duration::ZERO, ..weighted };
    assert_eq!(at(&mut World::new(brief, 5, &[]), 0), Some(0.001));
    let forever = OutlierDetectionConfig { interval: Duration::MAX, ..by_failures() };
    assert_eq!(at(&mut World::new(forever, 5, &[]), 0), None);
}

/// gRFC A50: without an algorithm nothing is counted.
#[test]
fn nothing_is_counted_without_an_algorithm() {
    let needs = |config| policy(config).needs().outcomes;
    assert!(!needs(config()));
    assert!(needs(by_failures()));
    assert!(needs(config().success_rate_ejection(SuccessRateEjection::default())));
    assert_eq!(World::new(config(), 5, &[3]).run(10), NONE);
}

#[test]
fn ring_skips_ejected_endpoints() {
    let ring = OutlierDetectionConfig::new(PolicyConfig::RingHash(RingHashConfig::default()));
    let mut world =
        World::new(ring.failure_percentage_ejection(FailurePercentageEjection::default()), 5, &[3]);
    world.run(10);
    let decision = world.decide(10);
    assert_eq!(decision.state, ConnectivityState::Ready);
    assert_eq!(tally(5, picks(&decision, 0..1000))[3], 0);
}
