//! An endpoint of a balanced channel: its lanes, and what its policy sees of them.

use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_balance::policy::{EndpointView, LoadReport, Outcomes};
use thalweg_balance::{ConnectivityState, Endpoint};

use super::watches::Watches;
use crate::lanes::{LaneSet, LastReport};

/// An endpoint of the channel.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) endpoint: Endpoint,
    pub(super) set: Arc<LaneSet>,
    /// The state of its connections at the last decision.
    pub(super) state: ConnectivityState,
    pub(super) watches: Option<Box<Watches>>,
    /// Its last load report, if the policy reads them or may later.
    pub(super) report: Option<Arc<LastReport>>,
    /// Time of the last attempt to connect that was started here.
    pub(super) connected_at: Option<std::time::Instant>,
}

impl Entry {
    /// Connects, unless that was done less than the shortest backoff ago: a server that closes its connections at once
    /// would be connected without pause. Returns when to try again in this case.
    pub(super) fn connect(&mut self, now: std::time::Instant) -> Option<std::time::Instant> {
        let due_at = self.connected_at.map(|at| at + self.set.backoff_min());
        if due_at.is_some_and(|due_at| due_at > now) {
            return due_at;
        }
        self.connected_at = Some(now);
        self.set.connect();
        None
    }

    /// Notes the state of its connections, and returns what the policy sees.
    pub(super) fn observe(&mut self, state: ConnectivityState) -> Observed {
        self.state = state;
        let watches = self.watches.as_deref();
        let seen = watches.map_or(state, |watches| watches.state(state));
        let error = match seen {
            ConnectivityState::TransientFailure if state == ConnectivityState::Ready => {
                watches.and_then(Watches::error).map(|error| format!("{}: {error}", self.endpoint.name()))
            }
            ConnectivityState::TransientFailure => self.set.last_connect_error(),
            _ => None,
        };
        Observed { state: seen, error, report: watches.and_then(Watches::report) }
    }

    pub(super) fn view<'a>(&'a self, observed: &'a Observed, has_outcomes: bool) -> EndpointView<'a> {
        let mut view = EndpointView::new(self.set.id, &self.endpoint, observed.state);
        view.connection = self.state;
        view.error = observed.error.as_deref();
        view.report = observed.report.as_deref();
        if has_outcomes {
            let calls = self.set.calls();
            view.outcomes = Outcomes { succeeded: calls.succeeded, failed: calls.failed };
        }
        view
    }

    /// Polls its streams. Returns when the policy has to decide again.
    pub(super) fn poll_watches(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.watches {
            Some(watches) => watches.poll(cx, &self.set),
            None => Poll::Pending,
        }
    }
}

/// An endpoint as the policy sees it.
pub(super) struct Observed {
    pub(super) state: ConnectivityState,
    pub(super) error: Option<String>,
    pub(super) report: Option<Arc<LoadReport>>,
}
