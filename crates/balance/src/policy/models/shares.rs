//! The shares of calls that policies promise, in random worlds.

use std::time::{Duration, Instant};

use super::{Random, check};
use crate::endpoint::ConnectivityState;
use crate::policy::tests::{Fleet, picks, tally};
use crate::policy::{
    LoadReport, Pick, PickArgs, PolicyConfig, RingHash, RingHashConfig, WeightedRoundRobinConfig,
};

/// Returns the number of a first call. Threads start at any number of 32 bits.
fn first_turn(random: &mut Random) -> u64 {
    random.below(1 << 32)
}

/// Between two decisions, any number of calls differs by one at most between two ready endpoints.
#[test]
fn round_robin_is_fair() {
    check("round_robin_is_fair", 100_000, |seed| {
        let mut random = Random::new(seed);
        let count = 1 + random.below(12) as usize;
        let mut fleet = Fleet::new(&"R".repeat(count));
        let mut policy = PolicyConfig::RoundRobin.build(seed);
        let mut turn = first_turn(&mut random);
        for _ in 0..5 {
            for member in &mut fleet.0 {
                let state = [ConnectivityState::Ready, ConnectivityState::TransientFailure];
                member.state = state[usize::from(random.one_in(3))];
            }
            // One at least is ready.
            fleet.0[random.below(count as u64) as usize].state = ConnectivityState::Ready;
            let decision = policy.decide(&fleet.views(), Instant::now());
            let calls = random.below(100);
            let tally = tally(count, picks(&decision, turn..turn + calls));
            turn += calls;
            let is_ready = |at: &usize| fleet.0[*at].state == ConnectivityState::Ready;
            let ready: Vec<u64> = (0..count).filter(is_ready).map(|at| tally[at]).collect();
            assert_eq!(ready.iter().sum::<u64>(), calls, "{tally:?}, {seed}");
            let (most, least) = (ready.iter().max().unwrap(), ready.iter().min().unwrap());
            assert!(most - least <= 1, "{tally:?} of {count} from {turn}, {seed}");
        }
    });
}

/// gRFC A58: calls follow the weights of reports, and new reports from the next calculation on.
#[test]
fn weighted_round_robin_converges() {
    check("weighted_round_robin_converges", 20_000, |seed| {
        let mut random = Random::new(seed);
        let count = 2 + random.below(9) as usize;
        let mut fleet = Fleet::new(&"R".repeat(count));
        let config = WeightedRoundRobinConfig::default().blackout_period(Duration::ZERO);
        let mut policy = PolicyConfig::WeightedRoundRobin(config).build(seed);
        let start = Instant::now();
        let mut turn = first_turn(&mut random);
        let mut shares = vec![0.0; count];
        // Weights are calculated once a second: the reports of 0.5 s count from 1 s on.
        for (millis, is_calculated) in [(0, true), (500, false), (1_000, true), (2_500, true)] {
            let now = start + Duration::from_millis(millis);
            let reported: Vec<f64> =
                fleet.0.iter_mut().map(|member| report(member, &mut random, now)).collect();
            if is_calculated {
                let sum: f64 = reported.iter().sum();
                shares = reported.iter().map(|weight| weight / sum).collect();
            }
            let decision = policy.decide(&fleet.views(), now);
            let calls = 500 + random.below(1_000);
            let tally = tally(count, picks(&decision, turn..turn + calls));
            turn += calls;
            for (got, share) in tally.iter().zip(&shares) {
                let expected = share * calls as f64;
                assert!(
                    (*got as f64 - expected).abs() < 10.0,
                    "{got} of {calls} calls, not {expected}, {seed}"
                );
            }
        }
    });
}

/// Lets an endpoint report, and returns its weight by the formula of gRFC A58. The weights of one list differ by a
/// factor of at most 60, where none of them is clamped.
fn report(member: &mut crate::policy::tests::Member, random: &mut Random, now: Instant) -> f64 {
    let qps = 100.0 * (1 + random.below(10)) as f64;
    let cpu_utilization = 0.2 * (1 + random.below(5)) as f64;
    let eps = qps * random.of(&[0.0, 0.1, 0.2]);
    member.report = Some(LoadReport { cpu_utilization, qps, eps, ..LoadReport::new(now) });
    qps / (cpu_utilization + eps / qps)
}

/// gRFCs A42 and A61: a key keeps its endpoint whatever other calls there are. An endpoint that fails gives away its
/// own keys only, and gets the same ones back.
#[test]
fn ring_hash_is_consistent() {
    const KEYS: u64 = 40;
    check("ring_hash_is_consistent", 30_000, |seed| {
        let mut random = Random::new(seed);
        let count = 2 + random.below(9) as usize;
        let mut fleet = Fleet::new(&"R".repeat(count));
        for member in &mut fleet.0 {
            member.endpoint.weight = random.of(&[1, 1, 2, 5]);
        }
        let sizes = RingHashConfig::default().min_ring_size(random.of(&[1, 16, 100, 300]));
        let mut policy = PolicyConfig::RingHash(sizes).build(seed);
        let first_key = random.below(u64::MAX);
        let mut owners = |fleet: &Fleet, turn: u64| {
            let decision = policy.decide(&fleet.views(), Instant::now());
            let owner = |key: u64| {
                let hash = Some(RingHash::hash(&first_key.wrapping_add(key).to_be_bytes()));
                let call = PickArgs { hash, ..PickArgs::new(turn.wrapping_mul(key), &|at| at as u64) };
                match decision.picker.pick(&call) {
                    Pick::Endpoint(at) => at,
                    pick => panic!("{pick:?} with ready endpoints, {seed}"),
                }
            };
            (0..KEYS).map(owner).collect::<Vec<usize>>()
        };
        let before = owners(&fleet, 1);
        let failing = random.below(count as u64) as usize;
        fleet.0[failing].state = ConnectivityState::TransientFailure;
        let meanwhile = owners(&fleet, 2);
        for (before, meanwhile) in before.iter().zip(&meanwhile) {
            assert!(*meanwhile != failing && (before == meanwhile || *before == failing), "{seed}");
        }
        fleet.0[failing].state = ConnectivityState::Ready;
        assert_eq!(owners(&fleet, 3), before, "{seed}");
    });
}
