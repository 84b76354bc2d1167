//! A server's call that no handler has begun yet, and maybe none will.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::called::Called;
use super::server_trace::ServerTrace;
use super::traces::Traces;
use crate::status::Status;

/// Has a span in the end, unless a handler has begun: that has one of its own.
pub(super) struct Unbegun {
    traces: Traces,
    called: Arc<dyn Called>,
    has_begun: AtomicBool,
    /// What the call was refused with.
    refused: Mutex<Option<Status>>,
}

impl Unbegun {
    pub(super) fn new(traces: &Traces, called: Arc<dyn Called>) -> Self {
        Self { traces: traces.clone(), called, has_begun: AtomicBool::new(false), refused: Mutex::new(None) }
    }

    pub(super) fn set_begun(&self, has_begun: bool) {
        self.has_begun.store(has_begun, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, status: &Status) {
        self.set_begun(false);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
    }

    /// The call is over. Runs the user's code.
    pub(super) fn end(&self) {
        if self.has_begun.load(Ordering::Relaxed) {
            return;
        }
        let trace =
            ServerTrace::begin(&self.traces, &ServerTrace::name(self.called.path()), self.called.metadata());
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(status) = refused {
            trace.answered(Err(&status));
        }
        trace.end();
    }
}

impl fmt::Debug for Unbegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unbegun").field("path", &self.called.path()).finish_non_exhaustive()
    }
}
