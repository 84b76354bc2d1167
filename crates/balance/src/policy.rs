//! Balancing policies: which endpoints connect, and which gets each call.

mod config;
mod least_request;
mod outlier_detection;
mod per_endpoint;
mod pick_first;
mod random_subsetting;
mod ring_hash;
mod round_robin;
mod weighted_round_robin;

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twox_hash::XxHash64;

pub use config::{PolicyConfig, PolicyFactory};
pub use least_request::{LeastRequest, LeastRequestConfig};
pub use outlier_detection::{
    FailurePercentageEjection, OutlierDetection, OutlierDetectionConfig, SuccessRateEjection,
};
pub use pick_first::{PickFirst, PickFirstConfig};
pub use random_subsetting::{RandomSubsetting, RandomSubsettingConfig};
pub use ring_hash::{RING_SIZE_MAX, RingHash, RingHashConfig};
pub use round_robin::RoundRobin;
pub use weighted_round_robin::{WeightedRoundRobin, WeightedRoundRobinConfig};

use crate::endpoint::{ConnectivityState, Endpoint};

/// A balancing policy: a state machine over the endpoints of one channel.
///
/// The channel calls [`decide`](Self::decide) whenever the list of endpoints, a state or a report has changed, and at
/// [`Decision::wake_at`]. Between two decisions calls go where the last decision's [`Picker`] sends them.
pub trait Policy: Send + fmt::Debug {
    /// Returns the name in service configs, such as `round_robin`.
    fn name(&self) -> &'static str;

    /// Selects and orders the endpoints to use among those that the resolver lists; all by default.
    fn select(&mut self, resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        resolved
    }

    /// Returns which measurements of endpoints the policy reads; none by default. They cost time in every call.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the name of the header that [`PickArgs::hash`] hashes (gRFC A76); none by default.
    fn hash_header(&self) -> Option<&str> {
        None
    }

    /// Decides by the current state of all endpoints. Positions in the decision are positions in `endpoints`.
    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision;
}

/// An endpoint's current state, for a policy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EndpointView<'a> {
    /// Unique in the channel, and kept while the resolver lists the endpoint.
    pub id: u64,
    /// Addresses and attributes.
    pub endpoint: &'a Endpoint,
    /// State of its connection. `TransientFailure` lasts until the endpoint is `Ready` again.
    pub state: ConnectivityState,
    /// Reason for `TransientFailure`.
    pub error: Option<&'a str>,
    /// Outcomes of its calls so far. Zero unless the policy [needs](Needs::outcomes) them.
    pub outcomes: Outcomes,
    /// Its last load report. `None` unless the policy [needs](Needs::reports) them.
    pub report: Option<&'a LoadReport>,
}

/// The measurements of endpoints that a policy reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Counts of calls by outcome.
    pub outcomes: bool,
    /// ORCA load reports (gRFC A51). They are requested from the endpoints out of band at this interval, or taken from
    /// the trailers of calls.
    pub reports: Option<ReportSource>,
}

/// Source of load reports (gRFC A51).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportSource {
    /// Trailers of each call.
    PerCall,
    /// A stream per endpoint, with a report at this interval.
    OutOfBand(Duration),
}

/// Calls of an endpoint that have ended, in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Calls with the status OK.
    pub succeeded: u64,
    /// All other calls.
    pub failed: u64,
}

/// An ORCA load report of a server (gRFC A51).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Time of arrival.
    pub received_at: Instant,
    /// CPU utilization; 1.0 is all that is provisioned, more is possible.
    pub cpu_utilization: f64,
    /// Memory utilization in 0..=1.
    pub memory_utilization: f64,
    /// Utilization as the application defines it; takes precedence over the CPU's if positive.
    pub application_utilization: f64,
    /// Queries per second.
    pub qps: f64,
    /// Errors per second.
    pub eps: f64,
}

/// Result of [`Policy::decide`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decision {
    /// Chooses an endpoint per call until the next decision.
    pub picker: Arc<dyn Picker>,
    /// State of the channel.
    pub state: ConnectivityState,
    /// Positions of the idle endpoints to connect now.
    pub connect: Vec<usize>,
    /// Time of the next decision if nothing changes; `None` if there is nothing to wait for.
    pub wake_at: Option<Instant>,
    /// Positions of the endpoints that outlier detection has ejected, for metrics.
    pub ejected: Vec<usize>,
}

/// Chooses the endpoint of each call: a pure function, shared by all threads.
pub trait Picker: Send + Sync + fmt::Debug {
    /// Returns the endpoint for a call.
    fn pick(&self, call: &PickArgs<'_>) -> Pick;
}

/// A call, as a picker sees it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PickArgs<'a> {
    /// Grows by one with each pick on a thread. The first is random, so that threads and channels do not follow each
    /// other.
    pub turn: u64,
    /// The call's hash for `ring_hash`: from the header that the policy names, or the call's affinity key. `None` if it
    /// has neither.
    pub hash: Option<u64>,
    /// Returns the calls in flight at the endpoint of a position.
    pub in_flight: &'a dyn Fn(usize) -> u64,
}

