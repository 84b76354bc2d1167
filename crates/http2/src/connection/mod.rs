//! One HTTP/2 connection.

mod receive;
mod receive_control;
mod receive_headers;
mod send;
mod shutdown;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use crate::config::Config;
use crate::error::{ConnectionError, ErrorCode, Initiator, StreamError};
use crate::event::{Event, ResetCause};
use crate::flow::{ReceiveWindow, SendWindow, WINDOW_DEFAULT, WINDOW_MAX};
use crate::frame::{self, Setting};
use crate::head_cache::HeadCache;
use crate::headers::Head;
use crate::hpack::{DEFAULT_TABLE_SIZE, Decoder, Encoder};
use crate::limits::TokenBucket;
use crate::output::Output;
use crate::send_queue::SendQueues;
use crate::stream::{StreamId, Tag};
use crate::stream_table::{Absent, Key, StreamTable};

use receive::Expect;
pub use receive::ExpectedData;
use receive_headers::Gathering;
use send::{LastData, PeerSettings};
use shutdown::{Closed, Drain};

/// One HTTP/2 connection, client or server: bytes and a time in, events and bytes out.
///
/// The run loop, after anything happened: call [`poll_event`](Connection::poll_event) with what has arrived
/// until it gives `None`; do what the events ask for; call [`take_output`](Connection::take_output) and write
/// until there is nothing; if output was taken, poll events once more, since queues may have become writable;
/// then wait for input, for the socket, or for [`timeout`](Connection::timeout).
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Config,

    // What comes in.
    expect: Expect,
    /// A header block that comes in several frames, and its bytes so far.
    gathering: Option<Gathering>,
    gathered: Vec<u8>,
    decoder: Decoder,
    heads: HeadCache,
    /// Events that are not of the frame at hand: at most two per stream and one `SlotsChanged`.
    pending: VecDeque<Event<'static>>,
    receive_window: ReceiveWindow,
    /// The stream window that the peer may assume: that of SETTINGS once they are acknowledged.
    stream_window: u32,
    /// Counts the batches of input: one ends when `poll_event` finds nothing more.
    batch: u64,

    streams: StreamTable,
    /// The owner was told `NoSlot` and waits for `SlotsChanged`.
    slot_wanted: bool,

    // What goes out.
    output: Output,
    encoder: Encoder,
    queues: SendQueues,
    send_window: SendWindow,
    last_data: LastData,
    peer: PeerSettings,
    settings_received: bool,

    // What a peer may cost.
    resets: TokenBucket,
    glitches: TokenBucket,
    /// Control frames that frames which do work have paid for.
    paid_control_frames: u32,
    /// Acknowledgements and RST_STREAMs in the output that the peer provoked.
    queued_replies: u32,

    // The end.
    closed: Closed,
    drain: Drain,
    /// The last stream that the peer's GOAWAY lets live.
    peer_last_stream: Option<StreamId>,
    /// Our SETTINGS hold.
    settings_acknowledged: bool,
    /// When their acknowledgement must have come.
    settings_deadline: Option<Instant>,
}

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

impl Connection {
    /// The client's end. The preface and SETTINGS are already in the output.
    pub fn client(config: Config, now: Instant) -> Self {
        let mut connection = Connection::new(Role::Client, config, now);
        connection.output.buffer().extend_from_slice(frame::PREFACE);
        connection.emit_settings();
        connection
    }

    /// The server's end. SETTINGS are already in the output; the client's preface is awaited.
    pub fn server(config: Config, now: Instant) -> Self {
        let mut connection = Connection::new(Role::Server, config, now);
        connection.emit_settings();
        connection
    }

