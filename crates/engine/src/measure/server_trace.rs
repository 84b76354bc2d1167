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

/// What is traced of a server's call, from when its handler is called until that is done with.
pub(crate) struct ServerTrace {
    span: MessageSpan,
    /// What the call was answered with.
    outcome: Mutex<Option<Result<(), Status>>>,
}

impl ServerTrace {
    /// How the spans of the method at `path` are called.
    pub(crate) fn name(path: &str) -> String {
        span_name("Recv", path)
    }

    /// A call begins, a child of what its metadata says.
    pub(crate) fn begin(traces: &Traces, name: &str, metadata: &HeaderMap) -> Self {
        let parent = traces.extract(metadata);
        let context = traces.start(name.to_owned(), SpanKind::Server, Vec::new(), &parent);
        Self { span: MessageSpan::new(context), outcome: Mutex::new(None) }
    }

    /// Makes its context the current one.
    pub(crate) fn attach(&self) -> ContextGuard {
        self.span.context.clone().attach()
    }

    pub(crate) fn sent(&self, plain: usize, wire: usize) {
        self.span.sent(Sizes::of(plain, wire));
    }

    pub(crate) fn received(&self, plain: usize, wire: usize) {
        self.span.received(Sizes::of(plain, wire));
    }

    /// The call was answered with this. The last answer counts: a message that can't be sent comes to an error.
    pub(crate) fn answered(&self, outcome: Result<(), &Status>) {
        let before = self.outcome().replace(outcome.map_err(Status::clone));
        drop(before);
    }

    /// Nothing more comes: ends the span as the call was answered. One that was not was ended by who dropped it
    /// ([`ending_with`]), or cancelled.
    pub(crate) fn end(&self) {
        let answered = self.outcome().take();
        let outcome = answered.unwrap_or_else(|| {
            let ended = ENDING_WITH.try_with(|status| status.borrow().clone()).ok().flatten();
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
    static ENDING_WITH: RefCell<Option<Status>> = const { RefCell::new(None) };
}

/// Drops what is left of a call that ends with `status`, whatever its handler was going to say.
pub(crate) fn ending_with<T>(status: &Status, left: T) {
    let set = |status| ENDING_WITH.try_with(|ending| ending.replace(status)).ok().flatten();
    let before = set(Some(status.clone()));
    drop(left);
    drop(set(before));
}

impl fmt::Debug for ServerTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTrace").field("span", &self.span).finish_non_exhaustive()
    }
}
