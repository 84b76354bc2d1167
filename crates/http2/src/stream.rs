//! Streams.

use std::fmt;

/// The identifier of a stream (RFC 9113 §5.1.1): 31 bits, odd where the client opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
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
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An opaque number that the owner of the connection hangs on a stream and gets back with each of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tag(pub u64);
