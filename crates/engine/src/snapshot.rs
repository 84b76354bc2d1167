//! Statistics of servers and channels, as reported by gRPC's channelz (gRFC A14).
//!
//! They cost plain calls nothing: a connection knows its number of streams and counts only the failed ones.

use std::ops::AddAssign;
use std::time::SystemTime;

use thalweg_balance::ConnectivityState;

use crate::net::ListenAddress;

/// Numbers of calls or streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Started.
    pub started: u64,
    /// Ended successfully: calls with OK, streams with END_STREAM.
    pub succeeded: u64,
    /// Ended otherwise. The remaining ones are in progress.
    pub failed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.started += other.started;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
    }
}

/// Calls that were sent, and the time of the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentCalls {
    pub(crate) counts: Counts,
    pub(crate) last: Option<SystemTime>,
}

impl AddAssign for SentCalls {
    fn add_assign(&mut self, other: Self) {
        self.counts += other.counts;
        self.last = self.last.max(other.last);
    }
}

/// A server. Servers, channels, endpoints, lanes and sockets have process-wide identifiers that are never reused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerSnapshot {
    /// Identifier of the server.
    pub id: u64,
    /// Listening sockets with their identifiers; empty if the application accepts the connections.
    pub listening: Vec<(u64, ListenAddress)>,
    /// Calls received.
    pub calls: Counts,
    /// Time of the last call, to the second.
    pub last_call: Option<SystemTime>,
    /// Open connections, in the order of their identifiers.
    pub sockets: Vec<u64>,
}

/// A channel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelSnapshot {
    /// Identifier of the channel.
    pub id: u64,
    /// Target URI with its scheme.
    pub target: String,
    /// Connectivity state.
    pub state: ConnectivityState,
    /// Calls sent. Retries count again; calls that found no connection do not count.
    pub calls: Counts,
    /// Time of the last call that was sent, to the second.
    pub last_call: Option<SystemTime>,
    /// Attempts at calls beyond the first, by server, in the order of the first such attempt.
    pub further_attempts: Vec<PeerAttempts>,
    /// Latest events.
    pub events: EventsSnapshot,
    /// Servers, in the order of the resolver. Without a balancing policy there is one, with all addresses.
    pub endpoints: Vec<EndpointSnapshot>,
}

/// A server of a channel: channelz' subchannel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointSnapshot {
    /// Identifier of the endpoint.
    pub id: u64,
    /// Its addresses, separated by commas; the channel's target if the channel does not balance.
    pub name: String,
    /// Number of addresses at the last attempt to connect; 0 before it.
    pub addresses: usize,
    /// Reason why the last attempt to connect failed; `None` if it succeeded, or the endpoint is connected.
    pub last_connect_error: Option<String>,
    /// Connectivity state. A failure lasts until the endpoint is connected (gRFC A62).
    pub state: ConnectivityState,
    /// Calls sent.
    pub calls: Counts,
    /// Time of the last call that was sent, to the second.
    pub last_call: Option<SystemTime>,
    /// Latest events.
    pub events: EventsSnapshot,
    /// Lanes, in the order of their opening; closing ones last.
    pub lanes: Vec<LaneDetails>,
}

/// Events of a channel or an endpoint: state changes, connections, failures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventsSnapshot {
    /// When the channel or endpoint was created.
    pub created_at: SystemTime,
    /// Number of events so far.
    pub logged: u64,
    /// The latest events, at most 32.
    pub latest: Vec<LoggedEvent>,
}

/// An event of a channel or an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoggedEvent {
    /// Time of the event.
    pub at: SystemTime,
    /// Whether it is a failure.
    pub is_failure: bool,
    /// Description, of at most 256 bytes.
    pub description: String,
    /// Identifier and name of the endpoint that was added to or removed from a channel.
    pub endpoint: Option<(u64, String)>,
}

/// A lane: one of the connections to an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneDetails {
    /// Identifier of the lane.
    pub id: u64,
    /// Connectivity state; SHUTDOWN if it closes after its last call.
    pub state: ConnectivityState,
    /// The reason it was opened.
    pub reason: String,
    /// Calls sent.
    pub calls: Counts,
    /// The same by peer. Of a lane that had connections to more than 16 peers, only the latest ones are listed.
    pub peers: Vec<PeerCalls>,
    /// Time of the last call that was sent, to the second.
    pub last_call: Option<SystemTime>,
    /// Connections: the one that accepts calls, and draining ones.
    pub sockets: Vec<u64>,
}

impl LaneDetails {
    pub(crate) fn sent_calls(&self) -> SentCalls {
        SentCalls { counts: self.calls, last: self.last_call }
    }
}

impl Traffic {
    /// Returns the calls of a client's connection.
    pub(crate) fn sent_calls(&self) -> SentCalls {
        SentCalls { counts: self.calls, last: self.last_stream }
    }
}

impl ChannelSnapshot {
    /// Returns the lanes of all endpoints.
    pub fn lanes(&self) -> impl Iterator<Item = &LaneDetails> {
        self.endpoints.iter().flat_map(|endpoint| &endpoint.lanes)
    }
}

/// Calls of a lane to one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerCalls {
    /// The peer, as named in messages.
    pub peer: String,
    /// Calls sent to it.
    pub calls: Counts,
}

impl PeerCalls {
    /// Adds the calls of a connection to `peer`.
    pub(crate) fn add(all: &mut Vec<Self>, peer: &str, calls: Counts) {
        match all.iter_mut().find(|known| known.peer == peer) {
            Some(known) => known.calls += calls,
            None => all.push(Self { peer: peer.to_owned(), calls }),
        }
    }
}

/// Attempts at calls beyond the first, by the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerAttempts {
    /// The peer, as named in messages; `None` if the attempt found no connection, or the peer is not known.
    pub peer: Option<String>,
    /// Attempts that failed there and were made again by the retry policy.
    pub retries: u64,
    /// Attempts that it did not process, and that were made again without a policy.
    pub transparent_retries: u64,
    /// Attempts sent to it while others at the same call were under way.
    pub hedges: u64,
}

/// A connection or a listening socket.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SocketSnapshot {
    /// Identifier of the socket.
    pub id: u64,
    /// Listening address of the server; `None` for client connections.
    pub local: Option<ListenAddress>,
    /// The peer, as named in messages; `None` for listening sockets.
    pub peer: Option<String>,
    /// Traffic of a connection; `None` for listening sockets.
    pub traffic: Option<Traffic>,
}

/// Traffic of a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Traffic {
    /// Whether this end makes the calls.
    pub is_client: bool,
    /// Streams.
    pub streams: Counts,
    /// Calls.
    pub calls: Counts,
    /// Time when the last stream was opened, to the second.
    pub last_stream: Option<SystemTime>,
    /// Number of keepalive PINGs sent to a silent peer.
    pub keepalives_sent: u64,
    /// The peer's connection-level flow-control window, in bytes (RFC 9113 §6.9).
    pub send_window: i64,
    /// This end's connection-level flow-control window as announced to the peer, in bytes.
    pub receive_window: i64,
}
