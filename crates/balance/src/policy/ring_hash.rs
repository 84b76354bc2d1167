//! `ring_hash`: calls with the same hash go to the same endpoint (gRFCs A42, A61, A76).

mod ring;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Instant;

use twox_hash::XxHash64;

use self::ring::Ring;
use super::{Decision, EndpointView, NoneReady, Pick, PickArgs, Picker, Policy, mix};
use crate::endpoint::{ConnectivityState, Endpoint};

/// Settings of `ring_hash`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingHashConfig {
    /// Number of entries that the ring should have at least: at most 8 Mi, 1024 by default.
    pub min_ring_size: u64,
    /// Maximum number of entries: at most 8 Mi, 4096 by default. Each endpoint has an entry nevertheless.
    pub max_ring_size: u64,
    /// Name of the header whose value is hashed; `None` by default, where calls have a hash of another source or none.
    pub request_hash_header: Option<String>,
    /// The channel's limit of both sizes, which no service config changes; 4096 by default.
    pub ring_size_cap: u64,
}

/// Maximum of both ring sizes in a service config.
pub const RING_SIZE_MAX: u64 = 8 << 20;

impl RingHashConfig {
    /// Sets the number of entries that the ring should have at least.
    pub fn min_ring_size(mut self, size: u64) -> Self {
        self.min_ring_size = size.min(RING_SIZE_MAX);
        self
    }

    /// Sets the maximum number of entries.
    pub fn max_ring_size(mut self, size: u64) -> Self {
        self.max_ring_size = size.min(RING_SIZE_MAX);
        self
    }

    /// Sets the name of the header whose value is hashed, in lower case.
    pub fn request_hash_header(mut self, name: impl Into<String>) -> Self {
        self.request_hash_header = Some(name.into());
        self
    }

    /// Sets the channel's limit of both sizes.
    pub fn ring_size_cap(mut self, size: u64) -> Self {
        self.ring_size_cap = size.min(RING_SIZE_MAX);
        self
    }
}

impl Default for RingHashConfig {
    fn default() -> Self {
        Self { min_ring_size: 1024, max_ring_size: 4096, request_hash_header: None, ring_size_cap: 4096 }
    }
}

/// Sends each call to the endpoint that follows its hash on a ring, or to the next one if that failed.
///
/// Endpoints connect when a call needs them. A call without a hash goes to a random ready endpoint.
#[derive(Debug)]
pub struct RingHash {
    config: RingHashConfig,
    /// Endpoints of the ring, in order.
    listed: Vec<Endpoint>,
    ring: Arc<Ring>,
}

#[derive(Debug)]
struct OnRing {
    ring: Arc<Ring>,
    /// State of each endpoint.
    states: Vec<ConnectivityState>,
    /// Whether an endpoint is connecting.
    connecting: bool,
    /// Result of a call that finds no endpoint: it waits for one that connects, or fails.
    none_ready: NoneReady,
}

impl RingHash {
    /// Creates the policy.
    pub fn new(config: RingHashConfig) -> Self {
        Self { config, listed: Vec::new(), ring: Arc::default() }
    }

    /// Returns the hash of a header's value, for [`PickArgs::hash`]. Several values are joined with commas first.
    pub fn hash(value: &[u8]) -> u64 {
        XxHash64::oneshot(0, value)
    }

