//! Policies in random worlds: any lists of endpoints, states, reports and outcomes, in any order.
//!
//! A failure names its seed. As for the simulations of `thalweg-sim`, `THALWEG_SIM_SEEDS` sets the number of seeds of
//! each model, `THALWEG_SIM_FIRST` the first one, and `THALWEG_SIM_SEED` replays one.

mod shares;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use super::tests::{Fleet, Member, endpoint};
use super::*;
use crate::endpoint::ConnectivityState;

/// Steps per world.
const STEPS: usize = 12;

/// Endpoints that a resolver knows.
const ENDPOINTS_MAX: u64 = 8;

#[test]
fn no_world_breaks_a_policy() {
    check("no_world_breaks_a_policy", 70_000, run);
}

/// Every ready endpoint takes calls, whatever has happened before.
#[test]
fn no_ready_endpoint_starves() {
    check("no_ready_endpoint_starves", 50_000, |seed| {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.change();
            world.decide();
        }
        world.check_starvation();
    });
}

/// Runs a model with `count` seeds, unless the environment says which.
fn check(model: &str, count: u64, run: impl Fn(u64)) {
    let variable = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("invalid {name} `{value}`; use a number")))
    };
    let first = variable("THALWEG_SIM_FIRST").unwrap_or(0);
    let count = variable("THALWEG_SIM_SEEDS").unwrap_or(count);
    let seeds =
        variable("THALWEG_SIM_SEED").map_or(first..first.saturating_add(count), |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("seed {seed} failed; to replay it:");
            eprintln!("    THALWEG_SIM_SEED={seed} cargo test -p thalweg-balance {model}");
            resume_unwind(panic);
        }
    }
}

/// gRFC A50: endpoints that fail are ejected within two intervals, as far as the limit allows, and return later.
#[test]
fn outlier_detection_converges() {
    check("outlier_detection_converges", 1_000, converge);
}

fn converge(seed: u64) {
    const INTERVAL: u64 = 10;
    let mut random = Random::new(seed);
    let count = 5 + random.below(20) as usize;
    let percent = random.of(&[1, 10, 30, 60]);
    let config = OutlierDetectionConfig::new(PolicyConfig::RoundRobin)
        .max_ejection_percent(percent)
        .failure_percentage_ejection(FailurePercentageEjection::default());
    let limit = (count * percent as usize).div_ceil(100);
    let bad = 1 + random.below(count as u64 / 2) as usize;
    let mut failing = 10 + random.below(30);
    if failing % INTERVAL == 1 {
        // 90 % of the interval would fail: about as much as the threshold allows. The endpoints that are ejected first
        // may leave fewer than `minimum_hosts`, and then the others stay.
        failing += 1;
    }
    let healed = failing + 50 + random.below(50);
    let mut policy = PolicyConfig::OutlierDetection(config).build(seed);
    let mut fleet = Fleet::new(&"R".repeat(count));
    let start = Instant::now();
    for second in 0..healed + 400 {
        let decision = policy.decide(&fleet.views(), start + Duration::from_secs(second));
        let ejected = decision.ejected.len();
        assert!(decision.ejected.iter().all(|&at| at < bad), "{:?}, {seed}", decision.ejected);
        assert!(ejected <= limit, "{ejected} ejected, not {limit}, {seed}");
        let is_failing = (failing..healed).contains(&second);
        if (failing + 2 * INTERVAL..failing + 30).contains(&second) {
            assert_eq!(ejected, bad.min(limit), "{seed}");
        }
        if second >= healed + 310 {
            assert_eq!(ejected, 0, "{seed}");
        }
        // 100 calls of each in an interval; 50 are enough.
        let first = random.below(u64::MAX / 2);
        for pick in super::tests::picks(&decision, first..first + 10 * count as u64) {
            let Pick::Endpoint(at) = pick else { panic!("{pick:?} with ready endpoints, {seed}") };
            let outcomes = &mut fleet.0[at].outcomes;
            let failed = is_failing && at < bad && random.below(100) < 98;
            outcomes.failed += u64::from(failed);
            outcomes.succeeded += u64::from(!failed);
        }
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.change();
        let decision = world.decide();
        world.check(&decision);
    }
    world.check_recovery();
}

pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % limit
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

struct World {
    seed: u64,
    random: Random,
    config: PolicyConfig,
    policy: Box<dyn Policy>,
    /// A second policy of the same seed, which must decide the same.
    twin: Box<dyn Policy>,
    fleet: Fleet,
    next_id: u64,
    now: Instant,
}

