//! TLS by rustls, below HTTP/2: certificates, trust, and the stream that a driver reads and writes.
//!
//! ```text
//!   Identity, Certificate ─► ClientTlsConfig, ServerTlsConfig     settings of the application
//!                                      │ read, checked, built
//!                            ClientTls, ServerTls                 reloaded from their files
//!                                      │ one handshake each
//!   socket ◄─────► TlsStream ◄─────► driver                       records ◄─► HTTP/2's bytes
//! ```
//!
//! A read takes the socket's data into a per-thread buffer. rustls decrypts it record by record in place, and the
//! plaintext is copied to the driver's read buffer. A write turns a batch into records of 16 KiB in a per-thread
//! buffer, and sends them with one system call. An idle connection holds neither buffer.

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

pub(crate) use buffers::BufferMemory;
pub(crate) use client::ClientTls;
pub use client::ClientTlsConfig;
pub use error::TlsError;
pub(crate) use handshake::HandshakeError;
pub use identity::{Certificate, Identity, LiveIdentity};
pub use info::TlsInfo;
pub use provider::{TlsVersion, provider};
pub(crate) use server::ServerTls;
pub use server::ServerTlsConfig;