/// Result of [`Picker::pick`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The endpoint at this position, which was ready when the policy decided.
    Endpoint(usize),
    /// The call goes to the endpoint at `ready`, and the idle endpoint at `connect` connects for later calls.
    EndpointAndConnect {
        /// Position of the endpoint of the call.
        ready: usize,
        /// Position of the idle endpoint.
        connect: usize,
    },
    /// The call waits, and the idle endpoint at this position connects.
    Connect(usize),
    /// The call waits for the next decision.
    Queue,
    /// The call fails with UNAVAILABLE and this message, unless it waits for ready.
    Fail(Arc<str>),
}

impl<'a> EndpointView<'a> {
    /// Creates a view of an endpoint without measurements.
    pub fn new(id: u64, endpoint: &'a Endpoint, state: ConnectivityState) -> Self {
        Self { id, endpoint, state, error: None, outcomes: Outcomes::default(), report: None }
    }
}

impl Decision {
    /// Creates a decision that connects nothing and waits for a change.
    pub fn new(picker: Arc<dyn Picker>, state: ConnectivityState) -> Self {
        Self { picker, state, connect: Vec::new(), wake_at: None, ejected: Vec::new() }
    }

    /// Creates a decision that connects all endpoints (gRFC A48): idle ones count as connecting. `picker` receives the
    /// positions of the ready endpoints, and is called if there are any.
    pub fn connecting_all(
        endpoints: &[EndpointView<'_>],
        picker: impl FnOnce(Vec<usize>) -> Arc<dyn Picker>,
    ) -> Self {
        let in_state = |state: ConnectivityState| {
            endpoints.iter().enumerate().filter(move |(_, view)| view.state == state).map(|(at, _)| at)
        };
        let ready: Vec<usize> = in_state(ConnectivityState::Ready).collect();
        let picker = if ready.is_empty() { Arc::new(NoneReady::of(endpoints)) } else { picker(ready) };
        let state = match state_of(endpoints) {
            ConnectivityState::Idle => ConnectivityState::Connecting,
            state => state,
        };
        Self { connect: in_state(ConnectivityState::Idle).collect(), ..Self::new(picker, state) }
    }
}

impl<'a> PickArgs<'a> {
    /// Creates the arguments of a call without a hash.
    pub fn new(turn: u64, in_flight: &'a dyn Fn(usize) -> u64) -> Self {
        Self { turn, hash: None, in_flight }
    }
}

/// Picker of a channel without a ready endpoint: calls wait, or fail with a message.
#[derive(Clone, Debug)]
pub struct NoneReady(Pick);

impl NoneReady {
    /// Creates the picker for endpoints none of which is ready: calls wait while one is idle or connecting, and fail
    /// with the last errors otherwise.
    pub fn of(endpoints: &[EndpointView<'_>]) -> Self {
        if state_of(endpoints) != ConnectivityState::TransientFailure {
            return Self(Pick::Queue);
        }
        if endpoints.is_empty() {
            return Self(Pick::Fail("the name resolver returned no address".into()));
        }
        let named = endpoints.iter().take(ERRORS_NAMED_MAX).map(|view| match view.error {
            Some(error) => error.to_owned(),
            None => format!("{}: not ready", view.endpoint.name()),
        });
        let mut message = named.collect::<Vec<_>>().join("; ");
        if let more @ 1.. = endpoints.len().saturating_sub(ERRORS_NAMED_MAX) {
            message = format!("{message}; and {more} more");
        }
        Self(Pick::Fail(message.into()))
    }
}

/// Maximum number of endpoints whose errors a message has.
const ERRORS_NAMED_MAX: usize = 4;

impl NoneReady {
    /// Creates a picker that fails calls with this message.
    pub fn because(message: Arc<str>) -> Self {
        Self(Pick::Fail(message))
    }
}

impl Picker for NoneReady {
    fn pick(&self, _: &PickArgs<'_>) -> Pick {
        self.0.clone()
    }
}

/// Returns the state of a channel over these endpoints: READY if one is, else CONNECTING, IDLE or TRANSIENT_FAILURE, in
/// this order. Without endpoints it is TRANSIENT_FAILURE.
pub fn state_of(endpoints: &[EndpointView<'_>]) -> ConnectivityState {
    use ConnectivityState as State;
    let has = |state| endpoints.iter().any(|view| view.state == state);
    [State::Ready, State::Connecting, State::Idle]
        .into_iter()
        .find(|&state| has(state))
        .unwrap_or(State::TransientFailure)
}

/// Scrambles the bits of `value`: the finalizer of SplitMix64. Pickers derive random choices from turns with it.
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Hashes the name of an endpoint with a seed: a random number that the endpoint keeps in all lists.
fn seeded_hash(endpoint: &Endpoint, seed: u64) -> u64 {
    XxHash64::oneshot(seed, endpoint.name().to_string().as_bytes())
}
