//! Detects the protocol of a connection from its first bytes.

use std::net::SocketAddr;
use std::time::Duration;

use thalweg_http2::PREFACE;

use crate::capture::call::{CallEnd, Endpoint};
use crate::capture::http2::{Http2Connection, Shared};
use crate::capture::reassembly::Piece;
use crate::capture::tls::{KeyLog, NotDecrypted, Plaintext, Session};

/// Maximum bytes buffered for detection. A server may send first.
const DETECTION_BYTES_MAX: usize = 16 << 10;

/// Protocol of a connection.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// Not detected yet.
    Unknown(Undetected),
    Http2(Box<Http2Connection>),
    Tls(Box<Tls>),
    /// Something else, such as HTTP/1.1.
    Other,
    /// The start of the connection was not captured.
    StartMissing,
}

/// A TLS connection and its content.
#[derive(Debug)]
pub(crate) struct Tls {
    session: Session,
    decrypted: Protocol,
}

/// Data of both directions before detection.
#[derive(Debug, Default)]
pub(crate) struct Undetected {
    pieces: Vec<(usize, Duration, Vec<u8>)>,
    len: usize,
    /// First bytes of each direction, for detection.
    first: [Vec<u8>; 2],
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    pub(crate) addresses: [SocketAddr; 2],
    /// Index of the client, if known.
    pub(crate) client: Option<usize>,
    /// Whether the first packets were captured.
    pub(crate) has_start: bool,
}

impl Protocol {
    /// Processes data from the end with index `from`.
    pub(crate) fn push(
        &mut self,
        endpoints: &mut Endpoints,
        from: usize,
        piece: Piece<'_>,
        shared: &mut Shared<'_>,
    ) {
        if let Piece::Gap(len) = piece {
            shared.summary.gaps += 1;
            shared.summary.gap_bytes += len;
        }
        self.forward(endpoints, from, piece, shared);
    }

    fn forward(&mut self, endpoints: &mut Endpoints, from: usize, piece: Piece<'_>, shared: &mut Shared<'_>) {
        match (&mut *self, piece) {
            (Self::Http2(connection), Piece::Bytes(at, bytes)) => {
                connection.push(endpoints.peer(from), at, bytes, shared);
            }
            (Self::Tls(tls), piece) => tls.push(endpoints, from, piece, shared),
            (Self::Http2(connection), Piece::Gap(len)) => connection.gap(endpoints.peer(from), len),
            // Without its first bytes the connection cannot be identified.
            (Self::Unknown(_), Piece::Gap(_)) => *self = Self::StartMissing,
            (Self::Unknown(undetected), Piece::Bytes(at, bytes)) => {
                undetected.pieces.push((from, at, bytes.to_vec()));
                undetected.len += bytes.len();
                let first = &mut undetected.first[from];
                first.extend(bytes.iter().take(PREFACE.len() - first.len()));
                let Some(detected) = undetected.detect(endpoints, shared.keys) else { return };
                let Self::Unknown(undetected) = std::mem::replace(self, detected) else { return };
                match self {
                    Self::Http2(connection) => decode_buffered(connection, undetected, *endpoints, shared),
                    Self::Tls(tls) => {
                        for (from, at, bytes) in undetected.pieces {
                            tls.push(endpoints, from, Piece::Bytes(at, &bytes), shared);
                        }
                    }
                    _ => {}
                }
            }
            (Self::Other | Self::StartMissing, _) => {}
        }
    }

    /// Ends and counts the connection.
    pub(crate) fn end(&mut self, end: CallEnd, endpoints: &Endpoints, shared: &mut Shared<'_>) {
        match self {
            Self::Http2(connection) => connection.end(end, shared),
            Self::Tls(tls) if tls.is_decrypted() => return tls.decrypted.end(end, endpoints, shared),
            _ => {}
        }
        let summary = &mut *shared.summary;
        let count = match self {
            Self::Http2(_) => &mut summary.http2,
            Self::Tls(tls) => {
                if let Some(NotDecrypted::Other(why)) = tls.session.not_decrypted() {
                    summary.tls_not_decrypted = Some(why.clone());
                }
                &mut summary.tls
            }
            Self::Other => &mut summary.other,
            Self::Unknown(undetected) if undetected.len == 0 => &mut summary.silent,
            Self::Unknown(_) if endpoints.has_start => &mut summary.other,
            Self::StartMissing | Self::Unknown(_) => &mut summary.started_before,
        };
        *count += 1;
    }
}

