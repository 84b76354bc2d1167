//! Sockets: the addresses that a server listens on and a client connects to, and one stream type for both kinds.

mod address;
mod listener;
mod round_trip;
mod stream;

pub(crate) use address::Endpoint;
pub use address::{InvalidAddress, ListenAddress};
pub(crate) use listener::Listener;
pub(crate) use stream::Accepted;
