//! The servers, channels and sockets of the process at this moment.
//!
//! Each query locks every connection once, just long enough to read some numbers.

pub use crate::endpoints::channels;
pub use crate::server::servers;
pub use crate::snapshot::{
    ChannelSnapshot, Counts, EndpointSnapshot, EventsSnapshot, LaneDetails, LoggedEvent, PeerAttempts,
    PeerCalls, ServerSnapshot, SocketSnapshot, Traffic,
};

/// Returns the socket with this number, of a server or a channel.
pub fn socket(id: u64) -> Option<SocketSnapshot> {
    crate::server::socket(id).or_else(|| crate::endpoints::socket(id))
}
