//! The servers, channels and sockets of the process, as they are at the moment.
//!
//! Whoever asks takes the lock of each connection once, for as long as it takes to read some numbers.

pub use crate::lanes::channels;
pub use crate::server::servers;
pub use crate::snapshot::{ChannelSnapshot, Counts, LaneDetails, ServerSnapshot, SocketSnapshot, Traffic};

/// The socket of this number, whether of a server or of a channel.
pub fn socket(id: u64) -> Option<SocketSnapshot> {
    crate::server::socket(id).or_else(|| crate::lanes::socket(id))
}
