//! How far the end of a connection has come: GOAWAY of either side (RFC 9113 §6.8), draining, closed.

use std::time::Instant;

use crate::error::ConnectionError;
use crate::stream::StreamId;

/// The end of a connection, as far as it has come.
#[derive(Debug)]
pub(crate) struct Shutdown {
    pub(crate) closed: Closed,
    pub(crate) drain: Drain,
    /// The last stream that the peer's GOAWAY lets live.
    pub(crate) peer_last_stream: Option<StreamId>,
}

/// Whether the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    No,
    ByOwner,
    ByFault(ConnectionError),
}

/// How far a drain has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    No,
    /// Client: no stream is opened any more, and GOAWAY follows the end of the last one. Peers such as hyper-h2 take a
    /// GOAWAY for the end of the connection, whatever streams are left on it.
    AwaitingStreams,
    /// Server: GOAWAY(2^31 - 1) and a PING are sent: requests that were on their way before the client saw them are
    /// still served.
    AwaitingPong {
        deadline: Option<Instant>,
    },
    /// The last GOAWAY is sent; streams above it are not served.
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

    /// Whether the peer sent GOAWAY.
    pub(crate) fn peer_going_away(&self) -> bool {
        self.peer_last_stream.is_some()
    }

    /// Whether either side has said which stream is its last.
    pub(crate) fn is_going_away(&self) -> bool {
        matches!(self.drain, Drain::Last(_)) || self.peer_going_away()
    }

    /// Whether a stream was opened after the GOAWAY that says that it is not served.
    pub(crate) fn is_beyond_goaway(&self, stream: StreamId) -> bool {
        matches!(self.drain, Drain::Last(last) if stream > last)
    }

    /// When the last GOAWAY is due, whether the PING is acknowledged or not.
    pub(crate) fn drain_deadline(&self) -> Option<Instant> {
        match self.drain {
            Drain::AwaitingPong { deadline } => deadline,
            Drain::No | Drain::AwaitingStreams | Drain::Last(_) => None,
        }
    }
}
