//! Sockets: the addresses that a server listens on and a client connects to, and one stream type for both kinds.

mod address;
mod listener;
mod round_trip;
mod stream;
mod tcp_keepalive;
mod tcp_options;

pub(crate) use address::Endpoint;
pub use address::{InvalidAddress, ListenAddress};
pub(crate) use listener::Listener;
pub(crate) use stream::Accepted;
pub use tcp_keepalive::TcpKeepalive;
pub use tcp_options::TcpOptions;
