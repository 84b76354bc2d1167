//! Detects the protocol of a connection from its first bytes.

use std::net::SocketAddr;
use std::time::Duration;

use thalweg_http2::PREFACE;

use crate::capture::call::{End, Peer};
use crate::capture::exchange::{Exchange, Shared};
use crate::capture::reassembly::Piece;
use crate::capture::tls::{Closed, KeyLog, Plain, Session};

/// Maximum bytes buffered for detection. A server may send first.
const HELD_MAX: usize = 16 << 10;

/// Protocol of a connection.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// Not detected yet.
    Unknown(Begin),
    Http2(Box<Exchange>),
    Tls(Box<Tls>),
    /// Something else, such as HTTP/1.1.
    Other,
    /// The start of the connection was not captured.
    BegunBefore,
}

/// A TLS connection and its content.
#[derive(Debug)]
pub(crate) struct Tls {
    session: Session,
    inside: Protocol,
}

/// Data of both directions before detection.
#[derive(Debug, Default)]
pub(crate) struct Begin {
    pieces: Vec<(usize, Duration, Vec<u8>)>,
    len: usize,
    /// First bytes of each direction, for detection.
    first: [Vec<u8>; 2],
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) addresses: [SocketAddr; 2],
    /// Index of the client, if known.
    pub(crate) client: Option<usize>,
    /// Whether the first packets were captured.
    pub(crate) has_begin: bool,
}

impl Protocol {
    /// Processes data from the end with index `from`.
    pub(crate) fn take(&mut self, ends: &mut Ends, from: usize, piece: Piece<'_>, shared: &mut Shared<'_>) {
        if let Piece::Gap(len) = piece {
            shared.summary.gaps += 1;
            shared.summary.gap_bytes += len;
        }
        self.follow(ends, from, piece, shared);
    }

    fn follow(&mut self, ends: &mut Ends, from: usize, piece: Piece<'_>, shared: &mut Shared<'_>) {
        match (&mut *self, piece) {
            (Self::Http2(exchange), Piece::Bytes(at, bytes)) => {
                exchange.take(ends.peer(from), at, bytes, shared);
            }
            (Self::Tls(tls), piece) => tls.take(ends, from, piece, shared),
            (Self::Http2(exchange), Piece::Gap(len)) => exchange.gap(ends.peer(from), len),
            // Without its first bytes the connection cannot be identified.
            (Self::Unknown(_), Piece::Gap(_)) => *self = Self::BegunBefore,
            (Self::Unknown(begin), Piece::Bytes(at, bytes)) => {
                begin.pieces.push((from, at, bytes.to_vec()));
                begin.len += bytes.len();
                let first = &mut begin.first[from];
                first.extend(bytes.iter().take(PREFACE.len() - first.len()));
                let Some(decided) = begin.decided(ends, shared.keys) else { return };
                let Self::Unknown(begin) = std::mem::replace(self, decided) else { return };
                match self {
                    Self::Http2(exchange) => exchange_begun(exchange, begin, *ends, shared),
                    Self::Tls(tls) => {
                        for (from, at, bytes) in begin.pieces {
                            tls.take(ends, from, Piece::Bytes(at, &bytes), shared);
                        }
                    }
                    _ => {}
                }
            }
            (Self::Other | Self::BegunBefore, _) => {}
        }
    }

    /// Ends and counts the connection.
    pub(crate) fn end(&mut self, end: End, ends: &Ends, shared: &mut Shared<'_>) {
        match self {
            Self::Http2(exchange) => exchange.end(end, shared),
            Self::Tls(tls) if tls.is_open() => return tls.inside.end(end, ends, shared),
            _ => {}
        }
        let summary = &mut *shared.summary;
        let count = match self {
            Self::Http2(_) => &mut summary.http2,
            Self::Tls(tls) => {
                if let Some(Closed::Other(why)) = tls.session.closed() {
                    summary.tls_closed = Some(why.clone());
                }
                &mut summary.tls
            }
            Self::Other => &mut summary.other,
            Self::Unknown(begin) if begin.len == 0 => &mut summary.silent,
            Self::Unknown(_) if ends.has_begin => &mut summary.other,
            Self::BegunBefore | Self::Unknown(_) => &mut summary.begun_before,
        };
        *count += 1;
    }
}

impl Tls {
    fn new(keys: KeyLog) -> Self {
        Self { session: Session::new(keys), inside: Protocol::Unknown(Begin::default()) }
    }

    fn take(&mut self, ends: &mut Ends, from: usize, piece: Piece<'_>, shared: &mut Shared<'_>) {
        let was_closed = self.session.closed().is_some();
        match piece {
            Piece::Bytes(at, bytes) => {
                let mut plain = Vec::new();
                self.session.take(from, at, bytes, &mut plain);
                for Plain { from, at, bytes } in plain {
                    self.inside.follow(ends, from, Piece::Bytes(at, &bytes), shared);
                }
            }
            Piece::Gap(len) => {
                self.session.gap(from);
                if self.is_open() {
                    self.inside.follow(ends, from, Piece::Gap(len), shared);
                }
            }
        }
        if let (false, Some(Closed::Other(why)), Protocol::Http2(exchange)) =
            (was_closed, self.session.closed(), &mut self.inside)
        {
            for peer in [Peer::Client, Peer::Server] {
                exchange.lose(peer, why);
            }
        }
    }

    /// Returns whether any data was decrypted.
    fn is_open(&self) -> bool {
        !matches!(&self.inside, Protocol::Unknown(begin) if begin.len == 0)
    }
}

impl Ends {
    fn peer(&self, index: usize) -> Peer {
        if self.client == Some(index) { Peer::Client } else { Peer::Server }
    }
}

impl Begin {
    /// Returns the protocol, once it is certain.
    fn decided(&self, ends: &mut Ends, keys: &KeyLog) -> Option<Protocol> {
        for (index, first) in self.first.iter().enumerate() {
            let may_be_client = ends.client.is_none_or(|client| client == index);
            if may_be_client && first.starts_with(PREFACE) {
                ends.client = Some(index);
                let [client, server] = [ends.addresses[index], ends.addresses[1 - index]];
                return Some(Protocol::Http2(Box::new(Exchange::new(client, server))));
            }
        }
        // TLS records of a handshake, or of data on an older connection.
        if self.first.iter().any(|first| matches!(first[..], [0x14..=0x17, 3, 0..=4, ..])) {
            return Some(Protocol::Tls(Box::new(Tls::new(keys.clone()))));
        }
        let may_come = |index: usize| {
            ends.client.is_none_or(|client| client == index) && PREFACE.starts_with(&self.first[index])
        };
        let may_be_tls = self.first.iter().any(|first| matches!(first[..], [0x14..=0x17] | [0x14..=0x17, 3]));
        let is_too_much = self.len > HELD_MAX;
        if (may_come(0) || may_come(1) || may_be_tls) && !is_too_much {
            return None;
        }
        Some(if ends.has_begin { Protocol::Other } else { Protocol::BegunBefore })
    }
}

/// Passes buffered data to the exchange.
fn exchange_begun(exchange: &mut Exchange, begin: Begin, ends: Ends, shared: &mut Shared<'_>) {
    let mut preface = PREFACE.len();
    for (from, at, bytes) in begin.pieces {
        let peer = ends.peer(from);
        let skipped = if peer == Peer::Client { preface.min(bytes.len()) } else { 0 };
        preface -= skipped;
        exchange.take(peer, at, &bytes[skipped..], shared);
    }
}
