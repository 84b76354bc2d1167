//! What servers and channels have done: what gRPC's channelz (gRFC A14) tells of them.
//!
//! Nothing is counted for it that plain calls would pay for. A connection knows how many streams it has had, and
//! counts those alone that failed.

use std::ops::AddAssign;
use std::time::SystemTime;

use crate::net::ListenAddress;

/// How many there were: of calls or of streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Those that were begun.
    pub started: u64,
    /// Of those, how many ended well: calls with OK, streams with END_STREAM.
    pub succeeded: u64,
    /// And how many ended otherwise. The rest is under way.
    pub failed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.started += other.started;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
    }
}

/// A server. The numbers of servers, channels, lanes and sockets are the process's own, and never given twice.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerSnapshot {
    /// Its number.
    pub id: u64,
    /// The sockets that it listens on, by their numbers; none of a server that is handed its connections.
    pub listening: Vec<(u64, ListenAddress)>,
    /// The calls that came to it.
    pub calls: Counts,
    /// When the last call came, to the second.
    pub last_call: Option<SystemTime>,
    /// Its open connections, in the order of their numbers.
    pub sockets: Vec<u64>,
}

/// A channel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelSnapshot {
    /// Its number.
    pub id: u64,
    /// Its target, with the scheme.
    pub target: String,
    /// The calls that it has sent, those counted anew that were sent again. One that found no connection is none.
    pub calls: Counts,
    /// Its lanes, in the order of their numbers.
    pub lanes: Vec<LaneDetails>,
}

/// A lane of a channel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneDetails {
    /// Its number.
    pub id: u64,
    /// gRPC's connectivity state: `IDLE`, `CONNECTING`, `READY`, `TRANSIENT_FAILURE` or `SHUTDOWN`.
    pub state: &'static str,
    /// Why it was opened.
    pub reason: String,
    /// The calls that it has sent.
    pub calls: Counts,
    /// Its connections: the one that takes calls, and those that wait for their last to end.
    pub sockets: Vec<u64>,
}

/// A connection, or a socket that is listened on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SocketSnapshot {
    /// Its number.
    pub id: u64,
    /// Where it was accepted: the address that is listened on. Not known of a client's.
    pub local: Option<ListenAddress>,
    /// The other end, as messages name it. None of a socket that is listened on.
    pub peer: Option<String>,
    /// What a connection has carried; none of a socket that is listened on.
    pub traffic: Option<Traffic>,
}

/// What a connection has carried.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Traffic {
    /// Whether this end makes the calls.
    pub is_client: bool,
    /// Its streams.
    pub streams: Counts,
    /// Its calls.
    pub calls: Counts,
    /// When the last stream was opened, to the second. Not known of a client's.
    pub last_stream: Option<SystemTime>,
    /// How often a silent peer was asked whether it is there (PING).
    pub keepalives_sent: u64,
    /// Bytes that the peer takes at the moment, over all streams (RFC 9113 §6.9).
    pub send_window: i64,
    /// Bytes that this end takes at the moment, over all streams, as far as the peer was told.
    pub receive_window: i64,
}
