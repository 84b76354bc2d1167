//! TLS cipher suites.

use aws_lc_rs::{aead, hkdf, hmac};

/// The parts of a cipher suite that record decryption needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) cipher: Cipher,
    pub(super) hash: Hash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
}

impl Suite {
    /// Looks up a suite by number (IANA TLS Cipher Suites): TLS 1.3, and TLS 1.2 with AEAD.
    pub(super) fn of(number: u16) -> Option<Self> {
        let (cipher, hash) = match number {
            0x1301 | 0x009c | 0x009e | 0xc02b | 0xc02f => (Cipher::Aes128Gcm, Hash::Sha256),
            0x1302 | 0x009d | 0x009f | 0xc02c | 0xc030 => (Cipher::Aes256Gcm, Hash::Sha384),
            0x1303 | 0xcca8 | 0xcca9 | 0xccaa => (Cipher::ChaCha20Poly1305, Hash::Sha256),
            _ => return None,
        };
        Some(Self { cipher, hash })
    }
}

impl Cipher {
    pub(super) fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }
}

impl Hash {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    pub(super) fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Sha256 => hkdf::HKDF_SHA256,
            Self::Sha384 => hkdf::HKDF_SHA384,
        }
    }

    pub(super) fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
        }
    }
}
