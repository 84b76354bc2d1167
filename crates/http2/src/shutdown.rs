//! State of the end of a connection: GOAWAY of either side (RFC 9113 §6.8), draining, closed.

use std::time::Instant;

use crate::error::ConnectionError;
use crate::stream::StreamId;

/// State of the end of a connection.
#[derive(Debug)]
pub(crate) struct Shutdown {
    pub(crate) closed: Closed,
    pub(crate) drain: Drain,
    /// The last stream that the peer will serve, from its GOAWAY.
    pub(crate) peer_last_stream: Option<StreamId>,
}

/// Whether the connection is over, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    No,
    ByDriver,
    ByFault(ConnectionError),
}

/// State of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    No,
    /// Client: no more streams are opened, and GOAWAY follows the end of the last one. Peers such as hyper-h2 end the
    /// connection on GOAWAY, even with open streams.
    AwaitingStreams,
    /// Server: GOAWAY(2^31 - 1) and a PING were sent. Requests that the client sent before it received them are still
    /// served.
    AwaitingPong {
        deadline: Option<Instant>,
    },
    /// The last GOAWAY was sent; later streams are not served.
    Last(StreamId),
}

impl Shutdown {
    pub(crate) const NONE: Shutdown =
        Shutdown { closed: Closed::No, drain: Drain::No, peer_last_stream: None };

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed != Closed::No
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Returns whether the peer sent GOAWAY.
    pub(crate) fn peer_going_away(&self) -> bool {
        self.peer_last_stream.is_some()
    }

    /// Returns whether either side has announced its last stream.
    pub(crate) fn is_going_away(&self) -> bool {
        matches!(self.drain, Drain::Last(_)) || self.peer_going_away()
    }

    /// Returns whether a stream is above the last stream of our GOAWAY, so that it is not served.
    pub(crate) fn is_beyond_goaway(&self, stream: StreamId) -> bool {
        matches!(self.drain, Drain::Last(last) if stream > last)
    }

    /// Returns when to send the last GOAWAY even if the PING is not acknowledged.
    pub(crate) fn drain_deadline(&self) -> Option<Instant> {
        match self.drain {
            Drain::AwaitingPong { deadline } => deadline,
            Drain::No | Drain::AwaitingStreams | Drain::Last(_) => None,
        }
    }
}