impl Tls {
    fn new(keys: KeyLog) -> Self {
        Self { session: Session::new(keys), decrypted: Protocol::Unknown(Undetected::default()) }
    }

    fn push(&mut self, endpoints: &mut Endpoints, from: usize, piece: Piece<'_>, shared: &mut Shared<'_>) {
        let was_given_up = self.session.not_decrypted().is_some();
        match piece {
            Piece::Bytes(at, bytes) => {
                let mut plaintext = Vec::new();
                self.session.push(from, at, bytes, &mut plaintext);
                for Plaintext { from, at, bytes } in plaintext {
                    self.decrypted.forward(endpoints, from, Piece::Bytes(at, &bytes), shared);
                }
            }
            Piece::Gap(len) => {
                self.session.gap(from);
                if self.is_decrypted() {
                    self.decrypted.forward(endpoints, from, Piece::Gap(len), shared);
                }
            }
        }
        if let (false, Some(NotDecrypted::Other(why)), Protocol::Http2(connection)) =
            (was_given_up, self.session.not_decrypted(), &mut self.decrypted)
        {
            for peer in [Endpoint::Client, Endpoint::Server] {
                connection.stop_decoding(peer, why);
            }
        }
    }

    /// Returns whether any data was decrypted.
    fn is_decrypted(&self) -> bool {
        !matches!(&self.decrypted, Protocol::Unknown(undetected) if undetected.len == 0)
    }
}

impl Endpoints {
    fn peer(&self, index: usize) -> Endpoint {
        if self.client == Some(index) { Endpoint::Client } else { Endpoint::Server }
    }
}

impl Undetected {
    /// Returns the protocol, once it is certain.
    fn detect(&self, endpoints: &mut Endpoints, keys: &KeyLog) -> Option<Protocol> {
        for (index, first) in self.first.iter().enumerate() {
            let may_be_client = endpoints.client.is_none_or(|client| client == index);
            if may_be_client && first.starts_with(PREFACE) {
                endpoints.client = Some(index);
                let [client, server] = [endpoints.addresses[index], endpoints.addresses[1 - index]];
                return Some(Protocol::Http2(Box::new(Http2Connection::new(client, server))));
            }
        }
        // TLS records of a handshake, or of data on an older connection.
        if self.first.iter().any(|first| matches!(first[..], [0x14..=0x17, 3, 0..=4, ..])) {
            return Some(Protocol::Tls(Box::new(Tls::new(keys.clone()))));
        }
        let may_come = |index: usize| {
            endpoints.client.is_none_or(|client| client == index) && PREFACE.starts_with(&self.first[index])
        };
        let may_be_tls = self.first.iter().any(|first| matches!(first[..], [0x14..=0x17] | [0x14..=0x17, 3]));
        let is_too_much = self.len > DETECTION_BYTES_MAX;
        if (may_come(0) || may_come(1) || may_be_tls) && !is_too_much {
            return None;
        }
        Some(if endpoints.has_start { Protocol::Other } else { Protocol::StartMissing })
    }
}

/// Passes buffered data to the exchange.
fn decode_buffered(
    connection: &mut Http2Connection,
    undetected: Undetected,
    endpoints: Endpoints,
    shared: &mut Shared<'_>,
) {
    let mut preface = PREFACE.len();
    for (from, at, bytes) in undetected.pieces {
        let peer = endpoints.peer(from);
        let skipped = if peer == Endpoint::Client { preface.min(bytes.len()) } else { 0 };
        preface -= skipped;
        connection.push(peer, at, &bytes[skipped..], shared);
    }
}