pub(super) const STATES: [ConnectivityState; 5] = [
    ConnectivityState::Idle,
    ConnectivityState::Connecting,
    ConnectivityState::Ready,
    ConnectivityState::TransientFailure,
    ConnectivityState::Shutdown,
];

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let config = policy(&mut random, seed % 7);
        let (policy, twin) = (config.build(seed), config.build(seed));
        let mut world = Self {
            seed,
            random,
            config,
            policy,
            twin,
            fleet: Fleet(Vec::new()),
            next_id: 0,
            now: Instant::now(),
        };
        world.resolve();
        world
    }

    fn change(&mut self) {
        let count = self.fleet.0.len() as u64;
        match self.random.below(8) {
            0 => self.resolve(),
            1 => self.now += Duration::from_millis(self.random.of(&[1, 100, 1000, 11_000, 200_000])),
            2 => {
                for member in &mut self.fleet.0 {
                    member.outcomes.failed += self.random.below(300);
                }
            }
            3 => {
                for member in &mut self.fleet.0 {
                    member.outcomes.succeeded += self.random.below(300);
                }
            }
            4 | 5 if count > 0 => {
                let at = self.random.below(count) as usize;
                self.fleet.0[at].report = Some(report(&mut self.random, self.now));
            }
            _ if count > 0 => {
                let at = self.random.below(count) as usize;
                self.fleet.0[at].state = self.random.of(&STATES);
            }
            _ => {}
        }
    }

    /// Lists other endpoints; those that stay keep their id and state.
    fn resolve(&mut self) {
        let mut resolved = Vec::new();
        for number in 0..ENDPOINTS_MAX {
            if self.random.one_in(2) {
                let weight = self.random.of(&[1, 1, 1, 3, 1000]);
                resolved.push(endpoint(number).weight(weight));
            }
        }
        let selected = self.policy.select(resolved.clone());
        assert_eq!(selected, self.twin.select(resolved), "{self}");
        let mut before = std::mem::take(&mut self.fleet.0);
        for endpoint in selected {
            let known = before.iter().position(|member| member.endpoint.addresses == endpoint.addresses);
            let mut member = known.map_or_else(
                || Member::new(self.next_id, self.random.of(&STATES)),
                |at| before.swap_remove(at),
            );
            self.next_id += 1;
            member.endpoint = endpoint;
            self.fleet.0.push(member);
        }
    }

    fn decide(&mut self) -> Decision {
        let views = self.fleet.views();
        let decision = self.policy.decide(&views, self.now);
        let twin = self.twin.decide(&views, self.now);
        // Pickers show all that they decide by. Printing takes longer than the rest.
        if self.seed.is_multiple_of(8) {
            assert_eq!(format!("{decision:?}"), format!("{twin:?}"), "{self}");
        }
        decision
    }

    /// Returns the state of an endpoint, as the policy may use it.
    fn state(&self, decision: &Decision, at: usize) -> ConnectivityState {
        let ejected = decision.ejected.contains(&at);
        if ejected { ConnectivityState::TransientFailure } else { self.fleet.0[at].state }
    }

    fn has(&self, decision: &Decision, state: ConnectivityState) -> bool {
        (0..self.fleet.0.len()).any(|at| self.state(decision, at) == state)
    }

    fn check(&mut self, decision: &Decision) {
        let turns = [(); 8].map(|()| self.random.below(u64::MAX));
        let is = |at, state| self.state(decision, at) == state;
        let ready = self.has(decision, ConnectivityState::Ready);
        let connecting = self.has(decision, ConnectivityState::Connecting);
        let idle = self.has(decision, ConnectivityState::Idle);
        assert_eq!(decision.state == ConnectivityState::Ready, ready, "{self}");
        assert!(decision.connect.iter().all(|&at| is(at, ConnectivityState::Idle)), "{self}");
        assert!(decision.connect.windows(2).all(|pair| pair[0] < pair[1]), "{self}");
        assert!(decision.wake_at.is_none_or(|at| at > self.now), "{self}");
        let in_flight = |at: usize| self.fleet.0[at].id;
        for turn in turns {
            let hash = (turn % 4 > 0).then_some(turn);
            match decision.picker.pick(&PickArgs { hash, ..PickArgs::new(turn, &in_flight) }) {
                Pick::Endpoint(at) => assert!(is(at, ConnectivityState::Ready), "{self}"),
                Pick::EndpointAndConnect { ready, connect } => {
                    assert!(
                        is(ready, ConnectivityState::Ready) && is(connect, ConnectivityState::Idle),
                        "{self}"
                    );
                }
                Pick::Connect(at) => {
                    assert!(is(at, ConnectivityState::Idle), "{self}");
                    assert!(!ready || self.is_ring() && hash.is_some(), "{self}");
                }
                // A call waits for something.
                Pick::Queue | Pick::QueueUntil(_) => {
                    assert!(connecting || !decision.connect.is_empty(), "{self}");
                    assert!(!ready || self.is_ring() && hash.is_some(), "{self}");
                }
                Pick::Fail(_) => assert!(!ready && !connecting && !idle, "{self}"),
            }
        }
    }

    /// Every ready endpoint takes calls.
    fn check_starvation(&mut self) {
        if self.fleet.0.is_empty() {
            return;
        }
        self.fleet.0.iter_mut().for_each(|member| member.state = ConnectivityState::Ready);
        let decision = self.decide();
        let mut starving: Vec<usize> = (0..self.fleet.0.len()).collect();
        starving.retain(|at| !decision.ejected.contains(at));
        let all_ejected = starving.is_empty();
        if self.is_ring() {
            // The key of an endpoint's first entry, which may be the end of a short piece.
            for at in starving {
                let key = format!("{}_0", self.fleet.0[at].endpoint.name());
                let call =
                    PickArgs { hash: Some(RingHash::hash(key.as_bytes())), ..PickArgs::new(0, &|_| 0) };
                assert_eq!(decision.picker.pick(&call), Pick::Endpoint(at), "{self}");
            }
            return;
        }
        // The least weight is 0.01 of the mean, and waits for at most three times its share of turns.
        for turn in 0..300 * ENDPOINTS_MAX {
            match decision.picker.pick(&PickArgs::new(turn, &|_| 0)) {
                Pick::Endpoint(at) => starving.retain(|&other| other != at),
                pick => assert!(all_ejected, "{pick:?} in {self}"),
            }
            if starving.is_empty() {
                return;
            }
        }
        panic!("{starving:?} starve in {self}");
    }

    /// A call finds an endpoint soon after one can be connected to.
    fn check_recovery(&mut self) {
        let count = self.fleet.0.len();
        if count == 0 {
            return;
        }
        let good = self.random.below(count as u64) as usize;
        self.fleet.0.iter_mut().for_each(|member| member.state = ConnectivityState::Idle);
        let call_hash = mix(self.seed);
        for round in 0..2 * ENDPOINTS_MAX + 4 {
            // Ejections end.
            self.now += Duration::from_secs(400);
            let decision = self.decide();
            self.check(&decision);
            let call = PickArgs {
                hash: (!self.seed.is_multiple_of(3)).then_some(call_hash),
                ..PickArgs::new(round, &|_| 0)
            };
            let asked = match decision.picker.pick(&call) {
                Pick::Endpoint(_) | Pick::EndpointAndConnect { .. } => return,
                Pick::Connect(at) => Some(at),
                _ => None,
            };
            for at in decision.connect.into_iter().chain(asked) {
                let failed = ConnectivityState::TransientFailure;
                self.fleet.0[at].state = if at == good { ConnectivityState::Ready } else { failed };
            }
        }
        panic!("endpoint {good} is never found in {self}");
    }

    fn is_ring(&self) -> bool {
        format!("{:?}", self.config).contains("RingHash(")
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states: Vec<&str> = self.fleet.0.iter().map(|member| member.state.name()).collect();
        write!(f, "world {} of {:?} with {states:?}", self.seed, self.config)
    }
}

