//! The end of a connection: GOAWAY (RFC 9113 §6.8), draining, deadlines.

use std::time::Instant;

use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode, Initiator};
use crate::frame::{self, GoAway};
use crate::stream::StreamId;

/// What the PING between the two GOAWAYs of a drain carries.
const DRAIN_PING: [u8; 8] = *b"thalweg\0";

/// Whether the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    No,
    ByOwner,
    ByFault(ConnectionError),
}

/// How far a drain has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    No,
    /// GOAWAY(2^31 - 1) and a PING are sent: requests that were on their way before the client saw them are
    /// still served.
    AwaitingPong {
        deadline: Option<Instant>,
    },
    /// The last GOAWAY is sent; streams above it are not served.
    Last(StreamId),
}

impl Connection {
    /// Lets the connection end when its streams have ended.
    ///
    /// A server sends GOAWAY(2^31 - 1) and a PING; when the PING is acknowledged, or after
    /// [`Config::drain_timeout`](crate::Config::drain_timeout), GOAWAY with the last stream that it serves. A
    /// client opens no more streams.
    pub fn drain(&mut self, now: Instant) {
        if self.is_closed() || self.drain != Drain::No {
            return;
        }
        match self.role {
            Role::Client => self.send_last_goaway(),
            Role::Server => {
                self.emit_goaway(StreamId::MAX, ErrorCode::NoError, b"");
                frame::ping(false, DRAIN_PING, self.output.buffer());
                self.drain = Drain::AwaitingPong { deadline: now.checked_add(self.config.drain_timeout) };
            }
        }
    }

    /// Ends the connection now: GOAWAY goes out, all streams are gone, nothing more is accepted. `debug` is
    /// for a person who looks at the wire.
    pub fn close(&mut self, code: ErrorCode, debug: &[u8]) {
        self.shut(code, debug, Closed::ByOwner);
    }

    /// Whether nothing is left to do: closed, or going away (either side) without streams. Flush, then close
    /// the socket.
    pub fn is_drained(&self) -> bool {
        let going_away = matches!(self.drain, Drain::Last(_)) || self.peer_going_away();
        self.is_closed() || (going_away && self.streams.len() == 0 && self.pending.is_empty())
    }

    /// Whether the peer sent GOAWAY.
    pub fn peer_going_away(&self) -> bool {
        self.peer_last_stream.is_some()
    }

    /// Whether the connection is over: [`close`](Connection::close) was called, or the peer broke the
    /// protocol.
    pub fn is_closed(&self) -> bool {
        self.closed != Closed::No
    }

    /// When [`handle_timeout`](Connection::handle_timeout) is to be called.
    pub fn timeout(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        let drain_deadline = match self.drain {
            Drain::AwaitingPong { deadline } => deadline,
            Drain::No | Drain::Last(_) => None,
        };
        match (self.settings_deadline, drain_deadline) {
            (Some(settings), Some(drain)) => Some(settings.min(drain)),
            (settings, drain) => settings.or(drain),
        }
    }

    /// Does what is due at `now`; nothing if it is called early.
    ///
    /// # Errors
    ///
    /// The peer did not acknowledge SETTINGS in time. GOAWAY is in the output.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if self.is_closed() {
            return Ok(());
        }
        if self.settings_deadline.is_some_and(|deadline| deadline <= now) {
            let error =
                ConnectionError::local(ErrorCode::SettingsTimeout, "SETTINGS were not acknowledged in time");
            self.fail(error);
            return Err(error);
        }
        if matches!(self.drain, Drain::AwaitingPong { deadline: Some(deadline) } if deadline <= now) {
            self.send_last_goaway();
        }
        Ok(())
    }

    pub(super) fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Whether a stream was opened after the GOAWAY that says that it is not served.
    pub(super) fn is_beyond_goaway(&self, stream: StreamId) -> bool {
        matches!(self.drain, Drain::Last(last) if stream > last)
    }

    /// The acknowledgement of a PING came: was it the drain's? It may come after the wait for it was over; the owner did
    /// not send that PING then either.
    pub(super) fn finish_drain_on_pong(&mut self, payload: [u8; 8]) -> bool {
        if payload != DRAIN_PING || self.role == Role::Client || self.drain == Drain::No {
            return false;
        }
        if matches!(self.drain, Drain::AwaitingPong { .. }) {
            self.send_last_goaway();
        }
        true
    }

    /// Ends the connection for a fault of the peer's.
    #[cold]
    pub(super) fn fail(&mut self, error: ConnectionError) {
        debug_assert_eq!(error.initiator, Initiator::Local);
        self.shut(error.code, error.reason.as_bytes(), Closed::ByFault(error));
    }

    fn shut(&mut self, code: ErrorCode, debug: &[u8], closed: Closed) {
        if self.is_closed() {
            return;
        }
        self.closed = closed;
        self.emit_goaway(self.last_served(), code, debug);
        self.streams.clear();
        self.queues.clear();
        self.pending.clear();
    }

    fn send_last_goaway(&mut self) {
        let last = self.last_served();
        self.emit_goaway(last, ErrorCode::NoError, b"");
        self.drain = Drain::Last(last);
    }

    /// The last stream of the peer's that is or was served.
    fn last_served(&self) -> StreamId {
        match (self.role, self.drain) {
            // Servers open no streams.
            (Role::Client, _) => StreamId::CONNECTION,
            (Role::Server, Drain::Last(last)) => last,
            (Role::Server, _) => self.streams.highest(),
        }
    }

    fn emit_goaway(&mut self, last_stream: StreamId, code: ErrorCode, debug: &[u8]) {
        GoAway { last_stream, code }.emit(debug, self.output.buffer());
    }
}
