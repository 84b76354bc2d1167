//! One HTTP/2 connection.

mod buffer_budget;
mod end;
mod open;
mod receive;
mod receive_control;
mod receive_headers;
mod send;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::abuse_budget::AbuseBudget;
use crate::config::Config;
use crate::error::{ConnectionError, ErrorCode, Initiator, StreamError};
use crate::event::{Event, ResetCause, ResetReason};
use crate::flow::{ReceiveWindow, WINDOW_DEFAULT};
use crate::frame::{self, Setting};
use crate::handshake::Handshake;
use crate::headers::Headers;
use crate::hpack::{DEFAULT_TABLE_SIZE, Decoder};
use crate::ping_policy::Pings;
use crate::receiving::{Expect, Receiving};
use crate::sending::Sending;
use crate::shutdown::Shutdown;
use crate::stream::{LocalState, RemoteState, StreamId, Tag};
use crate::stream_table::{Absent, StreamKey, StreamTable};

/// An HTTP/2 connection, client or server: takes bytes and the time, returns events and bytes.
///
/// The code that uses a connection, its *driver*, runs this loop whenever something has happened:
///
/// 1. Call [`poll_event`](Connection::poll_event) with the received bytes and handle the events, until it returns
///    `None`.
/// 2. Call [`take_output`](Connection::take_output) and write the bytes, until there are none.
/// 3. If there was output, poll events once more, because queues may have become writable.
/// 4. Wait for input, for the socket, or for [`timeout`](Connection::timeout).
#[derive(Debug)]
pub struct Connection {
    role: Role,
    /// The given settings, clamped to valid ranges. Shared by all connections created from the same value.
    config: Arc<Config>,
    /// The current value of [`Config::buffer_budget`].
    buffer_budget: usize,
    handshake: Handshake,
    receiving: Receiving,
    sending: Sending,
    streams: StreamTable,
    /// Events that do not belong to the current frame: at most two per stream and one `StreamsFree`.
    pending: VecDeque<Event<'static>>,
    /// Client: the driver waits for `StreamsFree`, or a drain waits for the last stream to end.
    stream_end_awaited: bool,
    budget: AbuseBudget,
    /// Server: the client's PINGs.
    pings: Pings,
    shutdown: Shutdown,
}

/// The side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

impl Connection {
    /// Creates a client's end. The preface and SETTINGS are already in the output.
    pub fn client(config: impl Into<Arc<Config>>, now: Instant) -> Self {
        let mut connection = Connection::new(Role::Client, config.into(), now);
        connection.sending.output.buffer().extend_from_slice(frame::PREFACE);
        connection.emit_settings();
        connection
    }

    /// Creates a server's end. SETTINGS are already in the output; the client's preface is expected.
    pub fn server(config: impl Into<Arc<Config>>, now: Instant) -> Self {
        let mut connection = Connection::new(Role::Server, config.into(), now);
        connection.emit_settings();
        connection
    }

    fn new(role: Role, mut config: Arc<Config>, now: Instant) -> Connection {
        if let Some(clamped) = config.clamped() {
            config = Arc::new(clamped);
        }
        Connection {
            role,
            // An unrepresentable time means no deadline.
            handshake: Handshake::new(now.checked_add(config.settings_timeout)),
            receiving: Receiving::new(
                if role == Role::Server { Expect::Preface { matched: 0 } } else { Expect::Frame },
                Decoder::new(DEFAULT_TABLE_SIZE),
                ReceiveWindow::new(config.connection_window),
                // A peer that has not seen our SETTINGS assumes the default window; it cannot overrun a larger one.
                config.stream_window.max(WINDOW_DEFAULT),
                config.stream_window,
            ),
            sending: Sending::new(),
            streams: StreamTable::default(),
            pending: VecDeque::new(),
            stream_end_awaited: false,
            budget: AbuseBudget::new(&config, now),
            pings: Pings::new(config.ping_policy.filter(|_| role == Role::Server)),
            shutdown: Shutdown::NONE,
            buffer_budget: config.buffer_budget,
            config,
        }
    }

    /// Sends the SETTINGS that differ from the peer's assumptions, and the connection's window.
    fn emit_settings(&mut self) {
        let config = &self.config;
        let mut settings = Vec::with_capacity(6);
        match self.role {
            Role::Client => settings.push(Setting::EnablePush(0)),
            Role::Server => settings.push(Setting::MaxConcurrentStreams(config.max_concurrent_streams)),
        }
        if config.header_table_size as usize != DEFAULT_TABLE_SIZE {
            settings.push(Setting::HeaderTableSize(config.header_table_size));
        }
        if config.stream_window != WINDOW_DEFAULT {
            settings.push(Setting::InitialWindowSize(config.stream_window));
        }
        if config.max_frame_size != frame::MAX_FRAME_SIZE_MIN {
            settings.push(Setting::MaxFrameSize(config.max_frame_size));
        }
        settings.push(Setting::MaxHeaderListSize(config.max_header_list_size));
        // Includes room for the window update and the acknowledgement of the peer's SETTINGS.
        self.sending.output.buffer().reserve(64);
        frame::settings(&settings, self.sending.output.buffer());
        if config.connection_window > WINDOW_DEFAULT {
            let increment = config.connection_window - WINDOW_DEFAULT;
            frame::window_update(StreamId::CONNECTION, increment, self.sending.output.buffer());
        }
    }

