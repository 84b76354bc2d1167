//! A server's HTTP/1.1 connection, which no driver moves: its state and requests.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Connection;
use super::state::{Http1State, State};

/// Requests to the task of an HTTP/1.1 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http1Command {
    /// End after the requests in progress.
    Drain,
    /// End now.
    Close,
}

impl State {
    /// Hands the connection to HTTP/1.1. `drains`: it ends after the requests in progress.
    pub(crate) fn hand_to_http1(&mut self, drains: bool) {
        self.http1 = Some(Http1State { drains, ..Http1State::default() });
    }

    /// Returns whether this is an HTTP/1.1 connection.
    pub(crate) fn is_http1(&self) -> bool {
        self.http1.is_some()
    }
}

impl Connection {
    /// Waits, in the task of an HTTP/1.1 connection, until the connection has to drain or close. `drains`: it already
    /// drains. A request wakes `cx`.
    pub(crate) fn poll_command(&self, drains: bool, cx: &Context<'_>) -> Poll<Http1Command> {
        let waker = cx.waker().clone();
        let mut state = self.lock();
        if state.http2.is_closed() {
            return Poll::Ready(Http1Command::Close);
        }
        if !drains && state.http1.as_ref().is_some_and(|http1| http1.drains) {
            return Poll::Ready(Http1Command::Drain);
        }
        let before = state.fall_asleep(Some(waker));
        drop(state);
        drop(before);
        Poll::Pending
    }
}

/// An open request on an HTTP/1.1 connection, which is not idle meanwhile.
#[derive(Debug)]
pub(crate) struct Http1InFlight(Arc<Connection>);

impl Http1InFlight {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        let mut state = connection.lock();
        state.generation = state.generation.wrapping_add(1);
        state.activity = state.activity.wrapping_add(1);
        if let Some(http1) = &mut state.http1 {
            http1.requests += 1;
        }
        drop(state);
        Self(Arc::clone(connection))
    }
}

impl Drop for Http1InFlight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // The idle time starts now.
        state.activity = state.activity.wrapping_add(1);
        if let Some(http1) = &mut state.http1 {
            http1.requests -= 1;
        }
    }
}
