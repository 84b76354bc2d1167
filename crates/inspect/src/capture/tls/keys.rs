//! Keys of one direction: derivation and record decryption.

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};

use super::suite::{Cipher, Suite};

/// Length of a record header: type, version and length.
pub(super) const RECORD_HEADER_LEN: usize = 5;
/// AES-GCM of TLS 1.2: length of the secret part of the nonce. The rest is in each record (RFC 5288 §3).
const SALT_LEN: usize = 4;
const EXPLICIT_LEN: usize = NONCE_LEN - SALT_LEN;
const TAG_LEN: usize = 16;

/// Keys of one direction.
#[derive(Debug)]
pub(super) struct Keys {
    suite: Suite,
    key: LessSafeKey,
    /// For the whole nonce; in AES-GCM of TLS 1.2 its secret part.
    iv: Vec<u8>,
    sequence: u64,
    /// TLS 1.3 traffic secret, from which updated keys are derived.
    secret: Vec<u8>,
}

impl Keys {
    /// Derives TLS 1.3 keys from a traffic secret (RFC 8446 §7.3).
    pub(super) fn of_secret(suite: Suite, secret: &[u8]) -> Option<Self> {
        let key = expand_label(suite, secret, b"key", suite.cipher.algorithm().key_len())?;
        let iv = expand_label(suite, secret, b"iv", NONCE_LEN)?;
        Self::new(suite, &key, iv, secret.to_vec())
    }

    /// Derives the keys after a KeyUpdate (RFC 8446 §7.2).
    pub(super) fn updated(&self) -> Option<Self> {
        let secret = expand_label(self.suite, &self.secret, b"traffic upd", self.suite.hash.len())?;
        Self::of_secret(self.suite, &secret)
    }

    /// Derives the TLS 1.2 keys of client and server (RFC 5246 §6.3).
    pub(super) fn of_master(
        suite: Suite,
        master: &[u8],
        client_random: &[u8; 32],
        server_random: &[u8; 32],
    ) -> Option<[Self; 2]> {
        let key_len = suite.cipher.algorithm().key_len();
        let iv_len = if suite.cipher == Cipher::ChaCha20Poly1305 { NONCE_LEN } else { SALT_LEN };
        let seed = [&b"key expansion"[..], server_random, client_random].concat();
        let block = p_hash(suite, master, &seed, 2 * (key_len + iv_len));
        let (keys, ivs) = block.split_at(2 * key_len);
        let keys = |side: usize| {
            Self::new(
                suite,
                &keys[side * key_len..][..key_len],
                ivs[side * iv_len..][..iv_len].to_vec(),
                Vec::new(),
            )
        };
        Some([keys(0)?, keys(1)?])
    }

    fn new(suite: Suite, key: &[u8], iv: Vec<u8>, secret: Vec<u8>) -> Option<Self> {
        let key = LessSafeKey::new(UnboundKey::new(suite.cipher.algorithm(), key).ok()?);
        Some(Self { suite, key, iv, sequence: 0, secret })
    }

    /// Decrypts a record. Returns its type and bytes, or `None` if the keys do not match.
    pub(super) fn open(&mut self, record: &[u8], is_1_3: bool) -> Option<(u8, Vec<u8>)> {
        let (head, sealed) = record.split_first_chunk::<RECORD_HEADER_LEN>()?;
        let sequence = self.sequence.to_be_bytes();
        let mut nonce = [0; NONCE_LEN];
        let mut sealed = sealed;
        if self.iv.len() == SALT_LEN {
            let (explicit, rest) = sealed.split_first_chunk::<EXPLICIT_LEN>()?;
            nonce[..SALT_LEN].copy_from_slice(&self.iv);
            nonce[SALT_LEN..].copy_from_slice(explicit);
            sealed = rest;
        } else {
            nonce[SALT_LEN..].copy_from_slice(&sequence);
            nonce.iter_mut().zip(&self.iv).for_each(|(byte, iv)| *byte ^= iv);
        }
        let aad = if is_1_3 {
            head.to_vec()
        } else {
            // RFC 5246 §6.2.3.3, with the plaintext length.
            let len = (sealed.len().checked_sub(TAG_LEN)? as u16).to_be_bytes();
            [&sequence[..], &head[..3], &len].concat()
        };
        let mut bytes = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let len = self.key.open_in_place(nonce, Aad::from(&aad), &mut bytes).ok()?.len();
        bytes.truncate(len);
        self.sequence += 1;
        if !is_1_3 {
            return Some((head[0], bytes));
        }
        // The type is the last byte before padding (RFC 8446 §5.4).
        let end = bytes.iter().rposition(|byte| *byte != 0)?;
        let kind = bytes[end];
        bytes.truncate(end);
        Some((kind, bytes))
    }
}

/// HKDF-Expand-Label with an empty context (RFC 8446 §7.1).
fn expand_label(suite: Suite, secret: &[u8], label: &[u8], len: usize) -> Option<Vec<u8>> {
    struct Len(usize);
    impl hkdf::KeyType for Len {
        fn len(&self) -> usize {
            self.0
        }
    }
    const PREFIX: &[u8] = b"tls13 ";
    let label_len = [(PREFIX.len() + label.len()) as u8];
    let out_len = (len as u16).to_be_bytes();
    let info = [&out_len[..], &label_len, PREFIX, label, &[0]];
    let mut out = vec![0; len];
    let secret = hkdf::Prk::new_less_safe(suite.hash.hkdf(), secret);
    secret.expand(&info, Len(len)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

/// TLS 1.2 PRF (RFC 5246 §5). `seed` starts with the label.
fn p_hash(suite: Suite, secret: &[u8], seed: &[u8], len: usize) -> Vec<u8> {
    let key = hmac::Key::new(suite.hash.hmac(), secret);
    let mut out = Vec::new();
    let mut a = hmac::sign(&key, seed);
    while out.len() < len {
        out.extend_from_slice(hmac::sign(&key, &[a.as_ref(), seed].concat()).as_ref());
        a = hmac::sign(&key, a.as_ref());
    }
    out.truncate(len);
    out
}
