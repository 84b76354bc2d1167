//! Cryptography provider of rustls, and TLS versions.

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;
use rustls::{CipherSuite, SupportedProtocolVersion};

use super::error::TlsError;

/// A version of TLS. Versions before 1.2 are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246), with the cipher suites that HTTP/2 admits (RFC 9113 §9.2.2).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl TlsVersion {
    /// Returns this version and all newer ones.
    pub(super) fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => rustls::ALL_VERSIONS,
            Self::Tls13 => TLS13_ALONE,
        }
    }
}

static TLS13_ALONE: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Returns the provider installed in the process ([`CryptoProvider::install_default`]), or else the one of this
/// crate's features: aws-lc-rs (`tls-aws-lc`), or ring (`tls-ring`) without that.
///
/// A program may be built with both. rustls is never asked to choose, since it would panic.
///
/// # Errors
/// [`TlsError::NoProvider`] if there is none.
pub fn provider() -> Result<Arc<CryptoProvider>, TlsError> {
    static BUILT_IN: LazyLock<Option<Arc<CryptoProvider>>> = LazyLock::new(|| built_in().map(Arc::new));
    choose(CryptoProvider::get_default(), BUILT_IN.as_ref())
}

fn choose(
    installed: Option<&Arc<CryptoProvider>>,
    built_in: Option<&Arc<CryptoProvider>>,
) -> Result<Arc<CryptoProvider>, TlsError> {
    installed.or(built_in).map(Arc::clone).ok_or(TlsError::NoProvider)
}

/// Prefers AES-128-GCM to AES-256-GCM, as Go and BoringSSL do: it is a tenth faster, and never a connection's weakest
/// part.
fn built_in() -> Option<CryptoProvider> {
    #[cfg(feature = "tls-aws-lc")]
    let provider = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(all(feature = "tls-ring", not(feature = "tls-aws-lc")))]
    let provider = Some(rustls::crypto::ring::default_provider());
    #[cfg(not(any(feature = "tls-aws-lc", feature = "tls-ring")))]
    let provider: Option<CryptoProvider> = None;
    let mut provider = provider?;
    provider.cipher_suites.sort_by_key(|suite| match suite.suite() {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => 0,
        CipherSuite::TLS13_AES_256_GCM_SHA384 => 1,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => 2,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => 3,
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => 4,
        _ => 5,
    });
    Some(provider)
}

/// Creates a server's session tickets. `None` without a built-in provider: clients then resume by session ID.
#[cfg_attr(
    not(any(feature = "tls-aws-lc", feature = "tls-ring")),
    expect(clippy::unnecessary_wraps, reason = "a built-in provider's ticketer may fail")
)]
pub(super) fn tickets() -> Result<Option<Arc<dyn ProducesTickets>>, TlsError> {
    #[cfg(feature = "tls-aws-lc")]
    let tickets = Some(rustls::crypto::aws_lc_rs::Ticketer::new()?);
    #[cfg(all(feature = "tls-ring", not(feature = "tls-aws-lc")))]
    let tickets = Some(rustls::crypto::ring::Ticketer::new()?);
    #[cfg(not(any(feature = "tls-aws-lc", feature = "tls-ring")))]
    let tickets = None;
    Ok(tickets)
}

#[cfg(all(test, any(feature = "tls-aws-lc", feature = "tls-ring")))]
mod tests {
    use super::*;

    #[test]
    fn installed_provider_takes_precedence() {
        let (installed, built_in) = (Arc::new(built_in().unwrap()), Arc::new(built_in().unwrap()));
        let is =
            |chosen: Result<Arc<CryptoProvider>, TlsError>, wanted| Arc::ptr_eq(&chosen.unwrap(), wanted);
        assert!(is(choose(Some(&installed), Some(&built_in)), &installed));
        assert!(is(choose(None, Some(&built_in)), &built_in));
        assert!(matches!(choose(None, None), Err(TlsError::NoProvider)));
    }

    #[test]
    fn the_built_in_provider_prefers_aes_128() {
        let suites = built_in().unwrap().cipher_suites;
        let names: Vec<CipherSuite> = suites[..2].iter().map(rustls::SupportedCipherSuite::suite).collect();
        assert_eq!(names, [CipherSuite::TLS13_AES_128_GCM_SHA256, CipherSuite::TLS13_AES_256_GCM_SHA384]);
    }
}
