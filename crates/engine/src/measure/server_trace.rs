//! The span of a call at a server.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use opentelemetry::ContextGuard;
use opentelemetry::trace::SpanKind;

use super::span::{self, MessageSpan, Sizes};
use super::traces::{Traces, span_name};
use crate::status::{Code, Status};

/// Trace of a server's call, from the call of its handler to its end.
pub(crate) struct ServerTrace {
    span: MessageSpan,
    /// The outcome returned by the handler.
    outcome: Mutex<Option<Result<(), Status>>>,
}

impl ServerTrace {
    /// Returns the span name of the method at `path`.
    pub(crate) fn name(path: &str) -> String {
        span_name("Recv", path)
    }

    /// Starts a call, as a child of the context in its metadata.
    pub(crate) fn begin(traces: &Traces, name: &str, metadata: &HeaderMap) -> Self {
        let parent = traces.extract(metadata);
        let context = traces.start(name.to_owned(), SpanKind::Server, Vec::new(), &parent);
        Self { span: MessageSpan::new(context), outcome: Mutex::new(None) }
    }

    /// Makes the call's context the current one.
    pub(crate) fn attach(&self) -> ContextGuard {
        self.span.context.clone().attach()
    }

    pub(crate) fn sent(&self, plain: usize, wire: usize) {
        self.span.sent(Sizes::of(plain, wire));
    }

    pub(crate) fn received(&self, plain: usize, wire: usize) {
        self.span.received(Sizes::of(plain, wire));
    }

    /// Records the outcome. The last one counts: a message that can't be sent turns into an error.
    pub(crate) fn note_outcome(&self, outcome: Result<(), &Status>) {
        let before = self.outcome().replace(outcome.map_err(Status::clone));
        drop(before);
    }

    /// Ends the span with the recorded outcome. Without one, the call ended with the status of [`drop_with_status`], or
    /// was cancelled.
    pub(crate) fn end(&self) {
        let noted = self.outcome().take();
        let outcome = noted.unwrap_or_else(|| {
            let ended = DROP_STATUS.try_with(|status| status.borrow().clone()).ok().flatten();
            Err(ended.unwrap_or_else(|| Status::new(Code::Cancelled, "the call was cancelled")))
        });
        match outcome {
            Ok(()) => span::end(&self.span.context, Ok(())),
            Err(status) => span::end(&self.span.context, Err(&status)),
        }
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<(), Status>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static DROP_STATUS: RefCell<Option<Status>> = const { RefCell::new(None) };
}

/// Drops the rest of a call that ends with `status`, which its handler does not determine.
pub(crate) fn drop_with_status<T>(status: &Status, dropped: T) {
    let set = |status| DROP_STATUS.try_with(|cell| cell.replace(status)).ok().flatten();
    let before = set(Some(status.clone()));
    drop(dropped);
    drop(set(before));
}

impl fmt::Debug for ServerTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTrace").field("span", &self.span).finish_non_exhaustive()
    }
}
