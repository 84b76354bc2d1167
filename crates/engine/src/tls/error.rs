//! Errors of setting up TLS.

use std::io;
use std::path::PathBuf;

/// Certificates, keys or names can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file can't be read.
    #[error("can't read {what} {}: {source}", path.display())]
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
    #[error("{place}: the private key is not the key of the certificate (the first one of the chain)")]
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
    #[error("a server needs a certificate and its key: give its TLS an identity")]
    NoIdentity,
    /// No client can ask for a name.
    #[error(
        "`{name}` is not a name that clients ask for: write a DNS name, or `*.` and one, without a port and no IP \
         address"
    )]
    ServerName {
        /// The name as given.
        name: String,
    },
    /// An identity's certificate is not valid for the name that it was set for.
    #[error("{place}: the certificate is not for `{name}`, under which it is to be shown")]
    OtherName {
        /// Source of the identity.
        place: String,
        /// The name as given.
        name: String,
    },
    /// Two identities for the names in their certificates share a name.
    #[error(
        "`{name}` is a name of two certificates ({place}; {other}): leave one of them out, or have one issued without \
         that name"
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
    #[error(
        "{place}: the certificate has no DNS name, so that no client could ask for it: have it issued with one, or \
         make it the default"
    )]
    NoName {
        /// Source of the identity.
        place: String,
    },
    /// The platform has no root certificates, and no others were given.
    #[error(
        "the platform's root certificates: {reason}; install them (on Debian the package ca-certificates), or give \
         the certificate of the authority that issued the server's"
    )]
    NoRoots {
        /// The problem.
        reason: String,
    },
    /// There is no cryptography provider.
    #[error(
        "no provider of cryptography for TLS: switch on the feature `tls-aws-lc` or `tls-ring`, or install one with \
         `CryptoProvider::install_default`"
    )]
    NoProvider,
    /// No certificate can be valid for a name.
    #[error(
        "`{0}` is not a name that a certificate can be for: write a DNS name or an IP address, without a port"
    )]
    Name(String),
    /// The settings contradict each other.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
}
