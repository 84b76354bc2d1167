//! What goes out: HEADERS and DATA, framed fairly; control frames stand before them, since they go into the
//! output when they arise and queued DATA only when the output is taken.

use bytes::Bytes;

use super::{Connection, Role};
use crate::error::{OpenError, SendError};
use crate::event::Event;
use crate::fields::Block;
use crate::flow::WINDOW_DEFAULT;
use crate::frame::{Flags, FrameHead, HEAD_LEN, Kind, MAX_FRAME_SIZE_MIN};
use crate::output::Output;
use crate::send_queue::{Queued, QueuedBlock};
use crate::stream::{State, Stream, StreamId, Tag};
use crate::stream_table::Key;

/// The largest DATA frame that is sent while several streams have something to send, in bytes, whatever the peer accepts:
/// no small message waits for more than that behind a large one.
const SHARED_DATA_LEN_MAX: u32 = 64 << 10;

/// The largest DATA frame of a stream that has the connection to itself, in bytes: a part of what is framed ahead of the
/// socket anyway ([`Config::output_target`](crate::Config::output_target)), so that whoever comes next waits no longer.
const LONE_DATA_LEN_MAX: u32 = 128 << 10;

/// How many streams may be open before the peer's SETTINGS say it (RFC 9113 §6.5.2 recommends no less for
/// peers).
const STREAMS_ASSUMED: u32 = 100;

/// What the peer's SETTINGS say.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    pub(super) max_concurrent_streams: u32,
    pub(super) initial_window: u32,
    pub(super) max_frame_size: u32,
}

impl PeerSettings {
    /// What holds until the peer's SETTINGS arrive.
    pub(super) const INITIAL: PeerSettings = PeerSettings {
        max_concurrent_streams: STREAMS_ASSUMED,
        initial_window: WINDOW_DEFAULT,
        max_frame_size: MAX_FRAME_SIZE_MIN,
    };

    fn data_len_max(self, is_alone: bool) -> usize {
        self.max_frame_size.min(if is_alone { LONE_DATA_LEN_MAX } else { SHARED_DATA_LEN_MAX }) as usize
    }
}

/// The DATA frame that was framed last. While nothing stands behind it in the output, more of the same stream
/// is added to it: many small messages then cost one head, and the peer one frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastData {
    stream: StreamId,
    /// Where its head and its end are in the output's buffer.
    head_at: usize,
    end: usize,
    len: usize,
}

impl LastData {
    pub(super) const NONE: LastData =
        LastData { stream: StreamId::CONNECTION, head_at: 0, end: usize::MAX, len: 0 };
}

impl Connection {
    /// Whether a stream could be opened now (client).
    pub fn can_open(&self) -> bool {
        self.check_open().is_ok()
    }

    fn check_open(&self) -> Result<(), OpenError> {
        if self.is_closed() || self.role == Role::Server {
            return Err(OpenError::Closed);
        }
        if self.peer_going_away() || self.is_draining() {
            return Err(OpenError::GoingAway);
        }
        if self.next_id() > StreamId::MAX.get() {
            return Err(OpenError::IdsExhausted);
        }
        if self.streams.len() >= self.peer.max_concurrent_streams as usize {
            return Err(OpenError::NoSlot);
        }
        Ok(())
    }

    fn next_id(&self) -> u32 {
        match self.streams.highest().get() {
            0 => 1,
            highest => highest + 2,
        }
    }

    /// Opens a stream with a request's head (client). Servers cannot: they get `Closed`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; nothing was sent. After `NoSlot`, [`Event::SlotsChanged`] says when to try again.
    pub fn open(&mut self, tag: Tag, head: Block<'_>, end_stream: bool) -> Result<StreamId, OpenError> {
        let state = if end_stream { State::HalfClosedLocal } else { State::Open };
        let (stream, _) = self.open_stream(tag, state)?;
        self.emit_headers(stream, head, end_stream);
        Ok(stream)
    }

