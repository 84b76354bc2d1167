//! The spans of a client's call: one for the call, and one for each attempt.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use http::HeaderMap;
use opentelemetry::trace::{SpanKind, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use super::span::{self, MessageSpan, Sizes};
use super::traces::{Traces, span_name};
use crate::status::Status;

pub(super) struct ClientTrace {
    traces: Traces,
    /// The span of the call.
    call: Context,
    started_at: SystemTime,
    /// Span name of attempts.
    name: String,
    /// Whether it is one hedged attempt: the span of the call ends with the call.
    is_hedge: bool,
    attempts: Mutex<Attempts>,
}

struct Attempts {
    /// Span of the current attempt.
    span: Arc<MessageSpan>,
    /// Whether it has been recorded that the current attempt has waited.
    has_waited: bool,
    /// The metadata of the request.
    metadata: HeaderMap,
    /// Sizes of the messages that the current attempt has sent, while a retry may send them again.
    kept: Option<Vec<Sizes>>,
    /// Hedged attempt: number of those of the call that it has recorded.
    copied: usize,
}

/// Maximum number of resent messages that are recorded again. Spans have limits of their own, by default 128 events.
const KEPT_MAX: usize = 1024;

impl ClientTrace {
    /// Starts a call, as a child of the current context, and its first attempt.
    pub(super) fn begin(traces: &Traces, path: &str) -> Self {
        let call = traces.start(span_name("Sent", path), SpanKind::Client, Vec::new(), &Context::current());
        let name = span_name("Attempt", path);
        let span = attempt(traces, &name, &call, 0, false);
        let attempts =
            Attempts { span, has_waited: false, metadata: HeaderMap::new(), kept: None, copied: 0 };
        let (traces, attempts) = (traces.clone(), Mutex::new(attempts));
        Self { traces, call, started_at: SystemTime::now(), name, is_hedge: false, attempts }
    }

    /// Starts another attempt while others are under way. `previous` is the number of earlier ones.
    pub(super) fn hedge(&self, previous: u32) -> Self {
        let (traces, call, name) = (self.traces.clone(), self.call.clone(), self.name.clone());
        let span = attempt(&traces, &name, &call, previous, false);
        let metadata = self.attempts().metadata.clone();
        let attempts = Mutex::new(Attempts { span, has_waited: false, metadata, kept: None, copied: 0 });
        Self { traces, call, started_at: SystemTime::now(), name, is_hedge: true, attempts }
    }

    /// Makes the attempt of `hedge` the current one.
    pub(super) fn adopt(&self, hedge: &Self) {
        let span = Arc::clone(&hedge.attempts().span);
        let former = mem::replace(&mut self.attempts().span, span);
        drop(former);
    }

    /// Returns the request's metadata, with the context of the first attempt.
    pub(super) fn inject(&self, metadata: &HeaderMap) -> HeaderMap {
        self.attempts().metadata = metadata.clone();
        self.injected()
    }

    /// Returns the request's metadata, with the context of the current attempt.
    pub(super) fn injected(&self) -> HeaderMap {
        let (mut metadata, span) = {
            let attempts = self.attempts();
            (attempts.metadata.clone(), Arc::clone(&attempts.span))
        };
        self.traces.inject(&span.context, &mut metadata);
        metadata
    }

    /// Records that the current attempt has waited for a connection or a free stream. `resolved_at` is when the
    /// target's name was first resolved.
    pub(super) fn waited(&self, resolved_at: Option<SystemTime>) {
        let (span, was_noted) = {
            let mut attempts = self.attempts();
            (Arc::clone(&attempts.span), mem::replace(&mut attempts.has_waited, true))
        };
        if was_noted {
            return;
        }
        if let Some(resolved_at) = resolved_at.filter(|at| *at >= self.started_at) {
            let name = "Delayed name resolution complete";
            self.call.span().add_event_with_timestamp(name, resolved_at, Vec::new());
        }
        span.context.span().add_event("Delayed LB pick complete", Vec::new());
    }

    /// Records the server that the current attempt is sent to.
    pub(super) fn sent_to(&self, peer: &str) {
        let span = Arc::clone(&self.attempts().span);
        span.sent_to(peer);
    }

    pub(super) fn sent(&self, sizes: Sizes) {
        let span = {
            let mut attempts = self.attempts();
            if let Some(kept) = attempts.kept.as_mut().filter(|kept| kept.len() < KEPT_MAX) {
                kept.push(sizes);
            }
            Arc::clone(&attempts.span)
        };
        span.sent(sizes);
    }

    pub(super) fn received(&self, sizes: Sizes) {
        let span = Arc::clone(&self.attempts().span);
        span.received(sizes);
    }

    /// Hedged attempt: records the messages that `call` keeps, as sent by this attempt.
    pub(super) fn sent_as(&self, call: &Self) {
        let (span, copied) = {
            let attempts = self.attempts();
            (Arc::clone(&attempts.span), attempts.copied)
        };
        let more = match &call.attempts().kept {
            Some(kept) if kept.len() > copied => kept[copied..].to_vec(),
            Some(_) | None => return,
        };
        self.attempts().copied += more.len();
        for sizes in more {
            span.sent(sizes);
        }
    }

    /// Keeps the sizes of sent messages: a retry sends them again without encoding them.
    pub(super) fn keep_sent(&self) {
        self.attempts().kept = Some(Vec::new());
    }

    /// Drops the sizes kept for a retry.
    pub(super) fn drop_sent(&self) {
        let kept = self.attempts().kept.take();
        drop(kept);
    }

    /// Ends the current attempt with `status`.
    pub(super) fn end_attempt(&self, status: &Status) {
        let ended = Arc::clone(&self.attempts().span);
        span::end(&ended.context, Err(status));
    }

    /// Starts the next attempt. `previous` is the number of earlier attempts by policy.
    pub(super) fn start_attempt(&self, previous: u32, is_transparent: bool) {
        let fresh = attempt(&self.traces, &self.name, &self.call, previous, is_transparent);
        let (ended, sent_again) = {
            let mut attempts = self.attempts();
            (attempts.has_waited, attempts.copied) = (false, 0);
            (mem::replace(&mut attempts.span, Arc::clone(&fresh)), attempts.kept.clone())
        };
        drop(ended);
        for sizes in sent_again.unwrap_or_default() {
            fresh.sent(sizes);
        }
    }

    /// Ends the call and its attempt.
    pub(super) fn end(&self, outcome: Result<(), &Status>) {
        let attempt = Arc::clone(&self.attempts().span);
        span::end(&attempt.context, outcome);
        if !self.is_hedge {
            span::end(&self.call, outcome);
        }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts an attempt. `previous` does not count earlier transparent attempts (A72).
fn attempt(
    traces: &Traces,
    name: &str,
    call: &Context,
    previous: u32,
    is_transparent: bool,
) -> Arc<MessageSpan> {
    let attributes = vec![
        KeyValue::new("previous-rpc-attempts", i64::from(previous)),
        KeyValue::new("transparent-retry", is_transparent),
    ];
    let context = traces.start(name.to_owned(), SpanKind::Internal, attributes, call);
    Arc::new(MessageSpan::new(context))
}
