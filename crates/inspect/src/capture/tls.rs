//! Decrypts TLS connections with the secrets of a key log: TLS 1.3 (RFC 8446) and AEAD suites of TLS 1.2 (RFC 5246).

mod handshake;
mod key_log;
mod keys;
mod suite;

use std::collections::VecDeque;
use std::time::Duration;

pub use key_log::{KeyLog, KeyLogError};

use handshake::{Handshake, Message};
use key_log::Secrets;
use keys::{Keys, RECORD_HEADER_LEN};
use suite::Suite;

/// 2^14 bytes plus maximum expansion (RFC 5246 §6.2.3).
const RECORD_LEN_MAX: usize = (16 << 10) + 2048;
/// Maximum bytes waiting for the other side's handshake, which may be captured later.
const BUFFERED_LEN_MAX: usize = 256 << 10;

const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Why a connection cannot be decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotDecrypted {
    /// The key log lacks its secrets.
    NoKeys,
    /// Another reason.
    Other(String),
}

/// Decrypted bytes of one side.
#[derive(Debug)]
pub(crate) struct Plaintext {
    pub(crate) from: usize,
    pub(crate) at: Duration,
    pub(crate) bytes: Vec<u8>,
}

/// State of decrypting a connection.
#[derive(Debug)]
pub(crate) struct Session {
    keys: KeyLog,
    directions: [TlsDirection; 2],
    /// Index of the client and the random of its ClientHello.
    client: Option<(usize, [u8; 32])>,
    negotiated: Option<Negotiated>,
    not_decrypted: Option<NotDecrypted>,
}

/// One direction.
#[derive(Debug, Default)]
struct TlsDirection {
    /// Incomplete records, or records that wait for the other side.
    buffered: VecDeque<u8>,
    received_at: Duration,
    handshake: Handshake,
    keys: Option<Keys>,
    /// TLS 1.2: whether records are encrypted from now on.
    is_encrypted: bool,
    /// Whether bytes are missing, so that later records cannot be found.
    has_gap: bool,
}

#[derive(Clone, Debug)]
struct Negotiated {
    suite: Suite,
    is_1_3: bool,
    server_random: [u8; 32],
    secrets: Secrets,
}

impl Session {
    pub(crate) fn new(keys: KeyLog) -> Self {
        Self {
            keys,
            directions: <[TlsDirection; 2]>::default(),
            client: None,
            negotiated: None,
            not_decrypted: None,
        }
    }

    /// Returns why decryption stopped, if it did.
    pub(crate) fn not_decrypted(&self) -> Option<&NotDecrypted> {
        self.not_decrypted.as_ref()
    }

    /// Processes bytes from `from` and adds decrypted data.
    pub(crate) fn push(&mut self, from: usize, at: Duration, bytes: &[u8], plaintext: &mut Vec<Plaintext>) {
        if self.not_decrypted.is_some() || self.directions[from].has_gap {
            return;
        }
        self.directions[from].buffered.extend(bytes);
        self.directions[from].received_at = at;
        // A message of one side may let the other proceed.
        for side in [from, 1 - from, from] {
            if let Err(not_decrypted) = self.records(side, plaintext) {
                self.give_up(not_decrypted);
                return;
            }
        }
        if self.directions.iter().any(|side| side.buffered.len() > BUFFERED_LEN_MAX) {
            self.give_up(NotDecrypted::Other("incomplete handshake".to_owned()));
        }
    }

    /// Handles missing bytes of `from`.
    pub(crate) fn gap(&mut self, from: usize) {
        if self.negotiated.is_none() {
            self.give_up(NotDecrypted::Other("incomplete handshake in the capture".to_owned()));
        } else {
            self.directions[from] = TlsDirection { has_gap: true, ..TlsDirection::default() };
        }
    }

    fn give_up(&mut self, not_decrypted: NotDecrypted) {
        self.not_decrypted = Some(not_decrypted);
        self.directions = <[TlsDirection; 2]>::default();
    }