    /// Opens a stream with a whole small request (client): its head, and a message of `len` bytes that `encode`
    /// appends, which ends it.
    ///
    /// Returns with the stream whether the message has gone too. Where that would have to wait (for a window, the
    /// output, or because it is larger than a frame), `encode` is not called, and
    /// [`send_data`](Connection::send_data) has to follow.
    ///
    /// # Panics
    ///
    /// When `encode` appends more or less than `len` bytes.
    ///
    /// # Errors
    ///
    /// As [`open`](Connection::open).
    #[inline]
    pub fn open_with(
        &mut self,
        tag: Tag,
        head: Block<'_>,
        len: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(StreamId, bool), OpenError> {
        if !self.takes_now(len) || len > self.peer.initial_window as usize {
            return self.open(tag, head, false).map(|stream| (stream, false));
        }
        let (stream, key) = self.open_stream(tag, State::HalfClosedLocal)?;
        self.emit_headers(stream, head, false);
        self.streams.get_mut(key).send_window.consume(len);
        self.emit_data(stream, len, true, encode);
        Ok((stream, true))
    }

    /// Puts a stream of which nothing was sent yet into the table.
    #[inline]
    fn open_stream(&mut self, tag: Tag, state: State) -> Result<(StreamId, Key), OpenError> {
        debug_assert!(self.role == Role::Client, "servers do not open streams");
        if let Err(error) = self.check_open() {
            self.slot_wanted |= error == OpenError::NoSlot;
            return Err(error);
        }
        let id = StreamId::new(self.next_id());
        self.streams.use_id(id);
        let send_ended = state == State::HalfClosedLocal;
        let key = self.streams.insert(Stream { send_ended, ..self.new_stream(id, tag, state) });
        Ok((id, key))
    }

    /// Frames a whole small answer at once, straight into the output (server): its head, a message of `len` bytes
    /// that `encode` appends, and its trailers. When `encode` says `false` the trailers are not sent: the stream goes
    /// on behind the message, for others to follow.
    ///
    /// `false`, and nothing done, when part of it would have to wait (for the queue, a window, the output, or because
    /// the message is larger than a frame): then send them one by one.
    ///
    /// # Panics
    ///
    /// When `encode` appends more or less than `len` bytes.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    #[inline]
    pub fn send_answer(
        &mut self,
        stream: StreamId,
        head: Block<'_>,
        len: usize,
        encode: impl FnOnce(&mut Vec<u8>) -> bool,
        trailers: Block<'_>,
    ) -> Result<bool, SendError> {
        let takes_now = self.takes_now(len);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.why_not_sendable(stream));
        };
        if !takes_now || !state.fits_now(len) {
            return Ok(false);
        }
        state.answered = true;
        state.send_window.consume(len);
        self.emit_headers(stream, head, false);
        let mut is_whole = false;
        self.emit_data(stream, len, false, |out| is_whole = encode(out));
        if is_whole {
            self.streams.get_mut(key).send_ended = true;
            self.emit_headers(stream, trailers, true);
            self.end_sent(key);
        }
        Ok(true)
    }

    /// Sends a response's head or trailers, behind DATA that is queued.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    pub fn send_headers(
        &mut self,
        stream: StreamId,
        block: Block<'_>,
        end_stream: bool,
    ) -> Result<(), SendError> {
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.why_not_sendable(stream));
        };
        state.answered = true;
        state.send_ended = end_stream;
        // When the peer does not read, answers wait in their streams, of which there is a bounded number.
        if !state.queue.is_empty() || self.output.len() >= self.config.output_target {
            self.queues.push(&mut state.queue, Queued::Headers(Box::new(QueuedBlock::new(block))));
            self.queues.schedule(key, state);
            return Ok(());
        }
        self.emit_headers(stream, block, end_stream);
        if end_stream {
            self.end_sent(key);
        }
        Ok(())
    }

    /// Frames a small DATA at once, straight into the output: `encode` appends exactly `len` bytes.
    ///
    /// `false`, and nothing done, when it would have to wait (for the queue, a window, the output, or because
    /// it is larger than a frame): then use [`send_data`](Connection::send_data).
    ///
    /// # Panics
    ///
    /// When `encode` appends more or less than `len` bytes.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    #[inline]
    pub fn send_data_in_place(
        &mut self,
        stream: StreamId,
        len: usize,
        end_stream: bool,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, SendError> {
        let takes_now = self.takes_now(len);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.why_not_sendable(stream));
        };
        if len == 0 && !end_stream {
            return Ok(true);
        }
        if !takes_now || !state.fits_now(len) {
            return Ok(false);
        }
        state.send_window.consume(len);
        state.send_ended = end_stream;
        self.begin_frame(stream, len);
        let buffer = self.output.buffer();
        let start = buffer.len();
        encode(buffer);
        assert_eq!(buffer.len() - start, len, "`encode` appended another number of bytes than it announced");
        self.finish_frame(key, end_stream);
        Ok(true)
    }

    /// Accepts bytes and sends them as the windows allow. To keep the queue short, look at
    /// [`queued`](Connection::queued) and wait for [`Event::Writable`].
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    pub fn send_data(&mut self, stream: StreamId, bytes: Bytes, end_stream: bool) -> Result<(), SendError> {
        self.send_data_parts(stream, [bytes], end_stream)
    }

    /// As [`send_data`](Connection::send_data), of bytes that lie in several places.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    pub fn send_data_parts(
        &mut self,
        stream: StreamId,
        parts: impl AsRef<[Bytes]> + IntoIterator<Item = Bytes>,
        end_stream: bool,
    ) -> Result<(), SendError> {
        let len = parts.as_ref().iter().map(Bytes::len).sum();
        let takes_now = self.takes_now(len);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.why_not_sendable(stream));
        };
        if len == 0 && !end_stream {
            return Ok(());
        }
        state.send_ended = end_stream;
        if takes_now && state.fits_now(len) {
            state.send_window.consume(len);
            self.begin_frame(stream, len);
            parts.into_iter().for_each(|part| self.output.push_payload(part));
            self.finish_frame(key, end_stream);
            return Ok(());
        }
        for part in parts {
            if !part.is_empty() {
                self.queues.push(&mut state.queue, Queued::Data(part));
            }
        }
        if state.queue.is_empty() {
            // Nothing but END_STREAM.
            self.queues.push(&mut state.queue, Queued::Data(Bytes::new()));
        }
        state.above_low_water |= state.queue.bytes() >= self.config.send_queue_low_water;
        self.queues.schedule(key, state);
        Ok(())
    }

    /// How many bytes of DATA were accepted on this stream and not yet framed.
    pub fn queued(&self, stream: StreamId) -> usize {
        self.streams.find(stream).map_or(0, |key| self.streams.get(key).queue.bytes())
    }

    /// Whether anything that was accepted on this stream, heads and trailers too, is not yet framed:
    /// [`reset`](Connection::reset) would take it along.
    pub fn has_queued(&self, stream: StreamId) -> bool {
        self.streams.find(stream).is_some_and(|key| !self.streams.get(key).queue.is_empty())
    }

    /// Frames queued data fairly, one frame of each stream in turn, up to
    /// [`Config::output_target`](crate::Config::output_target), then swaps all bytes to write into `out`,
    /// which must be empty; its buffers are used again. Returns whether there are any.
    ///
    /// Framing can make queues [`Writable`](Event::Writable): poll events afterwards.
    #[inline]
    pub fn take_output(&mut self, out: &mut Output) -> bool {
        debug_assert!(out.is_empty(), "what was taken before must be written first");
        if self.queues.has_turns(self.window_open()) {
            self.frame_queued();
        }
        if self.output.is_empty() {
            return false;
        }
        std::mem::swap(&mut self.output, out);
        self.last_data = LastData::NONE;
        self.queued_replies = 0;
        true
    }

    /// Whether data waits because the peer's window for the whole connection is used up.
    #[inline]
    pub fn is_window_blocked(&self) -> bool {
        self.queues.has_starved()
    }

    /// Whether [`take_output`](Connection::take_output) is worth a call. It may still give nothing: streams that take
    /// turns can turn out to wait for the connection's window.
    pub fn wants_write(&self) -> bool {
        !self.output.is_empty() || self.queues.has_turns(self.window_open())
    }

    /// Whether the connection's window lets any DATA go.
    #[inline]
    fn window_open(&self) -> bool {
        self.send_window.available() > 0
    }

    #[cold]
    fn why_not_sendable(&self, stream: StreamId) -> SendError {
        if self.is_open(stream) {
            SendError::HalfClosed
        } else if self.is_closed() {
            SendError::Closed
        } else {
            SendError::UnknownStream
        }
    }

    /// Whether a DATA frame of `len` bytes may go straight into the output if its stream allows it, past no one
    /// whom it would take window from.
    #[inline]
    fn takes_now(&self, len: usize) -> bool {
        len <= self.send_window.available()
            && len <= self.peer.data_len_max(false)
            && self.output.len() < self.config.output_target
            && (len == 0 || !self.queues.has_starved())
    }

    /// Appends a DATA frame of its own whose payload is `len` bytes that `encode` appends. The window of the stream was
    /// seen to.
    #[inline]
    fn emit_data(
        &mut self,
        stream: StreamId,
        len: usize,
        end_stream: bool,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        self.send_window.consume(len);
        self.pay_for_control_frames(len);
        let buffer = self.output.buffer();
        let flags = Flags::NONE.with_if(end_stream, Flags::END_STREAM);
        FrameHead { len: len as u32, kind: Kind::Data, flags, stream }.emit(buffer);
        let start = buffer.len();
        encode(buffer);
        assert_eq!(buffer.len() - start, len, "`encode` appended another number of bytes than it announced");
    }

    /// Starts a DATA frame of `len` bytes, or adds them to the one that stands last; the payload must follow.
    #[inline]
    fn begin_frame(&mut self, id: StreamId, len: usize) {
        self.send_window.consume(len);
        self.pay_for_control_frames(len);
        let len_max = self.peer.data_len_max(false);
        let buffer = self.output.buffer();
        let last = &mut self.last_data;
        if last.end == buffer.len() && last.stream == id && last.len + len <= len_max {
            last.len += len;
        } else {
            *last = LastData { stream: id, head_at: buffer.len(), end: 0, len };
            buffer.extend_from_slice(&[0; HEAD_LEN]);
        }
    }

    /// Back-fills the head of the frame that [`begin_frame`](Self::begin_frame) started, now that its payload
    /// is there.
    #[inline]
    fn finish_frame(&mut self, key: Key, end_stream: bool) {
        let buffer = self.output.buffer();
        let last = &mut self.last_data;
        last.end = buffer.len();
        let flags = Flags::NONE.with_if(end_stream, Flags::END_STREAM);
        let head = FrameHead { len: last.len as u32, kind: Kind::Data, flags, stream: last.stream };
        buffer[last.head_at..last.head_at + HEAD_LEN].copy_from_slice(&head.to_bytes());
        if end_stream {
            self.end_sent(key);
        }
    }

    /// Appends a header block behind its frame's head.
    #[inline]
    pub(super) fn emit_headers(&mut self, stream: StreamId, block: Block<'_>, end_stream: bool) {
        let Some(bytes) = self.encoder.ready(block) else {
            return self.emit_encoded(stream, block, end_stream);
        };
        // Such blocks are shorter than the smallest frame that a peer can ask for.
        let flags = Flags::END_HEADERS.with_if(end_stream, Flags::END_STREAM);
        let head = FrameHead { len: bytes.len() as u32, kind: Kind::Headers, flags, stream };
        let buffer = self.output.buffer();
        head.emit(buffer);
        buffer.extend_from_slice(bytes);
        let len = bytes.len();
        self.pay_for_control_frames(len);
    }

    /// Encodes a header block, its frame's head back-filled; one that is larger than a frame is cut.
    fn emit_encoded(&mut self, stream: StreamId, block: Block<'_>, end_stream: bool) {
        let len_max = self.peer.max_frame_size as usize;
        let buffer = self.output.buffer();
        let head_at = buffer.len();
        buffer.extend_from_slice(&[0; HEAD_LEN]);
        self.encoder.encode(block, buffer);
        let len = buffer.len() - head_at - HEAD_LEN;
        let flags = Flags::END_HEADERS.with_if(end_stream, Flags::END_STREAM);
        let head = FrameHead { len: len as u32, kind: Kind::Headers, flags, stream };
        if len > len_max {
            cut_headers(head, head_at, len_max, buffer);
        } else {
            buffer[head_at..head_at + HEAD_LEN].copy_from_slice(&head.to_bytes());
        }
        self.pay_for_control_frames(len);
    }

    fn frame_queued(&mut self) {
        while self.output.len() < self.config.output_target {
            let window_open = self.window_open();
            let Some(key) = self.queues.next_turn(&mut self.streams, window_open) else { break };
            self.take_turn(key);
        }
    }

    /// Sends one frame of a stream, as far as the windows allow, and gives it another turn if it has more.
    fn take_turn(&mut self, key: Key) {
        let stream = self.streams.get_mut(key);
        let ended = if let Some(block) = self.queues.pop_headers(&mut stream.queue) {
            let (id, end_stream) = (stream.id, stream.send_ended && stream.queue.is_empty());
            self.emit_headers(id, block.as_block(), end_stream);
            end_stream
        } else {
            let frame_len_max = self.peer.data_len_max(!self.queues.has_turns(true));
            let wanted = stream.queue.bytes().min(frame_len_max).min(stream.send_window.available());
            let len_max = wanted.min(self.send_window.available());
            if len_max == 0 && wanted > 0 {
                self.queues.starve(key, stream);
                return;
            }
            self.frame_data(key, len_max)
        };
        if ended {
            self.end_sent(key);
        } else {
            self.queues.schedule(key, self.streams.get_mut(key));
        }
    }

    /// Frames at most `len_max` bytes from the front of a queue. Returns whether END_STREAM went with them.
    fn frame_data(&mut self, key: Key, len_max: usize) -> bool {
        let stream = self.streams.get_mut(key);
        let head_at = self.output.buffer().len();
        self.output.buffer().extend_from_slice(&[0; HEAD_LEN]);
        let mut len = 0;
        while let Some(part) = self.queues.pop_data(&mut stream.queue, len_max - len) {
            len += part.len();
            self.output.push_payload(part);
            if len == len_max {
                break;
            }
        }
        stream.send_window.consume(len);
        self.send_window.consume(len);
        let end_stream = stream.send_ended && stream.queue.is_empty();
        let flags = Flags::NONE.with_if(end_stream, Flags::END_STREAM);
        let head = FrameHead { len: len as u32, kind: Kind::Data, flags, stream: stream.id };
        let buffer = self.output.buffer();
        buffer[head_at..head_at + HEAD_LEN].copy_from_slice(&head.to_bytes());
        if stream.above_low_water && stream.queue.bytes() < self.config.send_queue_low_water {
            stream.above_low_water = false;
            self.pending.push_back(Event::Writable { stream: stream.id, tag: stream.tag });
        }
        self.pay_for_control_frames(len);
        end_stream
    }
}

/// Makes HEADERS, then CONTINUATIONs with nothing between them (RFC 9113 §6.10), of a header block that is too long for
/// one frame and stands at the end of `out`, behind the place for the frame's head.
#[cold]
fn cut_headers(head: FrameHead, head_at: usize, len_max: usize, out: &mut Vec<u8>) {
    let block = out.split_off(head_at + HEAD_LEN);
    out.truncate(head_at);
    let mut rest = &block[..];
    let mut kind = Kind::Headers;
    while !rest.is_empty() {
        let (fragment, behind) = rest.split_at(rest.len().min(len_max));
        rest = behind;
        let end_headers = Flags::NONE.with_if(rest.is_empty(), Flags::END_HEADERS);
        // END_STREAM stands on HEADERS.
        let end_stream = head.flags.contains(Flags::END_STREAM) && kind == Kind::Headers;
        let flags = end_headers.with_if(end_stream, Flags::END_STREAM);
        crate::frame::emit(kind, flags, head.stream, fragment, out);
        kind = Kind::Continuation;
    }
}
