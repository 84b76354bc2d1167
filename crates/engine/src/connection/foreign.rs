//! A server's connection that another protocol has, HTTP/1.1, and that no driver moves: what is known of it.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Connection;
use super::state::{Foreign, State};

/// What a connection is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To end with the requests under way.
    Drain,
    /// To end now.
    Close,
}

impl State {
    /// Another protocol has it from here on. `drains`: it is to end with what is under way.
    pub(crate) fn give_away(&mut self, drains: bool) {
        self.foreign = Some(Foreign { drains, ..Foreign::default() });
    }

    /// Whether another protocol has it.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }
}

impl Connection {
    /// For who works on a connection that no driver moves: ready when it is to do something. `drains`: it has been told
    /// to drain. Whoever asks it to wakes `cx`.
    pub(crate) fn poll_asked(&self, drains: bool, cx: &Context<'_>) -> Poll<Asked> {
        let waker = cx.waker().clone();
        let mut state = self.lock();
        if state.http2.is_closed() {
            return Poll::Ready(Asked::Close);
        }
        if !drains && state.foreign.as_ref().is_some_and(|foreign| foreign.drains) {
            return Poll::Ready(Asked::Drain);
        }
        let before = state.fall_asleep(Some(waker));
        drop(state);
        drop(before);
        Poll::Pending
    }
}

/// A request under way on a connection that another protocol has: it is not idle.
#[derive(Debug)]
pub(crate) struct ForeignRequest(Arc<Connection>);

impl ForeignRequest {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        let mut state = connection.lock();
        state.generation = state.generation.wrapping_add(1);
        state.activity = state.activity.wrapping_add(1);
        if let Some(foreign) = &mut state.foreign {
            foreign.requests += 1;
        }
        drop(state);
        Self(Arc::clone(connection))
    }
}

impl Drop for ForeignRequest {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // It is idle from now on.
        state.activity = state.activity.wrapping_add(1);
        if let Some(foreign) = &mut state.foreign {
            foreign.requests -= 1;
        }
    }
}
