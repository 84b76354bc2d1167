//! Events of a connection.

use std::fmt;

use crate::error::{ErrorCode, Initiator};
use crate::stream::{StreamId, Tag};
use crate::violation::Violation;

/// An event from [`Connection::poll_event`](crate::Connection::poll_event), found in the input or raised by the
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Headers of a request (server) or of a final response (client); see
    /// [`Connection::fields`](crate::Connection::fields), valid until the next `poll_event`.
    Headers {
        /// The stream.
        stream: StreamId,
        /// The stream's tag; `Tag(0)` if the peer has just opened the stream.
        tag: Tag,
        /// The peer sends nothing more on this stream.
        end_stream: bool,
    },
    /// A complete request (server) or final response (client) that is contiguous in the input: headers, one DATA frame,
    /// and the trailers of a response. Replaces the separate events, which are used for all other messages.
    /// [`Connection::fields`](crate::Connection::fields) returns the headers and
    /// [`Connection::trailers`](crate::Connection::trailers) a response's trailers. The peer sends nothing more on this
    /// stream.
    CompleteMessage {
        /// The stream.
        stream: StreamId,
        /// The stream's tag; `Tag(0)` if the peer has just opened the stream.
        tag: Tag,
        /// The body, borrowed from the input. Counts like that of [`Event::Data`]. May be empty.
        bytes: &'a [u8],
        /// Offset of the body in the input of this `poll_event`.
        start: usize,
    },
    /// Headers of an informational (1xx) response (client), returned by `fields()`.
    Informational {
        /// The stream.
        stream: StreamId,
        /// The stream's tag.
        tag: Tag,
    },
    /// Trailers, returned by [`Connection::trailers`](crate::Connection::trailers) and `fields()`. The peer sends
    /// nothing more on this stream.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// The stream's tag.
        tag: Tag,
    },
    /// Part of the body. The bytes count against the stream's receive window until
    /// [`Connection::release`](crate::Connection::release). The connection's window is released automatically.
    Data {
        /// The stream.
        stream: StreamId,
        /// The stream's tag.
        tag: Tag,
        /// The bytes, borrowed from the input. Empty only with `end_stream`.
        bytes: &'a [u8],
        /// Offset of the bytes in the input of this `poll_event`; 0 if there is no input.
        start: usize,
        /// The peer sends nothing more on this stream.
        end_stream: bool,
    },
    /// The stream ended abnormally. The peer sent RST_STREAM, a GOAWAY with a lower last stream, or caused a stream
    /// error (our RST_STREAM is already in the output). Nothing more can be sent on it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The stream's tag.
        tag: Tag,
        /// The initiator and the reason.
        cause: ResetCause,
    },
    /// The send queue of the stream fell below [`Config::send_queue_low_water`](crate::Config::send_queue_low_water),
    /// having been above.
    Writable {
        /// The stream.
        stream: StreamId,
        /// The stream's tag.
        tag: Tag,
    },
    /// Streams may be available (client). The peer's first SETTINGS arrived, its MAX_CONCURRENT_STREAMS changed, or a
    /// stream ended after [`Connection::notify_free_stream`](crate::Connection::notify_free_stream) or
    /// [`OpenError::NoFreeStream`](crate::OpenError::NoFreeStream).
    StreamsFree,
    /// The peer sent GOAWAY. An [`Event::Reset`] follows for each stream that it will not serve.
    GoAway {
        /// The last stream that the peer may have served.
        last_stream: StreamId,
        /// `NoError` if the end is graceful.
        code: ErrorCode,
        /// GOAWAY debug data, borrowed from the input.
        debug: &'a [u8],
    },
    /// Header lists of 64 KiB in total, as HPACK counts them, were decoded since the last such event. The driver may
    /// serve other connections before it continues.
    DecodeBudgetSpent,
    /// The acknowledgement of [`Connection::ping`](crate::Connection::ping).
    Pong {
        /// The payload of the PING.
        payload: [u8; 8],
    },
}

/// The initiator of a reset, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetCause {
    /// The endpoint that detected the fault.
    pub initiator: Initiator,
    /// The code of the RST_STREAM or the GOAWAY.
    pub code: ErrorCode,
    /// The peer states that it did not process the request (REFUSED_STREAM, or above GOAWAY's last stream), so it is
    /// safe to retry.
    pub unprocessed: bool,
    /// The reason.
    pub reason: ResetReason,
}

/// The reason why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetReason {
    /// The peer sent RST_STREAM.
    PeerReset,
    /// The peer sent GOAWAY with a last stream below this one.
    PeerWentAway,
    /// This endpoint sent RST_STREAM because of a violation.
    Violation(Violation),
}

impl fmt::Display for ResetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetReason::PeerReset => f.write_str("the peer reset the stream"),
            ResetReason::PeerWentAway => f.write_str("the peer went away before it processed the request"),
            ResetReason::Violation(violation) => violation.fmt(f),
        }
    }
}
