//! Endpoints as a policy sees them: states and measurements.

use std::time::Duration;

use super::load_report::LoadReport;
use crate::endpoint::{ConnectivityState, Endpoint};

/// An endpoint's current state, for a policy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EndpointView<'a> {
    /// Unique in the channel, and kept while the resolver lists the endpoint.
    pub id: u64,
    /// Addresses and attributes.
    pub endpoint: &'a Endpoint,
    /// State of its connection, or of its health if that is checked (gRFC A17). `TransientFailure` lasts until the
    /// endpoint is `Ready` again.
    pub state: ConnectivityState,
    /// State of its connection, whatever its health.
    pub connection: ConnectivityState,
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

impl<'a> EndpointView<'a> {
    /// Creates a view of an endpoint without measurements.
    pub fn new(id: u64, endpoint: &'a Endpoint, state: ConnectivityState) -> Self {
        let connection = state;
        Self { id, endpoint, state, connection, error: None, outcomes: Outcomes::default(), report: None }
    }

    /// Returns the view without its health, for policies that do not check it.
    pub(super) fn without_health(&self) -> Self {
        if self.state == self.connection {
            *self
        } else {
            Self { state: self.connection, error: None, ..*self }
        }
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