    /// Returns the ring of these endpoints: the last one if only states have changed.
    fn ring(&mut self, endpoints: &[EndpointView<'_>]) -> Arc<Ring> {
        if !self.listed.iter().eq(endpoints.iter().map(|view| view.endpoint)) {
            let capped = |size: u64| size.min(self.config.ring_size_cap).clamp(1, RING_SIZE_MAX);
            let max = capped(self.config.max_ring_size);
            self.listed = endpoints.iter().map(|view| view.endpoint.clone()).collect();
            self.ring = Arc::new(Ring::new(&self.listed, capped(self.config.min_ring_size).min(max), max));
        }
        self.ring.clone()
    }
}

impl Policy for RingHash {
    fn name(&self) -> &'static str {
        "ring_hash_experimental"
    }

    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        let Some(config) = settings.downcast_ref::<RingHashConfig>() else { return false };
        // Another ring follows from other sizes.
        *self = Self::new(config.clone());
        true
    }

    /// Merges endpoints that are listed several times, and adds up their weights (gRFC A42).
    fn select(&mut self, resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        let mut positions = HashMap::new();
        let mut merged: Vec<Endpoint> = Vec::with_capacity(resolved.len());
        for endpoint in resolved {
            match positions.entry(endpoint.addresses.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(merged.len());
                    merged.push(endpoint);
                }
                Entry::Occupied(entry) => {
                    let known = &mut merged[*entry.get()];
                    known.weight = known.weight.saturating_add(endpoint.weight);
                }
            }
        }
        merged
    }

    fn hash_header(&self) -> Option<&str> {
        self.config.request_hash_header.as_deref()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], _: Instant) -> Decision {
        let state = aggregate(endpoints);
        let connecting = has(endpoints, ConnectivityState::Connecting);
        let picker = OnRing {
            ring: self.ring(endpoints),
            states: endpoints.iter().map(|view| view.state).collect(),
            connecting,
            none_ready: NoneReady::of(endpoints),
        };
        let mut decision = Decision::new(Arc::new(picker), state);
        // Without calls the channel would never leave these states (gRFC A61).
        let stuck = matches!(state, ConnectivityState::TransientFailure | ConnectivityState::Connecting);
        if stuck && !connecting {
            decision.connect.extend(endpoints.iter().position(|view| view.state == ConnectivityState::Idle));
        }
        decision
    }
}

impl Picker for OnRing {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        let Some(hash) = call.hash else {
            return self.pick_random(call);
        };
        for at in self.ring.walk(hash) {
            match self.states[at] {
                ConnectivityState::Ready => return Pick::Endpoint(at),
                ConnectivityState::Idle => return Pick::Connect(at),
                ConnectivityState::Connecting => return Pick::Queue,
                ConnectivityState::TransientFailure | ConnectivityState::Shutdown => {}
            }
        }
        self.none_ready.pick(call)
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.none_ready.failure()
    }
}

impl OnRing {
    /// Picks the next ready endpoint, and connects an idle one on the way unless one is connecting (gRFC A76).
    fn pick_random(&self, call: &PickArgs<'_>) -> Pick {
        let mut idle = None;
        for at in self.ring.walk(mix(call.turn)) {
            match (self.states[at], idle) {
                (ConnectivityState::Ready, None) => return Pick::Endpoint(at),
                (ConnectivityState::Ready, Some(connect)) => {
                    return Pick::EndpointAndConnect { ready: at, connect };
                }
                (ConnectivityState::Idle, None) if !self.connecting => idle = Some(at),
                _ => {}
            }
        }
        idle.map_or_else(|| self.none_ready.pick(call), Pick::Connect)
    }
}

/// Returns the state of the channel by the rules of gRFC A42, which presume that most endpoints never connect.
fn aggregate(endpoints: &[EndpointView<'_>]) -> ConnectivityState {
    use ConnectivityState as State;
    let failed = |view: &&EndpointView<'_>| matches!(view.state, State::TransientFailure | State::Shutdown);
    let failed = endpoints.iter().filter(failed).count();
    if has(endpoints, State::Ready) {
        State::Ready
    } else if failed >= 2 {
        State::TransientFailure
    } else if has(endpoints, State::Connecting) || (failed == 1 && endpoints.len() > 1) {
        State::Connecting
    } else if has(endpoints, State::Idle) {
        State::Idle
    } else {
        State::TransientFailure
    }
}

fn has(endpoints: &[EndpointView<'_>], state: ConnectivityState) -> bool {
    endpoints.iter().any(|view| view.state == state)
}
