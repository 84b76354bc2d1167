//! Changes of policies in random worlds: any policies, lists of endpoints and states, in any order and virtual time.
//!
//! A failure names its seed; `run(seed)` replays it.

use std::fmt;
use std::time::Duration;

use super::tests::Script;
use super::*;
use crate::policy::models::{Random, STATES, policy};
use crate::policy::tests::{Fleet, Member as Server, endpoint, picks};

/// Worlds in total.
const SEEDS: u64 = 10_000;

/// Steps per world.
const STEPS: usize = 24;

/// Endpoints that a resolver knows.
const ENDPOINTS_MAX: u64 = 8;

#[test]
fn no_world_breaks_a_switch() {
    let mut switches = 0;
    for seed in 0..SEEDS {
        switches += run(seed);
    }
    // Worlds without switches would check nothing.
    assert!(switches > SEEDS, "{switches} switches");
}

/// Returns the number of switches that took more than one decision.
fn run(seed: u64) -> u64 {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        let is_kept = world.change();
        // A child may switch to a policy that has failed.
        let is_parent = world.policy.name().contains("subsetting") || world.policy.name().contains("outlier");
        let decision = world.decide();
        world.check(&decision, is_kept && !is_parent);
    }
    world.check_end();
    world.switches
}

struct World {
    seed: u64,
    random: Random,
    policy: GracefulSwitch,
    /// A second policy of the same seed, which must decide the same.
    twin: GracefulSwitch,
    /// A policy of the application, among the others.
    script: Script,
    resolved: Vec<Endpoint>,
    fleet: Fleet,
    next_id: u64,
    now: Instant,
    /// Ids of the endpoints that calls were sent to by the last decision.
    picked: Vec<u64>,
    switches: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = random.below(7);
        let config = policy(&mut random, kind);
        let state = random.of(&[ConnectivityState::Connecting, ConnectivityState::TransientFailure]);
        let script = Script::new("script", &[0, 1, 2, 3], state);
        let [policy, twin] = [(); 2].map(|()| GracefulSwitch::new(config.clone(), seed));
        let (resolved, fleet, now) = (Vec::new(), Fleet(Vec::new()), Instant::now());
        let (next_id, picked, switches) = (0, Vec::new(), 0);
        let mut world =
            Self { seed, random, policy, twin, script, resolved, fleet, next_id, now, picked, switches };
        world.resolve();
        world
    }

    /// Returns whether a policy that can pick can do so still: neither its endpoints nor their states have changed.
    fn change(&mut self) -> bool {
        let count = self.fleet.0.len() as u64;
        match self.random.below(8) {
            0 => {
                self.resolve();
                false
            }
            1..=3 => {
                let kind = self.random.below(8);
                let config = if kind == 7 { self.script.config() } else { policy(&mut self.random, kind) };
                let name = self.policy.config().build(0).name();
                let is_other = config.build(0).name() != name;
                self.policy.update(&config);
                self.twin.update(&config);
                self.resolve();
                // Other settings of one policy may choose other endpoints.
                is_other && self.policy.is_switching()
            }
            4 => {
                self.now += Duration::from_millis(self.random.of(&[1, 100, 1000]));
                false
            }
            _ if count > 0 => {
                let at = self.random.below(count) as usize;
                let server = &mut self.fleet.0[at];
                let is_kept = !self.picked.contains(&server.id);
                server.state = self.random.of(&STATES);
                is_kept && self.policy.is_switching()
            }
            _ => false,
        }
    }

    /// Lists other endpoints; those that stay keep their id and state.
    fn resolve(&mut self) {
        self.resolved = (0..ENDPOINTS_MAX).filter(|_| self.random.one_in(2)).map(endpoint).collect();
        let selected = self.policy.select(self.resolved.clone());
        assert_eq!(selected, self.twin.select(self.resolved.clone()), "{self}");
        let mut before = std::mem::take(&mut self.fleet.0);
        for endpoint in selected {
            let known = before.iter().position(|server| server.endpoint.is_same(&endpoint));
            let server = match known {
                Some(at) => Server { endpoint, ..before.swap_remove(at) },
                None => Server { endpoint, ..Server::new(self.next_id, self.random.of(&STATES)) },
            };
            self.next_id += 1;
            self.fleet.0.push(server);
        }
    }

    fn decide(&mut self) -> Decision {
        let was_switching = self.policy.is_switching();
        let mut rounds = 0;
        let decision = loop {
            let views = self.fleet.views();
            let decision = self.policy.decide(&views, self.now);
            let twin = self.twin.decide(&views, self.now);
            assert_eq!((decision.state, &decision.released), (twin.state, &twin.released), "{self}");
            if decision.released.is_empty() {
                break decision;
            }
            assert!(decision.released.is_sorted_by(|a, b| a < b), "{self}");
            for &at in decision.released.iter().rev() {
                self.fleet.0.remove(at);
            }
            rounds += 1;
            assert!(rounds < 10, "{self}");
        };
        self.switches += u64::from(was_switching && !self.policy.is_switching());
        decision
    }

    fn state(&self, decision: &Decision, at: usize) -> ConnectivityState {
        let is_ejected = decision.ejected.contains(&at);
        if is_ejected { ConnectivityState::TransientFailure } else { self.fleet.0[at].state }
    }

    fn check(&mut self, decision: &Decision, is_kept: bool) {
        let first = self.random.below(u64::MAX / 2);
        let before = std::mem::take(&mut self.picked);
        for pick in picks(decision, first..first + 12) {
            match pick {
                Pick::Endpoint(at) | Pick::EndpointAndConnect { ready: at, .. } => {
                    assert_eq!(self.state(decision, at), ConnectivityState::Ready, "{self}");
                    self.picked.push(self.fleet.0[at].id);
                }
                Pick::Connect(at) => assert_eq!(self.fleet.0[at].state, ConnectivityState::Idle, "{self}"),
                Pick::Queue | Pick::QueueUntil(_) | Pick::Fail(_) => {}
            }
        }
        assert!(
            decision.connect.iter().all(|&at| self.fleet.0[at].state == ConnectivityState::Idle),
            "{self}"
        );
        assert!(decision.connect.is_sorted_by(|a, b| a < b), "{self}");
        // Calls that found a server find one, unless the new policy has failed.
        if is_kept && !before.is_empty() && self.picked.is_empty() {
            assert!(!self.policy.is_switching(), "{self}");
            assert_eq!(decision.state, ConnectivityState::TransientFailure, "{self}");
        }
        if self.policy.is_switching() {
            assert_eq!(decision.state, ConnectivityState::Ready, "{self}");
        }
        // The latest policy, and one that is replaced.
        assert!(self.script.counts()[1] <= 2, "{self}");
    }

    /// Once its endpoints are ready, only the latest policy is left, with its endpoints.
    fn check_end(&mut self) {
        let config = policy(&mut self.random, self.seed % 7);
        self.policy.update(&config);
        self.twin.update(&config);
        self.resolve();
        for _ in 0..3 {
            // Ejections end.
            self.now += Duration::from_secs(400);
            self.fleet.0.iter_mut().for_each(|server| server.state = ConnectivityState::Ready);
            self.decide();
        }
        let decision = self.decide();
        let expected = GracefulSwitch::new(config, self.seed).select(self.resolved.clone());
        assert_eq!(self.fleet.endpoints(), expected, "{self}");
        assert!(!self.policy.is_switching() && decision.released.is_empty(), "{self}");
        assert_eq!(self.script.counts()[1], 0, "{self}");
        for pick in picks(&decision, 0..20) {
            assert!(matches!(pick, Pick::Endpoint(_)) || self.fleet.0.is_empty(), "{pick:?} in {self}");
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states: Vec<&str> = self.fleet.0.iter().map(|server| server.state.name()).collect();
        write!(f, "world {} with {states:?} of {:?}", self.seed, self.policy)
    }
}
