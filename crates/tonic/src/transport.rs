//! Clients and servers over Thalweg's HTTP/2.
//!
//! [`Endpoint`] says whom a [`Channel`] calls and how; [`Server`] takes services and serves them. Both are set up as
//! tonic's are. What they are set to goes to Thalweg's engine where that has it, and becomes a layer around calls where
//! it has not.

#[cfg(feature = "channel")]
pub mod channel;
mod error;
mod http2;
#[cfg(feature = "server")]
pub mod server;
mod timeout;
#[cfg(feature = "_tls-any")]
mod tls;

#[cfg(all(feature = "channel", feature = "_tls-any"))]
pub use channel::ClientTlsConfig;
#[cfg(feature = "channel")]
pub use channel::{Channel, Endpoint};
pub use error::Error;
pub use http::Uri;
pub use http_body::Body;
#[cfg(feature = "server")]
pub use server::Server;
#[cfg(all(feature = "server", feature = "_tls-any"))]
pub use server::ServerTlsConfig;
#[cfg(feature = "_tls-any")]
pub use thalweg_engine::tls::CertificateDer;
#[cfg(feature = "_tls-any")]
pub use tls::{Certificate, Identity};
