//! Handshake messages that affect record decryption.

/// A message that affects record decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    ClientHello { random: [u8; 32] },
    ServerHello { random: [u8; 32], suite: u16, is_1_3: bool },
    Finished,
    KeyUpdate,
    Other,
}

/// Handshake messages of one side.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    pending: Vec<u8>,
}

/// Type and length.
const HEADER_LEN: usize = 4;
/// Maximum bytes kept. A certificate chain has a few KiB.
const PENDING_LEN_MAX: usize = 256 << 10;
/// SHA-256 of "HelloRetryRequest", sent in place of a random (RFC 8446 §4.1.3).
const HELLO_RETRY_REQUEST_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
const SUPPORTED_VERSIONS: u16 = 43;
const TLS_1_3: [u8; 2] = [3, 4];

impl Handshake {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.pending.len() < PENDING_LEN_MAX {
            self.pending.extend_from_slice(bytes);
        }
    }

    pub(super) fn next(&mut self) -> Option<Message> {
        let [kind, l0, l1, l2] = *self.pending.first_chunk::<HEADER_LEN>()?;
        let end = HEADER_LEN + u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let body = self.pending.get(HEADER_LEN..end)?;
        let message = match kind {
            1 => client_hello(body),
            2 => server_hello(body),
            20 => Some(Message::Finished),
            24 => Some(Message::KeyUpdate),
            _ => None,
        };
        self.pending.drain(..end);
        Some(message.unwrap_or(Message::Other))
    }
}

fn client_hello(body: &[u8]) -> Option<Message> {
    Some(Message::ClientHello { random: *body.get(2..)?.first_chunk()? })
}

fn server_hello(body: &[u8]) -> Option<Message> {
    let random: [u8; 32] = *body.get(2..)?.first_chunk()?;
    if random == HELLO_RETRY_REQUEST_RANDOM {
        return None;
    }
    let rest = body.get(34..)?;
    let rest = rest.get(1 + usize::from(*rest.first()?)..)?;
    let (suite, rest) = rest.split_first_chunk::<2>()?;
    // Skips the compression method and the length of extensions.
    let mut extensions = rest.get(3..).unwrap_or_default();
    let mut is_1_3 = false;
    while let Some(([k0, k1, l0, l1], rest)) = extensions.split_first_chunk::<4>() {
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*l0, *l1])))?;
        is_1_3 |= u16::from_be_bytes([*k0, *k1]) == SUPPORTED_VERSIONS && value == TLS_1_3;
        extensions = rest;
    }
    Some(Message::ServerHello { random, suite: u16::from_be_bytes(*suite), is_1_3 })
}
