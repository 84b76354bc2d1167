//! Servers: [`Server`] holds the settings, and a [`Router`] its services as well.

mod builder;
mod connect_info;
mod connection;
mod extension;
mod http1;
mod incoming;
mod layers;
#[cfg(feature = "router")]
mod router;
mod serving;
mod tcp_incoming;
#[cfg(feature = "_tls-any")]
mod tls;
#[cfg(feature = "_tls-any")]
#[cfg_attr(own_vocabulary, path = "server/tls_connect_info/own.rs")]
mod tls_connect_info;

pub use builder::Server;
pub use extension::ServerExt;
#[cfg(feature = "router")]
pub use router::Router;
pub use tcp_incoming::TcpIncoming;
#[cfg(feature = "_tls-any")]
pub use tls::ServerTlsConfig;
#[cfg(feature = "_tls-any")]
pub use vocabulary::transport::server::TlsConnectInfo;
#[cfg(unix)]
pub use vocabulary::transport::server::UdsConnectInfo;
pub use vocabulary::transport::server::{Connected, TcpConnectInfo};
