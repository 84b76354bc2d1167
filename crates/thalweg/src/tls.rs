//! TLS settings: a server's identity, and the certificates that a channel trusts.
//!
//! A server has an identity, a certificate with its key:
//!
//! ```no_run
//! use thalweg::Server;
//! use thalweg::tls::Identity;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().tls(Identity::from_files("server.pem", "server.key"));
//! server.serve("127.0.0.1:50051".parse()?).await?;
//! # Ok(()) }
//! ```
//!
//! A channel trusts the platform's certificate authorities, or those it is given:
//!
//! ```
//! use thalweg::Channel;
//! use thalweg::tls::{Certificate, ClientTlsConfig};
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let public = Channel::builder("https://greeter.example").connect_lazy()?;
//! let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_file("ca.pem"));
//! let internal = Channel::builder("dns:///greeter.internal:50051").tls(tls).connect_lazy()?;
//! # Ok(()) }
//! ```
//!
//! With mTLS, a handler finds the client's verified certificate in the call's
//! [`ConnectionInfo`](crate::ConnectionInfo):
//!
//! ```
//! use thalweg::{ConnectionInfo, Request};
//!
//! fn certificate_of(request: &Request<()>) -> Option<&[u8]> {
//!     let connection = request.extensions().get::<std::sync::Arc<ConnectionInfo>>()?;
//!     Some(connection.tls()?.peer_certificates()?.first()?)
//! }
//! ```

#[cfg(feature = "testing")]
pub use thalweg_engine::tls::testing;
pub use thalweg_engine::tls::{
    Certificate, CertificateDer, ClientTlsConfig, Identity, LiveIdentity, PrivateKeyDer, ServerTlsConfig,
    TlsError, TlsInfo, TlsVersion, rustls,
};