    fn new(role: Role, config: Config, now: Instant) -> Connection {
        let config = Config {
            stream_window: config.stream_window.min(WINDOW_MAX),
            connection_window: config.connection_window.clamp(WINDOW_DEFAULT, WINDOW_MAX),
            max_frame_size: config.max_frame_size.clamp(frame::MAX_FRAME_SIZE_MIN, frame::MAX_FRAME_SIZE_MAX),
            ..config
        };
        let limits = &config.limits;
        let slots = config.max_concurrent_streams;
        let resets = TokenBucket::new(
            limits.resets_per_slot.saturating_mul(slots).max(limits.resets_min),
            limits.resets_per_slot_per_s.saturating_mul(slots),
            now,
        );
        Connection {
            role,
            expect: if role == Role::Server { Expect::Preface { matched: 0 } } else { Expect::Frame },
            gathering: None,
            gathered: Vec::new(),
            decoder: Decoder::new(DEFAULT_TABLE_SIZE),
            heads: HeadCache::default(),
            pending: VecDeque::new(),
            receive_window: ReceiveWindow::new(config.connection_window),
            // A peer that has not seen our SETTINGS assumes the default; a larger window it cannot overrun.
            stream_window: config.stream_window.max(WINDOW_DEFAULT),
            batch: 0,
            streams: StreamTable::default(),
            slot_wanted: false,
            output: Output::default(),
            encoder: Encoder::new(),
            queues: SendQueues::default(),
            send_window: SendWindow::new(WINDOW_DEFAULT),
            last_data: LastData::NONE,
            peer: PeerSettings::INITIAL,
            settings_received: false,
            resets,
            glitches: TokenBucket::new(limits.glitches, limits.glitches_per_s, now),
            paid_control_frames: 0,
            queued_replies: 0,
            closed: Closed::No,
            drain: Drain::No,
            peer_last_stream: None,
            settings_acknowledged: false,
            // A time beyond all times is no deadline.
            settings_deadline: now.checked_add(config.settings_timeout),
            config,
        }
    }

