//! Decisions of a policy: a picker for calls, and endpoints to connect.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::{EndpointView, Needs, state_of};
use crate::endpoint::{ConnectivityState, Endpoint};

/// A balancing policy: a state machine over the endpoints of one channel.
///
/// The channel calls [`decide`](Self::decide) whenever the list of endpoints or a state has changed, and at
/// [`Decision::wake_at`]: outcomes and reports change too often to decide after each. Between two decisions calls go
/// where the last decision's [`Picker`] sends them.
pub trait Policy: Send + fmt::Debug {
    /// Returns the name in service configs, such as `round_robin`.
    fn name(&self) -> &'static str;

    /// Takes over other settings of the same policy, and keeps what it knows of endpoints. Returns false if it cannot,
    /// or if the settings are another policy's: a new policy replaces it then. False by default.
    ///
    /// The type tells the policy, such as [`RingHashConfig`](super::RingHashConfig), or the application's
    /// [`PolicyFactory`](super::PolicyFactory). [`select`](Self::select) comes next.
    fn reconfigure(&mut self, _settings: &dyn Any) -> bool {
        false
    }

    /// Selects and orders the endpoints to use among those that the resolver lists; all by default.
    fn select(&mut self, resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        resolved
    }

    /// Returns which measurements of endpoints the policy reads, the same until it is reconfigured; none by default.
    /// They cost time.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns whether endpoints count as failed while their servers report that they are unhealthy, if the service
    /// config asks for health checks (gRFC A17); true by default.
    fn checks_health(&self) -> bool {
        true
    }

    /// Returns the name of the header that [`PickArgs::hash`] hashes (gRFC A76); none by default.
    fn hash_header(&self) -> Option<&str> {
        None
    }

    /// Decides by the current state of all endpoints. Positions in the decision are positions in `endpoints`.
    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision;
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
    /// Positions and weights of the ready endpoints if `weighted_round_robin` has recalculated them, for metrics.
    pub weights: Vec<(usize, EndpointWeight)>,
    /// Positions of the endpoints that the policy no longer uses. The channel drops them, and decides again at once.
    pub released: Vec<usize>,
}

/// Weight of an endpoint in `weighted_round_robin` (gRFC A58).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EndpointWeight {
    /// Derived from load reports.
    Usable(f64),
    /// There is no load report yet, or none from before the blackout period.
    NotYetUsable,
    /// The last load report is older than the expiration period.
    Stale,
}

/// Chooses the endpoint of each call: a pure function, shared by all threads. It must not block, nor use the channel.
pub trait Picker: Send + Sync + fmt::Debug {
    /// Returns the endpoint for a call.
    fn pick(&self, call: &PickArgs<'_>) -> Pick;

    /// Returns the message with which all calls fail, if they do; `None` by default. It is asked for without a call.
    fn failure(&self) -> Option<Arc<str>> {
        None
    }
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
    /// The call waits for the next decision, and until then at the latest.
    QueueUntil(Instant),
    /// The call fails with UNAVAILABLE and this message, unless it waits for ready.
    Fail(Arc<str>),
}

impl Decision {
    /// Creates a decision that connects nothing and waits for a change.
    pub fn new(picker: Arc<dyn Picker>, state: ConnectivityState) -> Self {
        let (connect, ejected, weights, released) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { picker, state, connect, wake_at: None, ejected, weights, released }
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

impl EndpointWeight {
    /// Returns the weight that load reports give; `None` if they give none at present.
    pub fn usable(self) -> Option<f64> {
        match self {
            Self::Usable(weight) => Some(weight),
            Self::NotYetUsable | Self::Stale => None,
        }
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
pub struct NoneReady(pub(super) Pick);

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
        if let count @ 2.. = endpoints.len() {
            message = format!("none of {count} servers is ready: {message}");
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

    /// Creates a picker that lets calls wait.
    pub fn waiting() -> Self {
        Self(Pick::Queue)
    }
}

impl Picker for NoneReady {
    fn pick(&self, _: &PickArgs<'_>) -> Pick {
        self.0.clone()
    }

    fn failure(&self) -> Option<Arc<str>> {
        match &self.0 {
            Pick::Fail(message) => Some(Arc::clone(message)),
            _ => None,
        }
    }
}
