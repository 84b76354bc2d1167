//! Streams (RFC 9113 §5.1).

use std::fmt;

use crate::flow::{ReceiveWindow, SendWindow};
use crate::send_queue::SendQueue;

/// The identifier of a stream (RFC 9113 §5.1.1): 31 bits, odd for streams opened by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
    /// The connection itself, not a stream.
    pub const CONNECTION: StreamId = StreamId(0);
    /// The largest identifier.
    pub const MAX: StreamId = StreamId(0x7fff_ffff);

    /// Creates an identifier; clears the reserved bit.
    pub const fn new(id: u32) -> StreamId {
        StreamId(id & 0x7fff_ffff)
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns whether the identifier is odd. Only clients open streams here: pushes are rejected, so even identifiers
    /// are never used.
    pub(crate) const fn is_client_initiated(self) -> bool {
        self.0 % 2 == 1
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An opaque number that the driver associates with a stream, returned with each of the stream's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tag(pub u64);

/// A stream with queued DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedStream {
    /// The stream.
    pub id: StreamId,
    /// Tag [set](crate::Connection::set_tag) by the driver.
    pub tag: Tag,
    /// Bytes of DATA that have left its queue so far, modulo 2³².
    pub dequeued: u32,
    /// Whether it waits for the peer to open the stream's own window.
    pub is_window_closed: bool,
}

/// State of a stream, by direction.
///
/// Both together determine the state of RFC 9113 §5.1:
///
/// ```text
///                    +--------+
///                    |  idle  |   identifier above the highest in use
///                    +--------+
///                        | send or receive HEADERS
///                        v
///                    +--------+
///        receive ES  |        |  send ES
///       +------------|  open  |------------+
///       v            |        |            v
///  +----------+      +--------+      +----------+
///  |   half   |          |           |   half   |
///  |  closed  |          | RST_      |  closed  |
///  | (remote) |          | STREAM    | (local)  |
///  +----------+          v           +----------+
///       | send ES    +--------+   receive ES |
///       +----------->| closed |<-------------+
///         RST_STREAM +--------+ RST_STREAM
///
///  ES: END_STREAM on HEADERS or DATA. RST_STREAM: sent or received.
///
///                      remote: not Ended     remote: Ended
///  local: not Ended    open                  half closed (remote)
///  local: Ended        half closed (local)   closed: not in the table
/// ```
///
/// Idle and closed streams take no memory; the table of streams distinguishes them by their identifiers. The reserved
/// states of the RFC's figure need PUSH_PROMISE, which is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamState {
    pub(crate) local: LocalState,
    pub(crate) remote: RemoteState,
}

/// State of the sending direction: sent by this endpoint, or accepted from the driver.
///
/// ```text
///  AwaitingHeaders --- HEADERS ---> Open --- the driver ends ---> Ending --- END_STREAM ---> Ended
///                                            the stream                      is framed
/// ```
///
/// A client's stream is in the table from its HEADERS on, so it starts as `Open` or `Ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LocalState {
    /// A server that has not started to respond.
    AwaitingHeaders,
    /// HEADERS were sent or queued; the driver may send more.
    Open,
    /// The driver sends nothing more; END_STREAM may still be queued with the last item.
    Ending,
    /// END_STREAM is framed.
    Ended,
}

/// State of the receiving direction.
///
/// ```text
///  AwaitingHeaders --- final HEADERS ---> Open --- END_STREAM ---> Ended
///    |         ^
///    +---------+ informational HEADERS
/// ```
///
/// A server's stream is in the table from the request's HEADERS on, so it starts as `Open` or `Ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemoteState {
    /// The response's final headers have not arrived.
    AwaitingHeaders,
    /// The headers have arrived; DATA and trailers follow.
    Open,
    /// END_STREAM has arrived.
    Ended,
}

impl StreamState {
    /// A client's new stream with its HEADERS, which carry END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn opened_here(end_stream: bool) -> StreamState {
        let local = if end_stream { LocalState::Ended } else { LocalState::Open };
        StreamState { local, remote: RemoteState::AwaitingHeaders }
    }

    /// A server's new stream with the client's HEADERS, which carry END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn opened_by_peer(end_stream: bool) -> StreamState {
        let remote = if end_stream { RemoteState::Ended } else { RemoteState::Open };
        StreamState { local: LocalState::AwaitingHeaders, remote }
    }

    /// Returns whether the peer may still send HEADERS and DATA.
    #[inline]
    pub(crate) fn can_receive(self) -> bool {
        self.remote != RemoteState::Ended
    }

    /// Returns whether the driver may still send.
    #[inline]
    pub(crate) fn can_send(self) -> bool {
        self.local < LocalState::Ending
    }

    /// Records that the driver sends headers or trailers, with END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn send_headers(&mut self, end_stream: bool) {
        self.local = if end_stream { LocalState::Ending } else { LocalState::Open };
    }

    /// Records that the driver sends DATA, with END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn send_data(&mut self, end_stream: bool) {
        if end_stream {
            self.local = LocalState::Ending;
        }
    }

    /// Returns whether both sides have sent END_STREAM.
    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.local == LocalState::Ended && self.remote == RemoteState::Ended
    }
}

/// The queue that a stream with something to send is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduled {
    /// None: nothing is queued, or the stream waits for its own flow-control window.
    No,
    /// In the ready queue.
    Ready,
    /// Waiting for the connection's flow-control window.
    Blocked,
}

/// A stream that is open in at least one direction.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) tag: Tag,
    pub(crate) state: StreamState,
    pub(crate) scheduled: Scheduled,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    /// Bytes that the driver still requires before it can release the buffered ones; 0 if none.
    pub(crate) required: u32,
    pub(crate) queue: SendQueue,
    /// Bytes that `content-length` leaves to arrive; `None` if the peer did not send it.
    pub(crate) body_left: Option<u64>,
    /// The batch of input that opened the stream.
    pub(crate) opened_in: u64,
}

impl Stream {
    /// Returns whether the driver needs more of the stream before it can release what it has.
    pub(crate) fn is_waiting(&self) -> bool {
        self.required > 0 && self.state.can_receive()
    }

    /// Returns whether this stream's queue and window allow `len` bytes of DATA now.
    #[inline]
    pub(crate) fn can_send_now(&self, len: usize) -> bool {
        self.queue.is_empty() && len <= self.send_window.available()
    }

    /// Returns whether END_STREAM is sent with the item last taken from the queue.
    #[inline]
    pub(crate) fn ends_now(&self) -> bool {
        self.state.local == LocalState::Ending && self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_closed_when_both_directions_have_ended() {
        let mut request = StreamState::opened_by_peer(false);
        assert!(request.can_receive() && request.can_send());
        request.remote = RemoteState::Ended;
        assert!(!request.can_receive() && request.can_send() && !request.is_closed());
        request.send_headers(false);
        request.send_data(true);
        assert_eq!(request.local, LocalState::Ending);
        assert!(!request.can_send() && !request.is_closed(), "END_STREAM waits in the queue");
        request.local = LocalState::Ended;
        assert!(request.is_closed());
    }

    #[test]
    fn headers_with_end_stream_end_their_direction() {
        let mut request = StreamState::opened_here(true);
        assert!(!request.can_send() && request.can_receive() && !request.is_closed());
        request.remote = RemoteState::Ended;
        assert!(request.is_closed());
        assert!(!StreamState::opened_by_peer(true).can_receive());
    }
}
