//! Span of an attempt or of a server's call, with messages as events.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use opentelemetry::trace::{Status as SpanStatus, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use crate::status::{Code, Status};

/// An open span, and its message counters.
pub(super) struct MessageSpan {
    pub(super) context: Context,
    /// Whether the span is recorded.
    is_recording: bool,
    sent: AtomicI64,
    received: AtomicI64,
}

/// Sizes of a message, in bytes without its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) plain: usize,
    /// Size on the wire, if the message is compressed.
    pub(super) compressed: Option<usize>,
}

impl MessageSpan {
    pub(super) fn new(context: Context) -> Self {
        let is_recording = context.span().is_recording();
        Self { context, is_recording, sent: AtomicI64::new(0), received: AtomicI64::new(0) }
    }

    pub(super) fn sent(&self, sizes: Sizes) {
        self.add_event("Outbound message", &self.sent, sizes);
    }

    pub(super) fn received(&self, sizes: Sizes) {
        self.add_event("Inbound message", &self.received, sizes);
    }

    /// Records one event for both sizes, as A72 specifies for grpc-go.
    fn add_event(&self, name: &'static str, count: &AtomicI64, sizes: Sizes) {
        if !self.is_recording {
            return;
        }
        let number = count.fetch_add(1, Ordering::Relaxed);
        let mut attributes = Vec::with_capacity(3);
        attributes.push(KeyValue::new("sequence-number", number));
        attributes.push(KeyValue::new("message-size", bytes(sizes.plain)));
        if let Some(compressed) = sizes.compressed {
            attributes.push(KeyValue::new("message-size-compressed", bytes(compressed)));
        }
        self.context.span().add_event(name, attributes);
    }
}

/// Ends the span of a context: with `OK`, or with an error described as in A72, `UNAVAILABLE, no route`.
pub(super) fn end(context: &Context, outcome: Result<(), &Status>) {
    let span = context.span();
    if span.is_recording() {
        span.set_status(match outcome {
            Ok(()) => SpanStatus::Ok,
            Err(status) => SpanStatus::error(described(status.code(), status.message())),
        });
    }
    span.end();
}

/// Converts a size to OpenTelemetry's number type.
fn bytes(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn described(code: Code, message: &str) -> String {
    let name = code.name();
    if message.is_empty() { name.to_owned() } else { format!("{name}, {message}") }
}

impl Sizes {
    /// Sizes of a message of `plain` bytes that takes `wire` bytes; it is compressed if they differ.
    pub(super) fn of(plain: usize, wire: usize) -> Self {
        Self { plain, compressed: (wire != plain).then_some(wire) }
    }
}

impl fmt::Debug for MessageSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSpan").field("is_recording", &self.is_recording).finish_non_exhaustive()
    }
}
