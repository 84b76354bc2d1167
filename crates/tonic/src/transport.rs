//! Clients and servers over Thalweg's HTTP/2.
//!
//! [`Endpoint`] sets the target and the options of a [`Channel`]; [`Server`] takes services and serves them. Both are
//! configured like tonic's. Settings that Thalweg's engine supports are passed to it; the others become layers around
//! calls.

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
