//! Changes of a channel's policy while calls are made: [`GracefulSwitch`].

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use super::{Decision, EndpointView, Needs, Pick, PickArgs, Picker, Policy, PolicyConfig};
use crate::endpoint::{ConnectivityState, Endpoint};

/// Replaces a policy without making calls wait, as other gRPC implementations do.
///
/// ```text
///   update ──the same policy──► it takes the new settings
///     │ another policy
///     ▼
///   pending ──the current one is not READY, or the pending one not CONNECTING──► current
/// ```
///
/// The current policy picks until the switch. Meanwhile new lists of endpoints go to the pending policy only, and the
/// endpoints are those of both. A pending policy that is IDLE connects its first endpoint: there are calls, which would
/// wait for it after the switch.
#[derive(Debug)]
pub struct GracefulSwitch {
    seed: u64,
    /// Settings of the latest policy: the pending one if there is one.
    config: PolicyConfig,
    current: Member,
    pending: Option<Member>,
}

/// A policy with its endpoints.
#[derive(Debug)]
struct Member {
    policy: Box<dyn Policy>,
    /// Its endpoints, all distinct.
    selected: Vec<Endpoint>,
    /// Positions of `selected` among the endpoints of both policies.
    positions: Vec<usize>,
    /// State at its last decision.
    state: ConnectivityState,
}

impl GracefulSwitch {
    /// Creates the first policy. All random choices of this and later policies derive from `seed`.
    pub fn new(config: PolicyConfig, seed: u64) -> Self {
        Self { seed, current: Member::new(&config, seed), config, pending: None }
    }

    /// Returns the settings of the latest policy.
    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }

    /// Returns whether a policy is pending.
    pub fn is_switching(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the number of endpoints that the latest policy has selected.
    pub fn selected_len(&self) -> usize {
        self.pending.as_ref().unwrap_or(&self.current).selected.len()
    }

    /// Takes new settings: for the latest policy, or for another one, which then replaces a pending one. Settings for
    /// the current policy end the switch.
    pub fn update(&mut self, config: &PolicyConfig) {
        if *config == self.config {
            return;
        }
        self.config = config.clone();
        let latest = self.pending.as_mut().unwrap_or(&mut self.current);
        if latest.policy.reconfigure(config.settings()) {
            return;
        }
        if self.pending.is_some() && self.current.policy.reconfigure(config.settings()) {
            self.pending = None;
            return;
        }
        let next = Member::new(config, self.seed);
        if self.current.state == ConnectivityState::Ready {
            self.pending = Some(next);
        } else {
            (self.current, self.pending) = (next, None);
        }
    }
}

impl Policy for GracefulSwitch {
    /// Returns the name of the current policy.
    fn name(&self) -> &'static str {
        self.current.policy.name()
    }

    /// Returns the endpoints of both policies, all distinct: first those of the latest one, in its order.
    fn select(&mut self, resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        let latest = self.pending.as_mut().unwrap_or(&mut self.current);
        let mut all = Vec::new();
        for endpoint in latest.policy.select(resolved) {
            position_in(&mut all, &endpoint);
        }
        latest.selected.clone_from(&all);
        latest.positions = (0..all.len()).collect();
        if self.pending.is_some() {
            let selected = &self.current.selected;
            self.current.positions =
                selected.iter().map(|endpoint| position_in(&mut all, endpoint)).collect();
        }
        all
    }

    /// Returns what either policy reads. If they need reports from different sources, the pending one's is used.
    fn needs(&self) -> Needs {
        let current = self.current.policy.needs();
        let Some(pending) = &self.pending else { return current };
        let pending = pending.policy.needs();
        Needs { outcomes: current.outcomes || pending.outcomes, reports: pending.reports.or(current.reports) }
    }

    fn checks_health(&self) -> bool {
        self.current.policy.checks_health()
            || self.pending.as_ref().is_some_and(|pending| pending.policy.checks_health())
    }

    fn hash_header(&self) -> Option<&str> {
        self.current.policy.hash_header()
    }

    /// # Panics
    /// Panics while a policy is pending if `endpoints` are fewer than [`select`](Self::select) returned, less those
    /// that were released.
    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        let Some(pending) = &mut self.pending else { return self.current.decide_alone(endpoints, now) };
        let mut decision = self.current.decide(endpoints, now);
        let next = pending.decide_and_connect(endpoints, now);
        let mut is_used = vec![false; endpoints.len()];
        let mut note_used = |member: &Member| member.positions.iter().for_each(|&at| is_used[at] = true);
        note_used(pending);
        let is_waiting = next.state == ConnectivityState::Connecting;
        if decision.state == ConnectivityState::Ready && is_waiting {
            note_used(&self.current);
            decision.connect.extend(next.connect);
            decision.connect.sort_unstable();
            decision.connect.dedup();
            decision.wake_at = decision.wake_at.into_iter().chain(next.wake_at).min();
        } else {
            decision = next;
            if let Some(pending) = self.pending.take() {
                self.current = pending;
            }
        }
        decision.released = (0..endpoints.len()).filter(|&at| !is_used[at]).collect();
        decision
    }
}

