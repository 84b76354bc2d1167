//! Errors of setting up TLS.

use std::io;
use std::path::PathBuf;

/// Certificates, keys or names can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file can't be read.
    #[error("failed to read {what} {}: {source}", path.display())]
    File {
        /// Expected content of the file.
        what: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// PEM text lacks the expected content.
    #[error("{place}: {reason}")]
    Pem {
        /// Kind and source of the text.
        place: String,
        /// The problem, and advice.
        reason: String,
    },
    /// Certificate and key of an identity don't match.
    #[error("{place}: the private key does not match the certificate (the first one of the chain)")]
    KeyMismatch {
        /// Source of both.
        place: String,
    },
    /// rustls can't use an identity.
    #[error("{place}: {source}")]
    Identity {
        /// Source of the identity.
        place: String,
        /// The error of rustls.
        source: rustls::Error,
    },
    /// A certificate that nothing can be verified with.
    #[error("{place}: certificate {number} cannot be used as a trust anchor: {source}")]
    Authority {
        /// Source of the certificate.
        place: String,
        /// Number of the certificate, from 1.
        number: usize,
        /// The error of rustls.
        source: rustls::Error,
    },
    /// A server has no certificate.
    #[error("a TLS server needs a certificate and its key; set an identity")]
    NoIdentity,
    /// No client can ask for a name.
    #[error("invalid server name `{name}`; use a DNS name, or `*.` and a DNS name, without a port")]
    ServerName {
        /// The name as given.
        name: String,
    },
    /// An identity's certificate is not valid for the name that it was set for.
    #[error("{place}: the certificate is not valid for `{name}`")]
    OtherName {
        /// Source of the identity.
        place: String,
        /// The name as given.
        name: String,
    },
    /// Two identities for the names in their certificates share a name.
    #[error(
        "`{name}` is in two certificates ({place}; {other}); remove one of them, or reissue it without that name"
    )]
    SameName {
        /// The shared name.
        name: String,
        /// Source of the first.
        place: String,
        /// Source of the second.
        other: String,
    },
    /// An identity for the names in its certificate has no DNS name.
    #[error("{place}: the certificate has no DNS name; reissue it with one, or make it the default")]
    NoName {
        /// Source of the identity.
        place: String,
    },
    /// The platform has no root certificates, and no others were given.
    #[error(
        "failed to load the platform's root certificates: {reason}; install them (on Debian the package \
         ca-certificates), or set the server's CA certificate"
    )]
    NoRoots {
        /// The problem.
        reason: String,
    },
    /// There is no cryptography provider.
    #[error(
        "no TLS crypto provider; enable the feature `tls-aws-lc` or `tls-ring`, or install one with \
         `CryptoProvider::install_default`"
    )]
    NoProvider,
    /// No certificate can be valid for a name.
    #[error("invalid certificate name `{0}`; use a DNS name or an IP address, without a port")]
    Name(String),
    /// The settings contradict each other.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
}
