//! Streams (RFC 9113 §5.1).

use std::fmt;

use crate::flow::{ReceiveWindow, SendWindow};
use crate::send_queue::SendQueue;

/// The identifier of a stream (RFC 9113 §5.1.1): 31 bits, odd where the client opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
    /// Not a stream: the connection itself.
    pub const CONNECTION: StreamId = StreamId(0);
    /// The largest identifier.
    pub const MAX: StreamId = StreamId(0x7fff_ffff);

    /// The reserved bit, where set, is dropped.
    pub const fn new(id: u32) -> StreamId {
        StreamId(id & 0x7fff_ffff)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Only clients open streams here: pushes are refused, so that no even identifier is ever in use.
    pub(crate) const fn is_client_initiated(self) -> bool {
        self.0 % 2 == 1
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An opaque number that the owner of the connection hangs on a stream and gets back with each of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tag(pub u64);

/// Which directions of a stream are open.
///
/// ```text
///                    +--------+
///                    |  idle  |   identifier above the highest in use
///                    +--------+
///                        | send or receive HEADERS
///                        v
///                    +--------+
///        receive ES  |        |  send ES
///       +------------|  Open  |------------+
///       v            |        |            v
///  +----------+      +--------+      +----------+
///  |   Half   |          |           |   Half   |
///  |  Closed  |          | RST_      |  Closed  |
///  |  Remote  |          | STREAM    |  Local   |
///  +----------+          v           +----------+
///       | send ES    +--------+   receive ES |
///       +----------->| closed |<-------------+
///         RST_STREAM +--------+ RST_STREAM
///
///  ES: END_STREAM on HEADERS or DATA. RST_STREAM: sent or received.
/// ```
///
/// Idle and closed streams take no memory, so the enum has no variants for them; the table of streams tells
/// them apart by their identifiers. The reserved states of the RFC's figure need PUSH_PROMISE, which is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    HalfClosedLocal,
    HalfClosedRemote,
}

impl State {
    /// Whether the peer may still send HEADERS and DATA.
    pub(crate) fn can_receive(self) -> bool {
        self != State::HalfClosedRemote
    }

    /// The peer sent END_STREAM. `None`: closed.
    pub(crate) fn after_receiving_end(self) -> Option<State> {
        match self {
            State::Open | State::HalfClosedRemote => Some(State::HalfClosedRemote),
            State::HalfClosedLocal => None,
        }
    }

    /// This endpoint sent END_STREAM. `None`: closed.
    pub(crate) fn after_sending_end(self) -> Option<State> {
        match self {
            State::Open | State::HalfClosedLocal => Some(State::HalfClosedLocal),
            State::HalfClosedRemote => None,
        }
    }
}

/// Where the writer keeps a stream that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nowhere: the queue is empty, or waits for the stream's own window.
    None,
    /// Among those that take turns.
    Ready,
    /// Among those that wait for the connection's window.
    Starved,
}

/// One stream that is open in one direction at least.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked for by itself")]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) tag: Tag,
    pub(crate) state: State,
    /// END_STREAM was accepted from the owner; it may still be in the queue.
    pub(crate) send_ended: bool,
    /// HEADERS were sent by this endpoint: on a server, an answer is under way.
    pub(crate) answered: bool,
    /// The final head came from the peer; what follows are DATA and trailers.
    pub(crate) head_received: bool,
    /// The send queue was above the low-water mark and has not been below it since.
    pub(crate) above_low_water: bool,
    pub(crate) turn: Turn,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    pub(crate) queue: SendQueue,
    /// What `content-length` still leaves to come, in bytes; `None` if the peer did not say.
    pub(crate) body_left: Option<u64>,
    /// The batch of input in which the stream was opened.
    pub(crate) opened_in: u64,
}

impl Stream {
    /// Whether `len` bytes of DATA may be sent now, as far as this stream is concerned.
    #[inline]
    pub(crate) fn fits_now(&self, len: usize) -> bool {
        self.queue.is_empty() && len <= self.send_window.available()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_the_diagram() {
        assert_eq!(State::Open.after_receiving_end(), Some(State::HalfClosedRemote));
        assert_eq!(State::Open.after_sending_end(), Some(State::HalfClosedLocal));
        assert_eq!(State::HalfClosedLocal.after_receiving_end(), None);
        assert_eq!(State::HalfClosedRemote.after_sending_end(), None);
        assert!(State::HalfClosedLocal.can_receive());
        assert!(!State::HalfClosedRemote.can_receive());
    }
}
