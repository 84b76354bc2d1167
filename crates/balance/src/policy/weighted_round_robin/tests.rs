use super::*;
use crate::policy::tests::{Fleet, picks, tally};
use crate::policy::{Pick, mix};

/// A policy over endpoints, in virtual time.
struct World {
    policy: WeightedRoundRobin,
    fleet: Fleet,
    start: Instant,
    now: Instant,
}

impl World {
    fn new(config: WeightedRoundRobinConfig, states: &str) -> Self {
        let start = Instant::now();
        Self { policy: WeightedRoundRobin::new(config), fleet: Fleet::new(states), start, now: start }
    }

    /// Has endpoints report these queries per second at a utilization of 1.
    fn report(&mut self, qps: &[f64]) {
        for (member, &qps) in self.fleet.0.iter_mut().zip(qps) {
            member.report = Some(LoadReport { qps, ..report(self.now) });
        }
    }

    /// Decides at `seconds`, and returns the calls that each endpoint takes per hundred.
    fn percentages(&mut self, seconds: f64) -> Vec<u64> {
        let decision = self.decide(seconds);
        let tally = tally(self.fleet.0.len(), picks(&decision, 0..10_000));
        tally.iter().map(|calls| (calls + 50) / 100).collect()
    }

    fn decide(&mut self, seconds: f64) -> Decision {
        self.now = self.start + Duration::from_secs_f64(seconds);
        self.policy.decide(&self.fleet.views(), self.now)
    }
}

fn report(received_at: Instant) -> LoadReport {
    LoadReport { cpu_utilization: 1.0, qps: 100.0, ..LoadReport::new(received_at) }
}

fn no_blackout() -> WeightedRoundRobinConfig {
    WeightedRoundRobinConfig::default().blackout_period(Duration::ZERO)
}

/// gRFC A58's formula.
#[test]
fn weight_is_queries_by_utilization() {
    let check = |qps, eps, cpu_utilization, application_utilization, penalty, expected| {
        let base = report(Instant::now());
        let report = LoadReport { cpu_utilization, application_utilization, qps, eps, ..base };
        assert_eq!(weight(&report, penalty), expected, "{report:?}");
    };
    check(100.0, 0.0, 0.5, 0.0, 1.0, Some(200.0));
    check(100.0, 0.0, 0.5, 0.25, 1.0, Some(400.0));
    check(100.0, 0.0, 0.5, -0.25, 1.0, Some(200.0));
    check(100.0, 50.0, 0.5, 0.0, 1.0, Some(100.0));
    check(100.0, 50.0, 0.5, 0.0, 0.0, Some(200.0));
    check(100.0, 50.0, 0.5, 0.0, 3.0, Some(50.0));
    check(100.0, 0.0, 4.0, 0.0, 1.0, Some(25.0));
    // Empty reports count for nothing, nor do impossible ones.
    for (qps, eps, cpu) in [
        (0.0, 0.0, 0.5),
        (100.0, 0.0, 0.0),
        (-1.0, 0.0, 0.5),
        (100.0, 0.0, f64::INFINITY),
        (100.0, 0.0, f64::NAN),
        (f64::NAN, 0.0, 0.5),
        (f64::INFINITY, 0.0, 0.5),
        (100.0, f64::NAN, 0.5),
        (100.0, -100.0, 0.5),
        (f64::MAX, 0.0, f64::MIN_POSITIVE),
    ] {
        check(qps, eps, cpu, 0.0, 1.0, None);
    }
}

#[test]
fn calls_are_in_proportion_to_weights() {
    let mut world = World::new(no_blackout(), "RRRF");
    world.report(&[100.0, 300.0, 100.0, 900.0]);
    assert_eq!(world.percentages(0.0), [20, 60, 20, 0]);
}

/// gRFC A58: an endpoint without a weight has the mean of the others.
#[test]
fn endpoint_without_weight_counts_as_average() {
    let mut world = World::new(no_blackout(), "RRR");
    world.report(&[100.0, 300.0]);
    assert_eq!(world.percentages(0.0), [17, 50, 33]);
}

/// gRFC A58.
#[test]
fn calls_go_in_turn_with_fewer_than_two_weights() {
    for qps in [&[][..], &[100.0], &[0.0, 100.0, 0.0]] {
        let mut world = World::new(no_blackout(), "RRR");
        world.report(qps);
        let decision = world.decide(0.0);
        let turns: Vec<Pick> = picks(&decision, 3..9).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2].map(Pick::Endpoint));
    }
}

/// gRFC A58: a weight counts after `blackout_period` of reports.
#[test]
fn weight_is_used_after_the_blackout() {
    let mut world = World::new(WeightedRoundRobinConfig::default(), "RR");
    world.report(&[100.0, 300.0]);
    assert_eq!(world.percentages(0.0), [50, 50]);
    for second in 1..10 {
        world.report(&[100.0, 300.0]);
        assert_eq!(world.percentages(f64::from(second)), [50, 50]);
    }
    assert_eq!(world.percentages(10.0), [25, 75]);
}

