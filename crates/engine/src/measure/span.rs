//! Span of an attempt or of a server's call, with messages as events.

use std::fmt;
use std::net::SocketAddr;
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

    /// Records the server that an attempt is sent to. `peer` is its name in messages.
    pub(super) fn sent_to(&self, peer: &str) {
        if !self.is_recording {
            return;
        }
        let (address, port) = address_of(peer);
        let span = self.context.span();
        span.set_attribute(KeyValue::new("network.peer.address", address));
        if let Some(port) = port {
            span.set_attribute(KeyValue::new("network.peer.port", i64::from(port)));
        }
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

/// Splits the name of a peer into OpenTelemetry's `network.peer.address` and `network.peer.port`: an IP address, or a
/// host name behind a proxy, with a port; or the path or name of a UNIX socket.
fn address_of(peer: &str) -> (String, Option<u16>) {
    if let Ok(address) = peer.parse::<SocketAddr>() {
        return (address.ip().to_string(), Some(address.port()));
    }
    if let Some(socket) = peer.strip_prefix("unix:").or_else(|| peer.strip_prefix("unix-abstract:")) {
        return (socket.to_owned(), None);
    }
    match peer.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host.to_owned(), Some(port)),
        _ => (peer.to_owned(), None),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_peers() {
        let check = |peer: &str, address: &str, port: Option<u16>| {
            assert_eq!(address_of(peer), (address.to_owned(), port), "{peer}");
        };
        check("10.0.0.1:50051", "10.0.0.1", Some(50051));
        check("[2001:db8::1]:443", "2001:db8::1", Some(443));
        check("orders.example:443", "orders.example", Some(443));
        check("unix:/run/a:1", "/run/a:1", None);
        check("unix-abstract:orders", "orders", None);
        check("a pipe", "a pipe", None);
    }
}
