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
#[cfg(feature = "_tls-any")]
mod tls;
#[cfg(feature = "_tls-any")]
mod tls_connect_info;

pub use builder::Server;
pub use extension::ServerExt;
#[cfg(feature = "router")]
pub use router::Router;
#[cfg(feature = "_tls-any")]
pub use tls::ServerTlsConfig;
#[cfg(feature = "_tls-any")]
pub use tonic::transport::server::TlsConnectInfo;
#[cfg(unix)]
pub use tonic::transport::server::UdsConnectInfo;
pub use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};
