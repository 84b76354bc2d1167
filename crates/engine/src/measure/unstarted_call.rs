//! A server's call whose handler has not started, and may never start.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::server_trace::ServerTrace;
use super::span_source::SpanSource;
use super::traces::Traces;
use crate::status::Status;

/// Records a span at the end, unless a handler has started, which records its own.
pub(super) struct UnstartedCall {
    traces: Traces,
    span_source: Arc<dyn SpanSource>,
    has_started: AtomicBool,
    /// Status with which the call was refused.
    refused: Mutex<Option<Status>>,
}

impl UnstartedCall {
    pub(super) fn new(traces: &Traces, span_source: Arc<dyn SpanSource>) -> Self {
        Self {
            traces: traces.clone(),
            span_source,
            has_started: AtomicBool::new(false),
            refused: Mutex::new(None),
        }
    }

    pub(super) fn set_started(&self, has_started: bool) {
        self.has_started.store(has_started, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, status: &Status) {
        self.set_started(false);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
    }

    /// Ends the call. Runs user code.
    pub(super) fn end(&self) {
        if self.has_started.load(Ordering::Relaxed) {
            return;
        }
        let trace = ServerTrace::begin(
            &self.traces,
            &ServerTrace::name(self.span_source.path()),
            self.span_source.metadata(),
        );
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(status) = refused {
            trace.note_outcome(Err(&status));
        }
        trace.end();
    }
}

impl fmt::Debug for UnstartedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnstartedCall").field("path", &self.span_source.path()).finish_non_exhaustive()
    }
}
