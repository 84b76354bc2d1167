//! TLS by rustls, below HTTP/2: what a connection shows, whom it trusts, and the stream that a driver reads and writes.
//!
//! ```text
//!   Identity, Certificate ─► ClientTlsConfig, ServerTlsConfig     what an application says
//!                                      │ read, checked, built
//!                            ClientTls, ServerTls                 kept up to date with their files
//!                                      │ a handshake each
//!   socket ◄─────► TlsStream ◄─────► driver                       records ◄─► HTTP/2's bytes
//! ```
//!
//! Inbound, a read takes what the socket has into a buffer of the thread; rustls decrypts record by record in there,
//! and what it finds is copied to where the driver reads. Outbound, a batch becomes records of 16 KiB in a buffer of
//! the thread, which one write hands over. A connection on which nothing moves holds neither.

mod buffers;
mod client;
mod error;
mod explain;
mod handshake;
mod identity;
mod info;
mod names;
mod pem;
mod provider;
mod reload;
mod roots;
mod server;
mod session;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;

pub use rustls;
pub use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) use buffers::Held;
pub(crate) use client::ClientTls;
pub use client::ClientTlsConfig;
pub use error::TlsError;
pub use identity::{Certificate, Identity, LiveIdentity};
pub use info::TlsInfo;
pub use provider::{TlsVersion, provider};
pub(crate) use server::ServerTls;
pub use server::ServerTlsConfig;
