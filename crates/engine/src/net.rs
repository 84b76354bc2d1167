//! Sockets: addresses of servers and clients, and one stream type for TCP and UNIX sockets.

mod address;
mod listener;
mod round_trip;
mod stream;
mod tcp_keepalive;
mod tcp_options;

pub use address::{InvalidAddress, ListenAddress};
pub(crate) use listener::Listener;
pub(crate) use stream::Accepted;
#[cfg(feature = "tls")]
pub(crate) use stream::Socket;
pub use tcp_keepalive::TcpKeepalive;
pub use tcp_options::TcpOptions;
