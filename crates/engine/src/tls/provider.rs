//! The cryptography that rustls works with, and the versions of TLS.

use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{CipherSuite, SupportedProtocolVersion};

/// A version of TLS. Older ones than 1.2 are never spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246), with the cipher suites that HTTP/2 admits (RFC 9113 §9.2.2).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl TlsVersion {
    /// This version and all that are newer.
    pub(super) fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => rustls::ALL_VERSIONS,
            Self::Tls13 => TLS13_ALONE,
        }
    }
}

static TLS13_ALONE: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// aws-lc-rs, with AES-128-GCM before AES-256-GCM, as Go and BoringSSL have it: it is a tenth faster, and the weakest
/// part of no connection.
pub(super) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let provider = PROVIDER.get_or_init(|| {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.sort_by_key(|suite| match suite.suite() {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => 0,
            CipherSuite::TLS13_AES_256_GCM_SHA384 => 1,
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => 2,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => 3,
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => 4,
            _ => 5,
        });
        Arc::new(provider)
    });
    Arc::clone(provider)
}
