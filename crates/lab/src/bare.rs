//! The leanest client and server that hold many connections: one thread each, over epoll.
//!
//! The server echoes bytes, and is the floor under what any server costs: for each message an event, a `recv` and a
//! `send`. The client keeps a number of calls under way on each active connection. It speaks two protocols: the
//! server's own, and gRPC by frames that were encoded once. So all servers have the same load, from a client that
//! costs little beside its two system calls.
//!
//! Sockets are watched edge-triggered: what is not watched anew costs the kernel no look at it. A `recv` that did not
//! fill the buffer has drained the socket, so there is no second one.

mod connection;
mod driver;
mod grpc;
mod messages;
mod server;
mod wire;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use driver::drive;
pub use server::EchoServer;

/// Bytes of a message of the bare echo without a payload: as many as a small call's frames.
pub(crate) const MESSAGE_BYTES: usize = 60;
/// One `recv` takes at most this much.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Events that one look brings at most: with 2 µs for each, the clock is looked at every 0.5 ms.
const EVENTS_MAX: usize = 256;

/// What the bare client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BareWire {
    /// Messages of 60 bytes and the payload, which come back.
    Echo,
    /// Unary calls of gRPC.
    Grpc,
}

/// A run of the bare client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareRun {
    /// What it speaks.
    pub wire: BareWire,
    /// So many of the connections have calls; the others are open and idle.
    pub active: u32,
}

impl BareWire {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Grpc => "grpc",
        }
    }
}

impl fmt::Display for BareWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no protocol's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is nothing that the bare client speaks: use grpc or echo")]
pub struct UnknownBareWire(String);

impl FromStr for BareWire {
    type Err = UnknownBareWire;

    fn from_str(text: &str) -> Result<Self, UnknownBareWire> {
        let known = [Self::Echo, Self::Grpc].into_iter().find(|wire| wire.name() == text);
        known.ok_or_else(|| UnknownBareWire(text.to_owned()))
    }
}
