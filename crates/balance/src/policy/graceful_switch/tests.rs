//! States of two policies in; which of them picks, and which endpoints stay, out.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::*;
use crate::policy::tests::{Fleet, Member as Server, describe, endpoint, picks, tally};
use crate::policy::{
    FailurePercentageEjection, LeastRequestConfig, LoadReport, NoneReady, Outcomes, OutlierDetectionConfig,
    PolicyFactory, RandomSubsettingConfig, RingHashConfig, WeightedRoundRobinConfig,
};

/// A policy of the application, whose state the test sets. It uses the endpoints of some numbers.
#[derive(Clone)]
pub(super) struct Script(Arc<Shared>);

struct Shared {
    name: &'static str,
    uses: Vec<u64>,
    state: Mutex<ConnectivityState>,
    built: AtomicUsize,
    alive: AtomicUsize,
}

#[derive(Debug)]
struct Scripted(Script);

impl Script {
    pub(super) fn new(name: &'static str, uses: &[u64], state: ConnectivityState) -> Self {
        let [built, alive] = [(); 2].map(|()| AtomicUsize::new(0));
        Self(Arc::new(Shared { name, uses: uses.to_vec(), state: Mutex::new(state), built, alive }))
    }

    fn set(&self, state: ConnectivityState) {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(super) fn config(&self) -> PolicyConfig {
        PolicyConfig::Custom(Arc::new(self.clone()))
    }

    /// Returns how many policies were created, and how many are not dropped.
    pub(super) fn counts(&self) -> [usize; 2] {
        [&self.0.built, &self.0.alive].map(|count| count.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl PolicyFactory for Script {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn build(&self, _: u64) -> Box<dyn Policy> {
        self.0.built.fetch_add(1, Ordering::Relaxed);
        self.0.alive.fetch_add(1, Ordering::Relaxed);
        Box::new(Scripted(self.clone()))
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.0.0.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Policy for Scripted {
    fn name(&self) -> &'static str {
        self.0.0.name
    }

    fn select(&mut self, resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        let uses = |listed: &Endpoint| self.0.0.uses.iter().any(|&number| endpoint(number).is_same(listed));
        resolved.into_iter().filter(uses).collect()
    }

    fn decide(&mut self, _: &[EndpointView<'_>], _: Instant) -> Decision {
        let state = *self.0.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        Decision::new(Arc::new(NoneReady::because(self.0.0.name.into())), state)
    }
}

/// A channel: it lists the endpoints of the policy, and drops those that are released.
#[derive(Debug)]
struct Channel {
    policy: GracefulSwitch,
    fleet: Fleet,
    next_id: u64,
    now: Instant,
}

impl Channel {
    /// Creates a channel whose endpoints of these numbers are ready, and decides.
    fn new(config: &PolicyConfig, numbers: &[u64]) -> Self {
        let policy = GracefulSwitch::new(config.clone(), 7);
        let mut channel = Self { policy, fleet: Fleet(Vec::new()), next_id: 0, now: Instant::now() };
        channel.resolve(numbers);
        channel.fleet.0.iter_mut().for_each(|server| server.state = ConnectivityState::Ready);
        channel.decide();
        channel
    }

    /// Lists endpoints. New ones are idle, and known ones keep their state.
    fn resolve(&mut self, numbers: &[u64]) {
        let mut before = std::mem::take(&mut self.fleet.0);
        for endpoint in self.policy.select(numbers.iter().copied().map(endpoint).collect()) {
            let known = before.iter().position(|server| server.endpoint.is_same(&endpoint));
            let server = match known {
                Some(at) => before.swap_remove(at),
                None => Server { endpoint, ..Server::new(self.next_id, ConnectivityState::Idle) },
            };
            self.next_id += 1;
            self.fleet.0.push(server);
        }
    }

    /// Changes the policy and the list of endpoints, as one resolution does.
    fn change(&mut self, config: &PolicyConfig, numbers: &[u64]) -> Decision {
        self.policy.update(config);
        self.resolve(numbers);
        self.decide()
    }

    fn decide(&mut self) -> Decision {
        loop {
            let decision = self.policy.decide(&self.fleet.views(), self.now);
            if decision.released.is_empty() {
                return decision;
            }
            for &at in decision.released.iter().rev() {
                self.fleet.0.remove(at);
            }
        }
    }

    fn ready(&mut self, at: usize) -> Decision {
        self.fleet.0[at].state = ConnectivityState::Ready;
        self.decide()
    }

    /// Returns the numbers of all endpoints.
    fn listed(&self) -> String {
        self.fleet.0.iter().map(|server| name(&server.endpoint)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the results of picks, with the numbers of endpoints.
    fn picked(&self, decision: &Decision) -> String {
        let result = |pick| match pick {
            Pick::Endpoint(at) => name(&self.fleet.0[at].endpoint),
            pick => describe(&pick),
        };
        let mut picked: Vec<String> = picks(decision, 0..50).map(result).collect();
        picked.sort();
        picked.dedup();
        picked.join(" ")
    }
}

/// Returns the number of each address: 1 for 10.0.0.1.
fn name(endpoint: &Endpoint) -> String {
    let number = |address: &crate::Address| {
        let address = address.to_string();
        address.trim_end_matches(":1").rsplit('.').next().unwrap_or_default().to_owned()
    };
    endpoint.addresses.iter().map(number).collect::<Vec<_>>().join("+")
}

const STATES: [ConnectivityState; 4] = [
    ConnectivityState::Idle,
    ConnectivityState::Connecting,
    ConnectivityState::Ready,
    ConnectivityState::TransientFailure,
];

fn subset(child: PolicyConfig) -> PolicyConfig {
    PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(9, child))
}

fn by_failures(child: PolicyConfig, percent: u32) -> PolicyConfig {
    let config = OutlierDetectionConfig::new(child).max_ejection_percent(percent);
    let ejection = FailurePercentageEjection::default();
    PolicyConfig::OutlierDetection(config.failure_percentage_ejection(ejection))
}

/// The rule of grpc-go's `gracefulswitch`.
#[test]
fn old_policy_picks_while_it_is_ready_and_the_new_one_connecting() {
    for old_state in STATES {
        for new_state in STATES {
            let old = Script::new("old", &[1, 2], ConnectivityState::Ready);
            let new = Script::new("new", &[2, 3], ConnectivityState::Connecting);
            let mut channel = Channel::new(&old.config(), &[1, 2, 3]);
            channel.change(&new.config(), &[1, 2, 3]);
            assert_eq!((channel.listed().as_str(), old.counts()), ("2 3 1", [1, 1]));
            old.set(old_state);
            new.set(new_state);
            let decision = channel.decide();
            // Endpoint 3 is idle, and connected before calls need it.
            let connects = new_state == ConnectivityState::Idle;
            let stays = old_state == ConnectivityState::Ready
                && (connects || new_state == ConnectivityState::Connecting);
            let (name, state, listed) =
                if stays { ("old", old_state, "2 3 1") } else { ("new", new_state, "2 3") };
            let what = format!("{old_state} to {new_state}");
            assert_eq!(decision.picker.failure().as_deref(), Some(name), "{what}");
            assert_eq!((channel.policy.name(), channel.policy.is_switching()), (name, stays), "{what}");
            assert_eq!(channel.listed(), listed, "{what}");
            if stays {
                assert_eq!((decision.state, decision.connect == [1]), (state, connects), "{what}");
            }
            assert_eq!((old.counts(), new.counts()), ([1, usize::from(stays)], [1, 1]), "{what}");
        }
    }
}

#[test]
fn policy_that_is_not_ready_is_replaced_at_once() {
    for state in STATES.into_iter().filter(|&state| state != ConnectivityState::Ready) {
        let old = Script::new("old", &[1], state);
        let new = Script::new("new", &[2], ConnectivityState::Connecting);
        let mut channel = Channel::new(&old.config(), &[1, 2]);
        channel.policy.update(&new.config());
        assert_eq!((old.counts(), channel.policy.is_switching()), ([1, 0], false));
        channel.resolve(&[1, 2]);
        assert_eq!(channel.listed(), "2");
    }
}

#[test]
fn third_policy_replaces_the_pending_one() {
    let old = Script::new("old", &[1], ConnectivityState::Ready);
    let [second, third] =
        [("second", 2), ("third", 3)].map(|(name, uses)| Script::new(name, &[uses], STATES[1]));
    let mut channel = Channel::new(&old.config(), &[1, 2, 3]);
    channel.change(&second.config(), &[1, 2, 3]);
    assert_eq!(channel.listed(), "2 1");
    let decision = channel.change(&third.config(), &[1, 2, 3]);
    assert_eq!(decision.picker.failure().as_deref(), Some("old"));
    assert_eq!((second.counts(), channel.listed().as_str()), ([1, 0], "3 1"));
    third.set(ConnectivityState::Ready);
    assert_eq!(channel.decide().picker.failure().as_deref(), Some("third"));
    assert_eq!((old.counts(), third.counts(), channel.listed().as_str()), ([1, 0], [1, 1], "3"));
}

#[test]
fn return_to_the_current_policy_ends_the_switch() {
    let mut channel = Channel::new(&PolicyConfig::RoundRobin, &[1, 2]);
    channel.change(&PolicyConfig::default(), &[3]);
    assert!(channel.policy.is_switching());
    let decision = channel.change(&PolicyConfig::RoundRobin, &[1, 2]);
    assert!(!channel.policy.is_switching());
    assert_eq!((channel.listed().as_str(), channel.picked(&decision).as_str()), ("1 2", "1 2"));
}

/// The rule of grpc-go, too: new lists are the pending policy's. One that is READY keeps its servers, even if all have
/// left the list.
#[test]
fn old_policy_keeps_its_endpoints_until_the_switch() {
    let mut channel = Channel::new(&PolicyConfig::RoundRobin, &[1, 2]);
    let decision = channel.change(&subset(PolicyConfig::RoundRobin), &[3, 4]);
    assert_eq!((channel.listed(), channel.picked(&decision)), ("3 4 1 2".into(), "1 2".into()));
    assert_eq!((decision.connect, channel.policy.selected_len()), (vec![0, 1], 2));
    channel.resolve(&[4, 5]);
    let decision = channel.decide();
    assert_eq!((channel.listed(), channel.picked(&decision)), ("4 5 1 2".into(), "1 2".into()));
    let decision = channel.ready(1);
    assert_eq!((channel.listed(), channel.picked(&decision)), ("4 5".into(), "5".into()));
}

#[test]
fn pick_first_and_ring_hash_connect_before_calls_need_them() {
    for config in [PolicyConfig::default(), PolicyConfig::RingHash(RingHashConfig::default())] {
        let mut channel = Channel::new(&PolicyConfig::RoundRobin, &[1, 2]);
        let decision = channel.change(&config, &[3, 4]);
        assert_eq!((channel.picked(&decision), decision.connect), ("1 2".into(), vec![0]));
        channel.fleet.0[0].state = ConnectivityState::Connecting;
        let decision = channel.decide();
        assert_eq!((channel.picked(&decision), decision.connect), ("1 2".into(), vec![]));
        let decision = channel.ready(0);
        assert_eq!((decision.state, channel.policy.is_switching()), (ConnectivityState::Ready, false));
        assert!(!channel.listed().contains(['1', '2']), "{}", channel.listed());
    }
}

/// gRFC A17: `pick_first` does not check health.
#[test]
fn each_policy_sees_the_health_that_it_checks() {
    // Its health is not known yet.
    let decide_unhealthy = |channel: &mut Channel| {
        let mut views = channel.fleet.views();
        for view in &mut views {
            (view.connection, view.state) = (view.state, ConnectivityState::Connecting);
        }
        channel.policy.decide(&views, channel.now).state
    };
    let mut channel = Channel::new(&PolicyConfig::default(), &[1]);
    assert_eq!(decide_unhealthy(&mut channel), ConnectivityState::Ready);
    channel.policy.update(&PolicyConfig::RoundRobin);
    channel.resolve(&[1]);
    assert_eq!(decide_unhealthy(&mut channel), ConnectivityState::Ready);
    assert!(channel.policy.is_switching() && channel.policy.checks_health());
    channel.decide();
    assert!(!channel.policy.is_switching());
    assert_eq!(decide_unhealthy(&mut channel), ConnectivityState::Connecting);
}

#[test]
fn needs_are_those_of_both_policies() {
    let weighted = |is_oob| {
        let config = WeightedRoundRobinConfig::default().enable_oob_load_report(is_oob);
        PolicyConfig::WeightedRoundRobin(config)
    };
    let [per_call, oob] = [false, true].map(|is_oob| weighted(is_oob).build(1).needs());
    let mut channel = Channel::new(&weighted(false), &[1]);
    channel.change(&by_failures(PolicyConfig::RoundRobin, 10), &[2]);
    assert_eq!(channel.policy.needs(), Needs { outcomes: true, ..per_call });
    channel.change(&by_failures(weighted(true), 10), &[2]);
    assert_eq!(channel.policy.needs(), Needs { outcomes: true, ..oob });
    channel.ready(0);
    assert!(!channel.policy.is_switching());
    channel.change(&PolicyConfig::RoundRobin, &[2]);
    assert_eq!(channel.policy.needs(), Needs::default());
}

/// gRFC A58: weights are known from reports, which need not come again.
#[test]
fn weights_survive_other_settings() {
    let config = |update| {
        let config = WeightedRoundRobinConfig::default().blackout_period(Duration::ZERO);
        PolicyConfig::WeightedRoundRobin(config.weight_update_period(Duration::from_secs(update)))
    };
    let mut channel = Channel::new(&config(1), &[1, 2]);
    for (server, qps) in channel.fleet.0.iter_mut().zip([100.0, 300.0]) {
        let report = LoadReport { cpu_utilization: 1.0, qps, ..LoadReport::new(channel.now) };
        server.report = Some(report);
    }
    channel.now += Duration::from_secs(2);
    let shares = tally(2, picks(&channel.decide(), 0..100));
    assert!(shares[1] > 2 * shares[0], "{shares:?}");
    channel.fleet.0.iter_mut().for_each(|server| server.report = None);
    let decision = channel.change(&config(5), &[1, 2]);
    assert!(!channel.policy.is_switching());
    assert_eq!(tally(2, picks(&decision, 0..100)), shares);
}

/// gRFC A50: ejected endpoints stay so, until no algorithm is left.
#[test]
fn ejections_survive_other_settings_and_another_child() {
    let numbers = [1, 2, 3, 4, 5];
    let mut channel = Channel::new(&by_failures(PolicyConfig::RoundRobin, 20), &numbers);
    for (at, server) in channel.fleet.0.iter_mut().enumerate() {
        let (failed, succeeded) = if at == 0 { (100, 0) } else { (0, 100) };
        server.outcomes = Outcomes { succeeded, failed };
    }
    channel.now += Duration::from_secs(10);
    assert_eq!(channel.decide().ejected, [0]);
    let least = PolicyConfig::LeastRequest(LeastRequestConfig::default());
    for child in [PolicyConfig::RoundRobin, least] {
        let decision = channel.change(&by_failures(child, 30), &numbers);
        assert_eq!((channel.picked(&decision).as_str(), decision.ejected), ("2 3 4 5", vec![0]));
    }
    let disabled = PolicyConfig::OutlierDetection(OutlierDetectionConfig::new(PolicyConfig::RoundRobin));
    let decision = channel.change(&disabled, &numbers);
    assert_eq!((channel.picked(&decision).as_str(), decision.ejected), ("1 2 3 4 5", vec![]));
    assert!(!channel.policy.is_switching());
}

/// A child changes as gracefully as the policy of a channel. The channel learns which endpoints it releases.
#[test]
fn child_changes_gracefully() {
    let wraps: [fn(PolicyConfig) -> PolicyConfig; 3] = [
        subset,
        |child| PolicyConfig::OutlierDetection(OutlierDetectionConfig::new(child)),
        |child| by_failures(subset(child), 10),
    ];
    for wrap in wraps {
        let mut channel = Channel::new(&wrap(PolicyConfig::RoundRobin), &[1, 2]);
        let decision = channel.change(&wrap(PolicyConfig::default()), &[1, 2]);
        assert!(!channel.policy.is_switching());
        assert_eq!((channel.listed(), channel.picked(&decision)), ("1+2 1 2".into(), "1 2".into()));
        assert_eq!(decision.connect, [0]);
        let decision = channel.ready(0);
        assert_eq!((channel.listed(), channel.picked(&decision)), ("1+2".into(), "1+2".into()));
        assert_eq!(decision.state, ConnectivityState::Ready);
    }
}

/// A child may end its switch while its parent is being replaced. The parent's successor keeps its endpoints.
#[test]
fn switches_may_be_nested() {
    let mut channel = Channel::new(&subset(PolicyConfig::RoundRobin), &[1, 2, 3]);
    channel.change(&subset(PolicyConfig::default()), &[4]);
    assert_eq!(channel.listed(), "4 1 2 3");
    let successor = Script::new("successor", &[2, 5], ConnectivityState::Connecting);
    let decision = channel.change(&successor.config(), &[2, 5]);
    assert_eq!((channel.listed(), channel.picked(&decision)), ("2 5 4 1 3".into(), "1 2 3".into()));
    let decision = channel.ready(2);
    assert_eq!((channel.listed(), channel.picked(&decision)), ("2 5 4".into(), "4".into()));
    assert!(channel.policy.is_switching());
    successor.set(ConnectivityState::Ready);
    channel.decide();
    assert_eq!(channel.listed(), "2 5");
}