    fn records(&mut self, from: usize, plaintext: &mut Vec<Plaintext>) -> Result<(), NotDecrypted> {
        loop {
            let side = &mut self.directions[from];
            let Some(record) = side.next_record()? else { return Ok(()) };
            let is_encrypted = record[0] == APPLICATION_DATA || side.is_encrypted;
            if is_encrypted && record[0] != CHANGE_CIPHER_SPEC {
                let Some(negotiated) = &self.negotiated else {
                    if self.client.is_none() {
                        return Err(NotDecrypted::Other("started before the capture".to_owned()));
                    }
                    // ServerHello comes later in the capture.
                    side.put_back(&record);
                    return Ok(());
                };
                let opened = side.keys.as_mut().and_then(|keys| keys.open(&record, negotiated.is_1_3));
                let (kind, bytes) =
                    opened.ok_or_else(|| NotDecrypted::Other("failed to decrypt a record".to_owned()))?;
                match kind {
                    APPLICATION_DATA if !bytes.is_empty() => {
                        plaintext.push(Plaintext { from, at: side.received_at, bytes });
                    }
                    HANDSHAKE if negotiated.is_1_3 => self.encrypted_handshake(from, &bytes)?,
                    _ => {}
                }
                continue;
            }
            match record[0] {
                HANDSHAKE => self.plain_handshake(from, &record[RECORD_HEADER_LEN..])?,
                // TLS 1.3 uses it only for old intermediaries (RFC 8446 §D.4).
                CHANGE_CIPHER_SPEC => {
                    let is_1_2 = self.negotiated.as_ref().is_some_and(|negotiated| !negotiated.is_1_3);
                    if self.negotiated.is_none() {
                        // A resuming client may precede ServerHello in the capture.
                        self.directions[from].put_back(&record);
                        return Ok(());
                    }
                    self.directions[from].is_encrypted = is_1_2;
                }
                _ => {}
            }
        }
    }

    fn plain_handshake(&mut self, from: usize, bytes: &[u8]) -> Result<(), NotDecrypted> {
        self.directions[from].handshake.push(bytes);
        while let Some(message) = self.directions[from].handshake.next() {
            match message {
                Message::ClientHello { random } => self.client = Some((from, random)),
                Message::ServerHello { random, suite, is_1_3 } => {
                    let Some((client, client_random)) = self.client.filter(|(client, _)| *client != from)
                    else {
                        return Err(NotDecrypted::Other("started before the capture".to_owned()));
                    };
                    let suite = Suite::of(suite).ok_or_else(|| {
                        NotDecrypted::Other(format!("unsupported cipher suite 0x{suite:04x}"))
                    })?;
                    let secrets = self.keys.of(&client_random).ok_or(NotDecrypted::NoKeys)?.clone();
                    let negotiated = Negotiated { suite, is_1_3, server_random: random, secrets };
                    let keys = negotiated.first_keys(&client_random).ok_or(NotDecrypted::NoKeys)?;
                    let [client_keys, server_keys] = keys;
                    self.directions[client].keys = Some(client_keys);
                    self.directions[1 - client].keys = Some(server_keys);
                    self.negotiated = Some(negotiated);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles encrypted handshake messages of TLS 1.3.
    fn encrypted_handshake(&mut self, from: usize, bytes: &[u8]) -> Result<(), NotDecrypted> {
        let (Some(negotiated), Some((client, _))) = (&self.negotiated, self.client) else { return Ok(()) };
        let side = &mut self.directions[from];
        side.handshake.push(bytes);
        while let Some(message) = side.handshake.next() {
            match message {
                Message::Finished => {
                    let secrets = &negotiated.secrets;
                    let secret =
                        if from == client { &secrets.client_traffic } else { &secrets.server_traffic };
                    let secret = secret.as_ref().ok_or(NotDecrypted::NoKeys)?;
                    side.keys = Some(Keys::of_secret(negotiated.suite, secret).ok_or(NotDecrypted::NoKeys)?);
                }
                Message::KeyUpdate => {
                    let next = side.keys.as_ref().and_then(Keys::updated);
                    side.keys =
                        Some(next.ok_or_else(|| NotDecrypted::Other("invalid key update".to_owned()))?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Negotiated {
    /// Returns the first keys of client and server.
    fn first_keys(&self, client_random: &[u8; 32]) -> Option<[Keys; 2]> {
        let Self { suite, secrets, .. } = self;
        if self.is_1_3 {
            let keys = |secret: &Option<Vec<u8>>| Keys::of_secret(*suite, secret.as_ref()?);
            return Some([keys(&secrets.client_handshake)?, keys(&secrets.server_handshake)?]);
        }
        Keys::of_master(*suite, secrets.master.as_ref()?, client_random, &self.server_random)
    }
}

impl TlsDirection {
    /// Removes and returns the next complete record with its header.
    fn next_record(&mut self) -> Result<Option<Vec<u8>>, NotDecrypted> {
        let byte = |at: usize| self.buffered.get(at).copied().map(usize::from);
        let (Some(high), Some(low)) = (byte(3), byte(4)) else { return Ok(None) };
        let len = high << 8 | low;
        if len > RECORD_LEN_MAX {
            return Err(NotDecrypted::Other("invalid record length".to_owned()));
        }
        let end = RECORD_HEADER_LEN + len;
        Ok((self.buffered.len() >= end).then(|| self.buffered.drain(..end).collect()))
    }

    fn put_back(&mut self, record: &[u8]) {
        for byte in record.iter().rev() {
            self.buffered.push_front(*byte);
        }
    }
}
