//! Proxies between a channel and its servers: HTTP CONNECT (gRFC A1), and SOCKS5.

mod config;
mod environment;
mod no_proxy;
mod ready;
#[cfg(feature = "socks")]
mod socks;
mod tunnel;
mod url;

pub use config::ProxyConfig;
pub(crate) use ready::ReadyProxy;
#[cfg(feature = "tls")]
pub(crate) use tunnel::open_secure_tunnel;
pub(crate) use tunnel::open_tunnel;
pub use url::{Proxy, ProxyError};