/// Returns a policy of the kind; one that wraps another wraps any.
pub(super) fn policy(random: &mut Random, kind: u64) -> PolicyConfig {
    match kind {
        0 => PolicyConfig::PickFirst(PickFirstConfig { shuffle_address_list: random.one_in(2) }),
        1 => PolicyConfig::RoundRobin,
        2 => PolicyConfig::LeastRequest(LeastRequestConfig { choice_count: random.below(12) as u32 }),
        3 => PolicyConfig::WeightedRoundRobin(WeightedRoundRobinConfig {
            blackout_period: Duration::from_secs(random.of(&[0, 1, 10])),
            weight_expiration_period: Duration::from_secs(random.of(&[0, 10, 180])),
            weight_update_period: Duration::from_millis(random.of(&[0, 1000])),
            error_utilization_penalty: random.of(&[0.0, 1.0, f64::MAX, f64::NAN]),
            ..Default::default()
        }),
        4 => PolicyConfig::RingHash(RingHashConfig {
            min_ring_size: random.of(&[0, 1, 30]),
            max_ring_size: random.of(&[0, 4, 60]),
            ..Default::default()
        }),
        5 => {
            let (size, child) = (random.below(6) as u32, random.below(7));
            PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(size, policy(random, child)))
        }
        _ => {
            let child = random.below(7);
            let child = Box::new(policy(random, child));
            PolicyConfig::OutlierDetection(OutlierDetectionConfig {
                interval: Duration::from_secs(random.of(&[0, 1, 10])),
                base_ejection_time: Duration::from_secs(random.of(&[0, 1, 30])),
                max_ejection_time: Duration::from_secs(300),
                max_ejection_percent: random.of(&[0, 10, 50, 100]),
                success_rate_ejection: random.one_in(2).then(|| SuccessRateEjection {
                    stdev_factor: random.of(&[0, 500, 1900]),
                    enforcement_percentage: random.of(&[0, 50, 100]),
                    minimum_hosts: random.of(&[0, 3]),
                    request_volume: random.of(&[0, 100]),
                }),
                failure_percentage_ejection: random.one_in(2).then(|| FailurePercentageEjection {
                    threshold: random.of(&[0, 50, 100]),
                    enforcement_percentage: random.of(&[0, 50, 100]),
                    minimum_hosts: random.of(&[0, 3]),
                    request_volume: random.of(&[0, 100]),
                }),
                child_policy: child,
            })
        }
    }
}

fn report(random: &mut Random, received_at: Instant) -> LoadReport {
    let mut value =
        || random.of(&[0.0, 0.1, 1.0, 50.0, 1e9, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE]);
    LoadReport {
        cpu_utilization: value(),
        memory_utilization: value(),
        application_utilization: value(),
        qps: value(),
        eps: value(),
        ..LoadReport::new(received_at)
    }
}
