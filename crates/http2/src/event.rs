//! What a connection tells its owner.

use std::fmt;

use crate::error::{ErrorCode, Initiator};
use crate::stream::{StreamId, Tag};
use crate::violation::Violation;

/// What [`Connection::poll_event`](crate::Connection::poll_event) found in the input, or what the connection
/// has to say itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request (server) or final response head (client): see
    /// [`Connection::fields`](crate::Connection::fields), valid until the next `poll_event`.
    Headers {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it; `Tag(0)` for a stream that the peer has just opened.
        tag: Tag,
        /// The peer sends nothing more on this stream.
        end_stream: bool,
    },
    /// A whole request (server), or a whole final response (client), that lies in the input in one piece: its head,
    /// one DATA frame, and of a response its trailers. It stands for the events of these, which come one by one where
    /// they don't lie behind each other: [`Connection::fields`](crate::Connection::fields) is the head, and
    /// [`Connection::trailers`](crate::Connection::trailers) a response's trailers. The peer sends nothing more on
    /// this stream.
    Whole {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it; `Tag(0)` for a stream that the peer has just opened.
        tag: Tag,
        /// The body, where it lies in the input; it counts as that of [`Event::Data`] does. May be empty.
        bytes: &'a [u8],
        /// Where it starts in the input that this call of `poll_event` was given.
        start: usize,
    },
    /// An informational (1xx) response head (client): `fields()` as above.
    Informational {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it.
        tag: Tag,
    },
    /// Trailers: [`Connection::trailers`](crate::Connection::trailers), and `fields()` too. The peer sends nothing more
    /// on this stream.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it.
        tag: Tag,
    },
    /// Part of the body. The bytes count against the stream's receive window until
    /// [`Connection::release`](crate::Connection::release) gives them back; the connection's window is given
    /// back by itself.
    Data {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it.
        tag: Tag,
        /// The part, where it lies in the input. Empty only with `end_stream`.
        bytes: &'a [u8],
        /// Where the part starts in the input that this call of `poll_event` was given: it lies at
        /// `start..start + bytes.len()`. 0 where there is no input.
        start: usize,
        /// The peer sends nothing more on this stream.
        end_stream: bool,
    },
    /// The stream ended abnormally: RST_STREAM from the peer, a stream error that the peer caused (our
    /// RST_STREAM is already in the output), or a GOAWAY above whose last stream it lies. It is gone; nothing
    /// more can be sent on it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it.
        tag: Tag,
        /// Who reset it, and why.
        cause: ResetCause,
    },
    /// The send queue of the stream fell below
    /// [`Config::send_queue_low_water`](crate::Config::send_queue_low_water) after having been above.
    Writable {
        /// The stream.
        stream: StreamId,
        /// What the owner hung on it.
        tag: Tag,
    },
    /// Streams may be free (client): the peer's first SETTINGS arrived, its MAX_CONCURRENT_STREAMS changed, or a stream
    /// ended and the owner waits for a free one, after
    /// [`Connection::notify_free_stream`](crate::Connection::notify_free_stream) or
    /// [`OpenError::NoFreeStream`](crate::OpenError::NoFreeStream).
    StreamsFree,
    /// GOAWAY from the peer; [`Event::Reset`] of the streams that it will not serve follow.
    GoAway {
        /// The last stream that the peer may have served.
        last_stream: StreamId,
        /// `NoError` where the end is graceful.
        code: ErrorCode,
        /// What the peer says about it, where it lies in the input.
        debug: &'a [u8],
    },
    /// Heads of 64 KiB, as HPACK counts them, were decoded since this was last said. The input goes on as ever; an
    /// owner that has other connections to look after may let them have their turn first.
    MuchDecoded,
    /// The acknowledgement of [`Connection::ping`](crate::Connection::ping).
    Pong {
        /// What the ping carried.
        payload: [u8; 8],
    },
}

/// Who ended a stream, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetCause {
    /// Who noticed the fault.
    pub initiator: Initiator,
    /// The code of the RST_STREAM, or of the GOAWAY.
    pub code: ErrorCode,
    /// The peer says that it never processed the request (REFUSED_STREAM, or above GOAWAY's last stream):
    /// safe to retry.
    pub unprocessed: bool,
    /// What happened.
    pub reason: ResetReason,
}

/// What ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetReason {
    /// The peer sent RST_STREAM.
    PeerReset,
    /// The peer sent GOAWAY with a last stream below this one.
    PeerWentAway,
    /// This endpoint sent RST_STREAM, for what the peer did.
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