impl Member {
    fn new(config: &PolicyConfig, seed: u64) -> Self {
        let (selected, positions) = (Vec::new(), Vec::new());
        Self { policy: config.build(seed), selected, positions, state: ConnectivityState::Idle }
    }

    /// Decides as the only policy, whose endpoints are all.
    fn decide_alone(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        let decision = if self.policy.checks_health() {
            self.policy.decide(endpoints, now)
        } else {
            let views: Vec<_> = endpoints.iter().map(EndpointView::without_health).collect();
            self.policy.decide(&views, now)
        };
        self.state = decision.state;
        self.release(&decision.released);
        decision
    }

    /// Decides as one of two policies. Positions in the decision are those in the list of both.
    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        loop {
            let checks_health = self.policy.checks_health();
            let view = |(endpoint, &at): (_, &usize)| {
                let view = if checks_health { endpoints[at] } else { endpoints[at].without_health() };
                EndpointView { endpoint, ..view }
            };
            let views: Vec<_> = self.selected.iter().zip(&self.positions).map(view).collect();
            let decision = self.policy.decide(&views, now);
            self.state = decision.state;
            if !self.release(&decision.released) {
                return self.translate(decision);
            }
        }
    }

    /// Decides as the pending policy. If that waits for a call before it connects, its first endpoint is connected.
    fn decide_and_connect(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        let mut decision = self.decide(endpoints, now);
        if decision.state == ConnectivityState::Idle {
            let is_idle = |&&at: &&usize| endpoints[at].state == ConnectivityState::Idle;
            if let Some(&idle) = self.positions.iter().find(is_idle) {
                decision.connect.push(idle);
                decision.state = ConnectivityState::Connecting;
            }
        }
        decision
    }

    /// Forgets the endpoints that the policy has released. Returns whether it had any of them.
    fn release(&mut self, released: &[usize]) -> bool {
        let before = self.selected.len();
        let is_kept = |at: usize| !released.contains(&at);
        retain_at(&mut self.selected, is_kept);
        retain_at(&mut self.positions, is_kept);
        self.selected.len() < before
    }

    /// Translates positions in `selected` to those in the list of both policies. A policy of the application may name
    /// positions that do not exist.
    fn translate(&self, mut decision: Decision) -> Decision {
        if self.positions.iter().copied().eq(0..self.positions.len()) {
            return decision;
        }
        let translate = |positions: &[usize]| {
            positions.iter().filter_map(|&at| self.positions.get(at).copied()).collect::<Vec<_>>()
        };
        decision.connect = translate(&decision.connect);
        decision.ejected = translate(&decision.ejected);
        let weights = decision.weights.iter();
        decision.weights =
            weights.filter_map(|&(at, weight)| Some((*self.positions.get(at)?, weight))).collect();
        decision.picker = Arc::new(OverPart { positions: self.positions.clone(), picker: decision.picker });
        decision
    }
}

/// A picker over some of the endpoints.
#[derive(Debug)]
struct OverPart {
    /// Positions of its endpoints.
    positions: Vec<usize>,
    picker: Arc<dyn Picker>,
}

impl OverPart {
    /// Returns the position among all endpoints; one that does not exist if `at` does not.
    fn position(&self, at: usize) -> usize {
        self.positions.get(at).copied().unwrap_or(usize::MAX)
    }
}

impl Picker for OverPart {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        let in_flight = |at: usize| (call.in_flight)(self.position(at));
        match self.picker.pick(&PickArgs { in_flight: &in_flight, ..*call }) {
            Pick::Endpoint(at) => Pick::Endpoint(self.position(at)),
            Pick::EndpointAndConnect { ready, connect } => {
                Pick::EndpointAndConnect { ready: self.position(ready), connect: self.position(connect) }
            }
            Pick::Connect(at) => Pick::Connect(self.position(at)),
            pick @ (Pick::Queue | Pick::QueueUntil(_) | Pick::Fail(_)) => pick,
        }
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.picker.failure()
    }
}

/// Returns the position of an endpoint in the list, to which it is added if it is new.
fn position_in(all: &mut Vec<Endpoint>, endpoint: &Endpoint) -> usize {
    all.iter().position(|known| known.is_same(endpoint)).unwrap_or_else(|| {
        all.push(endpoint.clone());
        all.len() - 1
    })
}

fn retain_at<T>(list: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
    let mut positions = 0..list.len();
    list.retain(|_| positions.next().is_some_and(&is_kept));
}