    /// Returns the headers of the last [`Event::Headers`], [`Event::CompleteMessage`], [`Event::Informational`] or
    /// [`Event::Trailers`]. Valid until the next [`poll_event`](Connection::poll_event).
    pub fn fields(&self) -> &Headers {
        self.receiving.headers_cache.current()
    }

    /// Returns the trailers of the last [`Event::Trailers`], or of the last [`Event::CompleteMessage`] that is a
    /// response. Valid until the next [`poll_event`](Connection::poll_event).
    pub fn trailers(&self) -> &Headers {
        self.receiving.headers_cache.trailers()
    }

    /// Associates a tag with a stream; its later events carry it. Does nothing if the stream is gone.
    #[inline]
    pub fn set_tag(&mut self, stream: StreamId, tag: Tag) {
        if let Some((_, stream)) = self.streams.find_mut(stream) {
            stream.tag = tag;
        }
    }

    /// Releases receive window: the driver has consumed `bytes` of [`Event::Data`]. Does nothing if the stream is gone.
    pub fn release(&mut self, stream: StreamId, bytes: usize) {
        let Some((_, stream)) = self.streams.find_mut(stream) else { return };
        stream.required = 0;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let increment = stream.receive_window.release(bytes);
        // A peer that sends nothing more needs no window.
        if let Some(increment) = increment.filter(|_| stream.state.can_receive()) {
            frame::window_update(stream.id, increment, self.sending.output.buffer());
        }
        if self.receiving.is_window_withheld {
            self.widen_required_windows();
        }
    }

    /// Resets a stream with RST_STREAM. Drops its queued data; no event follows. Does nothing if the stream is gone.
    ///
    /// A server that has finished its response before the request has ended uses `NoError` (RFC 9113 §8.1).
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if let Some(key) = self.streams.find(stream) {
            frame::rst_stream(stream, code, self.sending.output.buffer());
            self.remove(key, Absent::Forgotten);
        }
    }

    /// Returns whether the stream is open in at least one direction.
    #[inline]
    pub fn is_open(&self, stream: StreamId) -> bool {
        self.streams.find(stream).is_some()
    }

    /// Sends a PING; [`Event::Pong`] follows.
    pub fn ping(&mut self, payload: [u8; 8]) {
        if !self.is_closed() {
            frame::ping(false, payload, self.sending.output.buffer());
        }
    }

    /// Returns the number of streams that are open in at least one direction.
    pub fn active_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the connection's windows: how many bytes may be sent, and how many the peer may send. The latter
    /// includes released bytes only once they have been announced.
    pub fn windows(&self) -> (u32, i32) {
        (self.sending.window.available() as u32, self.receiving.window.open())
    }

    /// Returns whether the peer's first SETTINGS have arrived.
    pub fn settings_received(&self) -> bool {
        self.handshake.settings_received
    }

    /// Frees memory while the connection is idle: buffers, spare capacity, and cached headers including the current
    /// [`fields`](Connection::fields).
    pub fn shrink(&mut self) {
        self.receiving.shrink();
        self.sending.shrink();
        self.streams.shrink();
        self.pending.shrink_to_fit();
    }

    /// Removes a stream with everything it has queued.
    fn remove(&mut self, key: StreamKey, how: Absent) -> Tag {
        let Some(stream) = self.streams.get_mut(key) else { return Tag::default() };
        let tag = stream.tag;
        self.sending.discard_queued(key, stream);
        self.remove_from_table(key, how);
        tag
    }

    /// Removes a stream that has nothing queued.
    #[inline]
    fn remove_from_table(&mut self, key: StreamKey, how: Absent) {
        self.streams.remove(key, how);
        if self.stream_end_awaited {
            self.stream_ended();
        }
        if self.receiving.is_window_withheld {
            self.widen_required_windows();
        }
    }

    /// Handles END_STREAM from the peer.
    fn end_received(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.state.remote = RemoteState::Ended;
        if stream.state.is_closed() {
            self.sending.discard_queued(key, stream);
            self.remove_from_table(key, Absent::Ended);
        }
    }

    /// Handles a framed END_STREAM of this endpoint.
    fn end_sent(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.state.local = LocalState::Ended;
        if stream.state.is_closed() {
            self.sending.discard_queued(key, stream);
            self.remove_from_table(key, Absent::Ended);
        }
    }

    /// Resets a stream because of a fault of the peer (RFC 9113 §5.4.2). Ends the connection if the stream is idle,
    /// because RST_STREAM must not be sent on idle streams.
    fn stream_error(
        &mut self,
        id: StreamId,
        error: StreamError,
        now: Instant,
    ) -> Result<Option<Event<'static>>, ConnectionError> {
        let key = self.streams.find(id);
        if key.is_none() && self.streams.absent(id) == Absent::Idle {
            return Err(ConnectionError::local(error.code, error.violation));
        }
        // A stream refused before the peer could know the limit is not the peer's fault.
        let is_early = error.code == ErrorCode::RefusedStream && !self.handshake.is_acknowledged();
        if !(is_early && self.budget.take_early_refusal()) {
            self.budget.stream_error(error.violation, now)?;
        }
        self.budget.count_reply()?;
        frame::rst_stream(id, error.code, self.sending.output.buffer());
        Ok(key.map(|key| {
            let tag = self.remove(key, Absent::Forgotten);
            let cause = ResetCause {
                initiator: Initiator::Local,
                code: error.code,
                unprocessed: false,
                reason: ResetReason::Violation(error.violation),
            };
            Event::Reset { stream: id, tag, cause }
        }))
    }
}
