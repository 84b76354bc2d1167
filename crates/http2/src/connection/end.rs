//! Ending a connection: GOAWAY (RFC 9113 §6.8), draining, deadlines.

use std::time::Instant;

use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{self, GoAway};
use crate::shutdown::{Closed, Drain};
use crate::stream::StreamId;
use crate::violation::Violation;

/// Payload of the PING between the two GOAWAYs of a drain.
const DRAIN_PING: [u8; 8] = *b"thalweg\0";

impl Connection {
    /// Closes the connection gracefully, when its streams have ended.
    ///
    /// A server sends GOAWAY(2^31 - 1) and a PING. When the PING is acknowledged, or after
    /// [`Config::drain_timeout`](crate::Config::drain_timeout), it sends GOAWAY with the last stream that it serves. A
    /// client opens no more streams, and sends GOAWAY when its last stream has ended.
    pub fn drain(&mut self, now: Instant) {
        if self.is_closed() || self.shutdown.is_draining() {
            return;
        }
        match self.role {
            Role::Client if self.streams.len() == 0 => self.send_last_goaway(),
            Role::Client => {
                self.shutdown.drain = Drain::AwaitingStreams;
                self.stream_end_awaited = true;
            }
            Role::Server => {
                self.emit_goaway(StreamId::MAX, ErrorCode::NoError, b"");
                frame::ping(false, DRAIN_PING, self.sending.output.buffer());
                self.shutdown.drain =
                    Drain::AwaitingPong { deadline: now.checked_add(self.config.drain_timeout) };
            }
        }
    }

    /// Closes the connection immediately: sends GOAWAY, drops all streams and ignores further input. `debug` is the
    /// GOAWAY debug data, for people who inspect the traffic.
    pub fn close(&mut self, code: ErrorCode, debug: &[u8]) {
        self.shut(code, debug, Closed::ByDriver);
    }

    /// Returns whether nothing is left to do: the connection is closed, or either side is going away and no stream is
    /// left. Flush the output, then close the socket.
    pub fn is_drained(&self) -> bool {
        self.is_closed()
            || (self.shutdown.is_going_away() && self.streams.len() == 0 && self.pending.is_empty())
    }

    /// Returns whether the peer sent GOAWAY.
    pub fn peer_going_away(&self) -> bool {
        self.shutdown.peer_going_away()
    }

    /// Returns whether the connection is over: [`close`](Connection::close) was called or the peer violated the
    /// protocol.
    pub fn is_closed(&self) -> bool {
        self.shutdown.is_closed()
    }

    /// Returns when to call [`handle_timeout`](Connection::handle_timeout).
    #[inline]
    pub fn timeout(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        match (self.handshake.deadline(), self.shutdown.drain_deadline()) {
            (Some(settings), Some(drain)) => Some(settings.min(drain)),
            (settings, drain) => settings.or(drain),
        }
    }

    /// Handles the deadlines that have passed at `now`; does nothing if called early.
    ///
    /// # Errors
    ///
    /// The peer did not acknowledge SETTINGS in time. GOAWAY is in the output.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if self.is_closed() {
            return Ok(());
        }
        if self.handshake.deadline().is_some_and(|deadline| deadline <= now) {
            let error =
                ConnectionError::local(ErrorCode::SettingsTimeout, Violation::SettingsNotAcknowledged);
            self.fail(error);
            return Err(error);
        }
        if self.shutdown.drain_deadline().is_some_and(|deadline| deadline <= now) {
            self.send_last_goaway();
        }
        Ok(())
    }

    /// Handles the acknowledgement of a PING; returns whether the PING was the drain's. It may arrive after the drain
    /// stopped waiting, and is not the driver's even then.
    pub(super) fn finish_drain_on_pong(&mut self, payload: [u8; 8]) -> bool {
        if payload != DRAIN_PING || self.role == Role::Client || !self.shutdown.is_draining() {
            return false;
        }
        if matches!(self.shutdown.drain, Drain::AwaitingPong { .. }) {
            self.send_last_goaway();
        }
        true
    }

    /// Ends the connection because of a fault of the peer.
    #[cold]
    pub(super) fn fail(&mut self, error: ConnectionError) {
        self.shut(error.code, error.violation.to_string().as_bytes(), Closed::ByFault(error));
    }

    fn shut(&mut self, code: ErrorCode, debug: &[u8], closed: Closed) {
        if self.is_closed() {
            return;
        }
        self.shutdown.closed = closed;
        self.emit_goaway(self.last_served(), code, debug);
        self.streams.clear();
        self.sending.clear();
        self.pending.clear();
    }

    pub(super) fn send_last_goaway(&mut self) {
        let last = self.last_served();
        self.emit_goaway(last, ErrorCode::NoError, b"");
        self.shutdown.drain = Drain::Last(last);
    }

    /// Returns the last stream of the peer that is or was served.
    fn last_served(&self) -> StreamId {
        match (self.role, self.shutdown.drain) {
            // Servers do not open streams.
            (Role::Client, _) => StreamId::CONNECTION,
            (Role::Server, Drain::Last(last)) => last,
            (Role::Server, _) => self.streams.highest(),
        }
    }

    fn emit_goaway(&mut self, last_stream: StreamId, code: ErrorCode, debug: &[u8]) {
        GoAway { last_stream, code }.emit(debug, self.sending.output.buffer());
    }
}
