//! A span of an attempt or of a server's call: messages are events of it.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use opentelemetry::trace::{Status as SpanStatus, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use crate::status::{Code, Status};

/// A span under way, and how many messages it has seen.
pub(super) struct MessageSpan {
    pub(super) context: Context,
    /// Whether anybody wants to know.
    is_recording: bool,
    sent: AtomicI64,
    received: AtomicI64,
}

/// How large a message is, in bytes, without its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) plain: usize,
    /// On the wire, if it is compressed there.
    pub(super) compressed: Option<usize>,
}

impl MessageSpan {
    pub(super) fn new(context: Context) -> Self {
        let is_recording = context.span().is_recording();
        Self { context, is_recording, sent: AtomicI64::new(0), received: AtomicI64::new(0) }
    }

    pub(super) fn sent(&self, sizes: Sizes) {
        self.tell("Outbound message", &self.sent, sizes);
    }

    pub(super) fn received(&self, sizes: Sizes) {
        self.tell("Inbound message", &self.received, sizes);
    }

    /// One event for both sizes, as A72 has it of grpc-go.
    fn tell(&self, name: &'static str, count: &AtomicI64, sizes: Sizes) {
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

/// Ends the span of a context: with `OK`, or as an error that is described as A72 says, `UNAVAILABLE, no route`.
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

/// A size as OpenTelemetry has numbers.
fn bytes(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn described(code: Code, message: &str) -> String {
    let name = code.name();
    if message.is_empty() { name.to_owned() } else { format!("{name}, {message}") }
}

impl Sizes {
    /// Of a message of `plain` bytes that takes `wire` bytes; compressed, if those differ.
    pub(super) fn of(plain: usize, wire: usize) -> Self {
        Self { plain, compressed: (wire != plain).then_some(wire) }
    }
}

impl fmt::Debug for MessageSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSpan").field("is_recording", &self.is_recording).finish_non_exhaustive()
    }
}
