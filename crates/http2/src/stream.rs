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

/// A stream that has DATA queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedStream {
    /// The stream.
    pub id: StreamId,
    /// Tag [set](crate::Connection::set_tag) by the owner.
    pub tag: Tag,
    /// How many bytes of DATA have left its queue so far, modulo 2³².
    pub dequeued: u32,
    /// It waits for the peer to open the stream's own window.
    pub is_window_closed: bool,
}

/// How far each direction of a stream has come.
///
/// Which of the states of RFC 9113 §5.1 that is follows from the two together:
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
/// Idle and closed streams take no memory; the table of streams tells them apart by their identifiers. The reserved
/// states of the RFC's figure need PUSH_PROMISE, which is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) local: Local,
    pub(crate) remote: Remote,
}

/// What this endpoint has sent, or accepted from its owner.
///
/// ```text
///  AwaitingHead --- HEADERS ---> Open --- the owner ends ---> Ending --- END_STREAM ---> Ended
///                                         the stream                     is framed
/// ```
///
/// A client's stream is in the table from its HEADERS on: it begins as `Open`, or as `Ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Local {
    /// A server has not begun to answer.
    AwaitingHead,
    /// HEADERS went out, or are queued; the owner may send more.
    Open,
    /// The owner sends nothing more; END_STREAM may still be in the queue, with what is last there.
    Ending,
    /// END_STREAM is framed.
    Ended,
}

/// What the peer has sent.
///
/// ```text
///  AwaitingHead --- final HEADERS ---> Open --- END_STREAM ---> Ended
///    |      ^
///    +------+ informational HEADERS
/// ```
///
/// A server's stream is in the table from the request's HEADERS on: it begins as `Open`, or as `Ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remote {
    /// The final head of the response is still to come.
    AwaitingHead,
    /// The head has come; what follows are DATA and trailers.
    Open,
    /// END_STREAM has come.
    Ended,
}

impl State {
    /// A client's new stream, whose HEADERS go out now; with END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn opened_here(end_stream: bool) -> State {
        let local = if end_stream { Local::Ended } else { Local::Open };
        State { local, remote: Remote::AwaitingHead }
    }

    /// A server's new stream, whose HEADERS came; with END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn opened_by_peer(end_stream: bool) -> State {
        let remote = if end_stream { Remote::Ended } else { Remote::Open };
        State { local: Local::AwaitingHead, remote }
    }

    /// Whether the peer may still send HEADERS and DATA.
    #[inline]
    pub(crate) fn can_receive(self) -> bool {
        self.remote != Remote::Ended
    }

    /// Whether the owner may still send.
    #[inline]
    pub(crate) fn can_send(self) -> bool {
        self.local < Local::Ending
    }

    /// The owner sends a head or trailers, with END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn send_head(&mut self, end_stream: bool) {
        self.local = if end_stream { Local::Ending } else { Local::Open };
    }

    /// The owner sends DATA, with END_STREAM if `end_stream`.
    #[inline]
    pub(crate) fn send_data(&mut self, end_stream: bool) {
        if end_stream {
            self.local = Local::Ending;
        }
    }

    /// Whether both sides have sent END_STREAM.
    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.local == Local::Ended && self.remote == Remote::Ended
    }
}

/// Where the writer keeps a stream that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduled {
    /// Nowhere: the queue is empty, or waits for the stream's own flow-control window.
    No,
    /// In the ready queue.
    Ready,
    /// Among those that wait for the connection's flow-control window.
    Blocked,
}

/// One stream that is open in one direction at least.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) tag: Tag,
    pub(crate) state: State,
    pub(crate) scheduled: Scheduled,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    /// How many bytes the owner said last that it needs before it can use any of what it holds; 0 if it did not.
    pub(crate) needed: u32,
    pub(crate) queue: SendQueue,
    /// What `content-length` still leaves to come, in bytes; `None` if the peer did not say.
    pub(crate) body_left: Option<u64>,
    /// The batch of input in which the stream was opened.
    pub(crate) opened_in: u64,
}

impl Stream {
    /// Whether the owner has to have more of the stream before it can use up what there is.
    pub(crate) fn is_waiting(&self) -> bool {
        self.needed > 0 && self.state.can_receive()
    }

    /// Whether `len` bytes of DATA may be sent now, as far as this stream is concerned.
    #[inline]
    pub(crate) fn fits_now(&self, len: usize) -> bool {
        self.queue.is_empty() && len <= self.send_window.available()
    }

    /// Whether END_STREAM goes out with what was taken from the queue last.
    #[inline]
    pub(crate) fn ends_now(&self) -> bool {
        self.state.local == Local::Ending && self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_closed_when_both_directions_have_ended() {
        let mut request = State::opened_by_peer(false);
        assert!(request.can_receive() && request.can_send());
        request.remote = Remote::Ended;
        assert!(!request.can_receive() && request.can_send() && !request.is_closed());
        request.send_head(false);
        request.send_data(true);
        assert_eq!(request.local, Local::Ending);
        assert!(!request.can_send() && !request.is_closed(), "END_STREAM waits in the queue");
        request.local = Local::Ended;
        assert!(request.is_closed());
    }

    #[test]
    fn a_head_may_end_its_direction() {
        let mut request = State::opened_here(true);
        assert!(!request.can_send() && request.can_receive() && !request.is_closed());
        request.remote = Remote::Ended;
        assert!(request.is_closed());
        assert!(!State::opened_by_peer(true).can_receive());
    }
}