/// gRFC A58: the blackout starts again when an endpoint connects.
#[test]
fn blackout_starts_again_with_a_connection() {
    let mut world = World::new(WeightedRoundRobinConfig::default(), "RRR");
    world.report(&[100.0, 300.0, 200.0]);
    world.decide(0.0);
    assert_eq!(world.percentages(10.0), [17, 50, 33]);
    world.fleet.0[1].state = ConnectivityState::Idle;
    assert_eq!(world.percentages(10.1), [33, 0, 67]);
    world.fleet.0[1].state = ConnectivityState::Ready;
    // The mean of 100 and 200.
    assert_eq!(world.percentages(10.2), [22, 33, 44]);
    world.report(&[100.0, 300.0, 200.0]);
    assert_eq!(world.percentages(11.0), [22, 33, 44]);
    assert_eq!(world.percentages(20.0), [22, 33, 44]);
    assert_eq!(world.percentages(21.0), [17, 50, 33]);
}

/// gRFC A58: an old weight stops counting, and the blackout applies to the next.
#[test]
fn weight_expires() {
    let mut world = World::new(WeightedRoundRobinConfig::default(), "RR");
    world.report(&[100.0, 300.0]);
    assert_eq!(world.percentages(0.0), [50, 50]);
    assert_eq!(world.percentages(179.0), [25, 75]);
    assert_eq!(world.percentages(180.0), [50, 50]);
    world.report(&[100.0, 300.0]);
    assert_eq!(world.percentages(181.0), [50, 50]);
    assert_eq!(world.percentages(189.0), [50, 50]);
    assert_eq!(world.percentages(191.0), [25, 75]);
}

/// gRFC A58: a report without load changes nothing.
#[test]
fn empty_report_keeps_the_weight() {
    let mut world = World::new(no_blackout(), "RR");
    world.report(&[100.0, 300.0]);
    assert_eq!(world.percentages(0.0), [25, 75]);
    world.report(&[0.0, 0.0]);
    assert_eq!(world.percentages(5.0), [25, 75]);
}

/// gRFC A58: `weight_update_period`, of at least 100 ms.
#[test]
fn weights_change_once_per_period() {
    let config = no_blackout().weight_update_period(Duration::from_millis(1));
    let mut world = World::new(config, "RR");
    world.report(&[100.0, 300.0]);
    assert_eq!(world.percentages(0.0), [25, 75]);
    world.now += Duration::from_millis(1);
    world.report(&[300.0, 100.0]);
    assert_eq!(world.percentages(0.099), [25, 75]);
    let decision = world.decide(0.099);
    assert_eq!(decision.wake_at, Some(world.start + Duration::from_millis(100)));
    assert_eq!(world.percentages(0.1), [75, 25]);
    let config = WeightedRoundRobinConfig { weight_update_period: Duration::ZERO, ..no_blackout() };
    let decision = World::new(config, "RR").decide(0.0);
    assert!(decision.wake_at.is_some_and(|at| at > Instant::now()), "no loop");
    assert_eq!(World::new(no_blackout(), "IF").decide(0.0).wake_at, None);
}

/// gRFC A78: each calculation is about the endpoints that are ready.
#[test]
fn calculated_weights_are_in_the_decision() {
    use EndpointWeight::{NotYetUsable, Stale, Usable};
    let mut world = World::new(WeightedRoundRobinConfig::default(), "RRFR");
    assert_eq!(world.decide(0.0).weights, [(0, NotYetUsable), (1, NotYetUsable), (3, NotYetUsable)]);
    world.report(&[100.0, 300.0]);
    assert_eq!(world.decide(0.5).weights, [], "no calculation");
    assert_eq!(world.decide(1.0).weights, [(0, NotYetUsable), (1, NotYetUsable), (3, NotYetUsable)]);
    world.fleet.0[1].report = None;
    world.report(&[200.0]);
    assert_eq!(world.decide(12.0).weights, [(0, Usable(200.0)), (1, Usable(300.0)), (3, NotYetUsable)]);
    assert_eq!(world.decide(180.9).weights, [(0, Usable(200.0)), (1, Stale), (3, NotYetUsable)]);
    assert_eq!(world.decide(400.0).weights, [(0, Stale), (1, Stale), (3, NotYetUsable)]);
}

/// Weights stay with their endpoints when the list changes.
#[test]
fn weights_follow_their_endpoints() {
    let mut world = World::new(no_blackout(), "RRR");
    world.report(&[100.0, 300.0, 400.0]);
    world.decide(0.0);
    world.fleet.0.remove(0);
    world.fleet.0.reverse();
    assert_eq!(world.percentages(0.5), [57, 43]);
}

#[test]
fn reports_come_with_calls_or_out_of_band() {
    let needs = |config| WeightedRoundRobin::new(config).needs().reports;
    let config = WeightedRoundRobinConfig::default();
    assert_eq!(needs(config.clone()), Some(ReportSource::PerCall));
    let out_of_band = Some(ReportSource::OutOfBand(Duration::from_secs(10)));
    assert_eq!(needs(config.enable_oob_load_report(true)), out_of_band);
}

/// 1 % of each endpoint's share, for random weights.
#[test]
fn calls_are_within_one_percent_of_their_share() {
    for seed in 0..50 {
        let count = 2 + (seed % 9) as usize;
        let weights: Vec<f64> = (0..count as u64).map(|at| 1.0 + (mix(seed * 64 + at) % 9) as f64).collect();
        let mut world = World::new(no_blackout(), &"R".repeat(count));
        world.report(&weights);
        let calls = 100_000;
        let first = mix(seed) >> 1;
        let tally = tally(count, picks(&world.decide(0.0), first..first + calls));
        for (calls_of, weight) in tally.iter().zip(&weights) {
            let share = *calls_of as f64 / calls as f64 / (weight / weights.iter().sum::<f64>());
            assert!((0.99..1.01).contains(&share), "{share} of its share: {tally:?} for {weights:?}");
        }
    }
}
