//! A server's call whose handler has not started, and may never start.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::called::Called;
use super::server_trace::ServerTrace;
use super::traces::Traces;
use crate::status::Status;

/// Records a span at the end, unless a handler has started, which records its own.
pub(super) struct Unbegun {
    traces: Traces,
    called: Arc<dyn Called>,
    has_begun: AtomicBool,
    /// Status with which the call was refused.
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

    /// Ends the call. Runs user code.
    pub(super) fn end(&self) {
        if self.has_begun.load(Ordering::Relaxed) {
            return;
        }
        let trace =
            ServerTrace::begin(&self.traces, &ServerTrace::name(self.called.path()), self.called.metadata());
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(status) = refused {
            trace.note_outcome(Err(&status));
        }
        trace.end();
    }
}

impl fmt::Debug for Unbegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unbegun").field("path", &self.called.path()).finish_non_exhaustive()
    }
}
