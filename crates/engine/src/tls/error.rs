//! Why TLS can't be set up.

use std::io;
use std::path::PathBuf;

/// Why certificates, keys or names can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that can't be read.
    #[error("can't read {what} {}: {source}", path.display())]
    File {
        /// What it is to hold.
        what: &'static str,
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A text without what is looked for in it.
    #[error("{place}: {reason}")]
    Pem {
        /// What it is, and where it comes from.
        place: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Certificate and key of an identity are not a pair.
    #[error("{place}: the private key is not the key of the certificate (the first one of the chain)")]
    KeyMismatch {
        /// Where both come from.
        place: String,
    },
    /// An identity that rustls can't work with.
    #[error("{place}: {source}")]
    Identity {
        /// Where it comes from.
        place: String,
        /// What rustls says.
        source: rustls::Error,
    },
    /// A certificate that nothing can be verified with.
    #[error("{place}: certificate {number} cannot be used as a trust anchor: {source}")]
    Authority {
        /// Where it comes from.
        place: String,
        /// Counted from 1.
        number: usize,
        /// What rustls says.
        source: rustls::Error,
    },
    /// A server without a certificate.
    #[error("a server needs a certificate and its key: give its TLS an identity")]
    NoIdentity,
    /// A name that no client asks for.
    #[error(
        "`{name}` is not a name that clients ask for: write a DNS name, or `*.` and one, without a port and no IP \
         address"
    )]
    ServerName {
        /// As it was given.
        name: String,
    },
    /// An identity that is to be shown under a name which its certificate does not have.
    #[error("{place}: the certificate is not for `{name}`, under which it is to be shown")]
    OtherName {
        /// Where it comes from.
        place: String,
        /// As it was given.
        name: String,
    },
    /// Two identities are to be shown under the names in their certificates, and a name is in both.
    #[error(
        "`{name}` is a name of two certificates ({place}; {other}): leave one of them out, or have one issued without \
         that name"
    )]
    SameName {
        /// The name.
        name: String,
        /// Where the first comes from.
        place: String,
        /// Where the second comes from.
        other: String,
    },
    /// An identity that is to be shown under the names in its certificate, which has none.
    #[error(
        "{place}: the certificate has no DNS name, so that no client could ask for it: have it issued with one, or \
         make it the default"
    )]
    NoName {
        /// Where it comes from.
        place: String,
    },
    /// The platform has no roots, and no others were given.
    #[error(
        "the platform's root certificates: {reason}; install them (on Debian the package ca-certificates), or give \
         the certificate of the authority that issued the server's"
    )]
    NoRoots {
        /// What went wrong.
        reason: String,
    },
    /// There is no cryptography to work with.
    #[error(
        "no provider of cryptography for TLS: switch on the feature `tls-aws-lc` or `tls-ring`, or install one with \
         `CryptoProvider::install_default`"
    )]
    NoProvider,
    /// A name that no certificate can be for.
    #[error(
        "`{0}` is not a name that a certificate can be for: write a DNS name or an IP address, without a port"
    )]
    Name(String),
    /// What was asked for does not go together.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
}