    /// Our SETTINGS, as far as they differ from what the peer assumes anyway, and the connection's window.
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
        frame::settings(&settings, self.output.buffer());
        if config.connection_window > WINDOW_DEFAULT {
            let increment = config.connection_window - WINDOW_DEFAULT;
            frame::window_update(StreamId::CONNECTION, increment, self.output.buffer());
        }
    }

    /// The head of the last [`Event::Headers`], [`Event::Informational`] or [`Event::Trailers`]; valid until
    /// the next [`poll_event`](Connection::poll_event).
    pub fn fields(&self) -> &Head {
        self.heads.current()
    }

    /// Hangs a number on a stream; its further events carry it. Does nothing on streams that are gone.
    pub fn set_tag(&mut self, stream: StreamId, tag: Tag) {
        if let Some(key) = self.streams.find(stream) {
            self.streams.get_mut(key).tag = tag;
        }
    }

    /// Gives receive window back: the owner has used up `bytes` of [`Event::Data`]. Does nothing on streams
    /// that are gone or whose peer sends nothing more.
    pub fn release(&mut self, stream: StreamId, bytes: usize) {
        let Some(key) = self.streams.find(stream) else { return };
        let stream = self.streams.get_mut(key);
        if !stream.state.can_receive() {
            return;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some(increment) = stream.receive_window.release(bytes) {
            frame::window_update(stream.id, increment, self.output.buffer());
        }
    }

    /// Ends a stream with RST_STREAM: what is queued is dropped, no event follows. Does nothing on streams
    /// that are gone.
    ///
    /// A server that has finished its answer while the request is still open says `NoError` (RFC 9113 §8.1).
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if let Some(key) = self.streams.find(stream) {
            self.remove(key, Absent::Forgotten);
            frame::rst_stream(stream, code, self.output.buffer());
        }
    }

    /// Whether the stream is open in one direction at least.
    pub fn is_open(&self, stream: StreamId) -> bool {
        self.streams.find(stream).is_some()
    }

    /// Sends a PING; [`Event::Pong`] follows.
    pub fn ping(&mut self, payload: [u8; 8]) {
        if !self.is_closed() {
            frame::ping(false, payload, self.output.buffer());
        }
    }

    /// How many streams are open in one direction at least.
    pub fn active_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether the peer's first SETTINGS have arrived.
    pub fn settings_received(&self) -> bool {
        self.settings_received
    }

    /// Gives memory back while the connection is idle: buffers, spare capacity, remembered heads. What
    /// [`fields`](Connection::fields) gave is among them.
    pub fn shrink(&mut self) {
        self.decoder.shrink();
        self.encoder.shrink();
        self.output.shrink();
        self.heads.shrink();
        self.streams.shrink();
        self.queues.shrink();
        self.pending.shrink_to_fit();
        if self.gathering.is_none() {
            self.gathered = Vec::new();
        }
    }

    /// Takes a stream out of the table, with all that it has queued.
    fn remove(&mut self, key: Key, how: Absent) -> Tag {
        let stream = self.streams.get_mut(key);
        let tag = stream.tag;
        self.queues.forget(key, stream);
        self.streams.remove(key, how);
        if self.slot_wanted {
            self.offer_slot();
        }
        tag
    }

    /// Tells an owner who was told `NoSlot` when there is one.
    #[cold]
    fn offer_slot(&mut self) {
        if self.can_open() {
            self.slot_wanted = false;
            self.pending.push_back(Event::SlotsChanged);
        }
    }

    /// The peer sent END_STREAM.
    fn end_received(&mut self, key: Key) {
        let stream = self.streams.get_mut(key);
        match stream.state.after_receiving_end() {
            Some(state) => stream.state = state,
            None => {
                self.remove(key, Absent::Ended);
            }
        }
    }

    /// This endpoint has framed END_STREAM.
    fn end_sent(&mut self, key: Key) {
        let stream = self.streams.get_mut(key);
        match stream.state.after_sending_end() {
            Some(state) => stream.state = state,
            None => {
                self.remove(key, Absent::Ended);
            }
        }
    }

    /// Ends a stream for a fault of the peer's (RFC 9113 §5.4.2). RST_STREAM may not be sent on an idle
    /// stream, so there the connection ends.
    fn stream_error(
        &mut self,
        id: StreamId,
        error: StreamError,
        now: Instant,
    ) -> Result<Option<Event<'static>>, ConnectionError> {
        let key = self.streams.find(id);
        if key.is_none() && self.streams.absent(id) == Absent::Idle {
            return Err(ConnectionError::local(error.code, error.reason));
        }
        // A stream that is refused before the peer can know the bound is no fault of the peer's.
        if error.code != ErrorCode::RefusedStream || self.settings_acknowledged {
            self.glitch(self.config.limits.stream_error_cost, error.reason, now)?;
        }
        self.count_reply()?;
        frame::rst_stream(id, error.code, self.output.buffer());
        Ok(key.map(|key| {
            let tag = self.remove(key, Absent::Forgotten);
            let cause = ResetCause {
                initiator: Initiator::Local,
                code: error.code,
                unprocessed: false,
                reason: error.reason,
            };
            Event::Reset { stream: id, tag, cause }
        }))
    }

    /// The peer did something that is useless or wrong.
    #[cold]
    fn glitch(&mut self, cost: u32, reason: &'static str, now: Instant) -> Result<(), ConnectionError> {
        if self.glitches.take(cost, now) {
            return Ok(());
        }
        Err(ConnectionError::local(ErrorCode::EnhanceYourCalm, reason))
    }

    /// The peer sent a frame that does no work: it is paid for, or it is a glitch.
    fn control_frame(&mut self, reason: &'static str, now: Instant) -> Result<(), ConnectionError> {
        match self.paid_control_frames.checked_sub(1) {
            Some(left) => {
                self.paid_control_frames = left;
                Ok(())
            }
            None => self.glitch(1, reason, now),
        }
    }

    /// A frame of `len` bytes did work, in either direction: it pays for control frames to come.
    #[inline]
    fn pay_for_control_frames(&mut self, len: usize) {
        let paid = self.paid_control_frames + 2 + (len / 512) as u32;
        self.paid_control_frames = paid.min(self.config.limits.paid_control_frames_max);
    }

    /// A reply goes into the output that the peer provoked. The output is taken as fast as the peer reads, so
    /// a peer that provokes replies and does not read them is found out here.
    fn count_reply(&mut self) -> Result<(), ConnectionError> {
        self.queued_replies += 1;
        if self.queued_replies > self.config.limits.queued_replies_max {
            let reason = "too many replies wait for a peer that does not read";
            return Err(ConnectionError::local(ErrorCode::EnhanceYourCalm, reason));
        }
        Ok(())
    }
}
