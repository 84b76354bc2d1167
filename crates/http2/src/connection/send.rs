//! What goes out: HEADERS and DATA, framed fairly; control frames stand before them, since they go into the
//! output when they arise and queued DATA only when the output is taken.

use bytes::Bytes;

use super::Connection;
use crate::error::SendError;
use crate::event::Event;
use crate::fields::Block;
use crate::output::Output;
use crate::send_queue::{Queued, QueuedBlock};
use crate::stream::{QueuedStream, StreamId};
use crate::stream_table::Key;

impl Connection {
    /// Frames a whole small answer at once, straight into the output (server): its head, a message, and its trailers.
    ///
    /// `false`, and nothing done, when part of it would have to wait (for the queue, a window, the output, or because
    /// the message is larger than a frame): then send them one by one.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    #[inline]
    pub fn send_answer(
        &mut self,
        stream: StreamId,
        head: Block<'_>,
        message: &[u8],
        trailers: Block<'_>,
    ) -> Result<bool, SendError> {
        let len = message.len();
        let takes_now = self.sending.takes_now(len, self.config.output_target);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.why_not_sendable(stream));
        };
        if !takes_now || !state.fits_now(len) {
            return Ok(false);
        }
        state.state.send_head(false);
        state.send_window.consume(len);
        self.emit_headers(stream, head, false);
        self.emit_data(stream, message, false);
        self.emit_headers(stream, trailers, true);
        self.end_sent(key);
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
        state.state.send_head(end_stream);
        // When the peer does not read, answers wait in their streams, of which there is a bounded number.
        if !state.queue.is_empty() || self.sending.output.len() >= self.config.output_target {
            self.sending.queue(key, state, Queued::Headers(Box::new(QueuedBlock::new(block))));
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
        let takes_now = self.sending.takes_now(len, self.config.output_target);
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
        self.begin_frame(stream, len);
        let buffer = self.sending.output.buffer();
        let start = buffer.len();
        encode(buffer);
        assert_eq!(buffer.len() - start, len, "`encode` appended another number of bytes than it announced");
        self.finish_frame(key, end_stream);
        Ok(true)
    }

    /// Accepts bytes, which may lie in several parts, and sends them as the windows allow. To keep the queue short,
    /// look at [`queued`](Connection::queued) and wait for [`Event::Writable`].
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    pub fn send_data(
        &mut self,
        stream: StreamId,
        parts: impl AsRef<[Bytes]> + IntoIterator<Item = Bytes>,
        end_stream: bool,
    ) -> Result<(), SendError> {
        let len = parts.as_ref().iter().map(Bytes::len).sum();
        let takes_now = self.sending.takes_now(len, self.config.output_target);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            parts.into_iter().for_each(|part| self.sending.output.discard(part));
            return Err(self.why_not_sendable(stream));
        };
        if len == 0 && !end_stream {
            return Ok(());
        }
        state.state.send_data(end_stream);
        if takes_now && state.fits_now(len) {
            state.send_window.consume(len);
            self.begin_frame(stream, len);
            parts.into_iter().for_each(|part| self.sending.output.push_payload(part));
            self.finish_frame(key, end_stream);
            return Ok(());
        }
        let items = &mut self.sending.items;
        for part in parts {
            if !part.is_empty() {
                items.push(&mut state.queue, Queued::Data(part));
            }
        }
        if state.queue.is_empty() {
            // Nothing but END_STREAM.
            items.push(&mut state.queue, Queued::Data(Bytes::new()));
        }
        state.queue.note_growth(self.config.send_queue_low_water);
        self.sending.schedule(key, state);
        Ok(())
    }

    /// How many bytes of DATA were accepted on this stream and not yet framed.
    pub fn queued(&self, stream: StreamId) -> usize {
        self.streams.find_ref(stream).map_or(0, |stream| stream.queue.bytes())
    }

    /// The same of all streams.
    #[inline]
    pub fn queued_in_all(&self) -> usize {
        self.sending.items.bytes()
    }

    /// How much memory the DATA that is queued takes, in bytes: a part that is sent in pieces counts whole until the
    /// last of them has left its queue.
    #[inline]
    pub fn queued_memory(&self) -> usize {
        self.sending.items.memory()
    }

    /// How much memory all takes that is queued, framed and not taken, or taken and not [written](Self::note_written)
    /// beyond the output itself, in bytes.
    pub fn unsent_memory(&self) -> usize {
        let sending = &self.sending;
        let framed = sending.items.framed_memory() + sending.writing_memory;
        sending.items.memory() + sending.output.len() + framed
    }

    /// All output that was taken is written.
    #[inline]
    pub fn note_written(&mut self) {
        self.sending.writing_memory = 0;
    }

    /// Gives `out` what nobody needs any more, to be [dropped](Output::drop_discarded): with
    /// [`take_output`](Self::take_output) it would go when all output before it is written.
    pub fn take_discarded(&mut self, out: &mut Output) {
        self.sending.output.give_discarded(out);
    }

    /// How many bytes of DATA have left the queues of all streams so far.
    pub fn dequeued_in_all(&self) -> u64 {
        self.sending.items.taken()
    }

    /// Whether more is queued than the peer may have this end hold: nothing should be begun that adds to it.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.queued_memory() > self.held_max
    }

    /// The streams that have DATA queued.
    pub fn queued_streams(&self) -> impl Iterator<Item = QueuedStream> {
        let queued = self.streams.iter().map(|(_, stream)| stream).filter(|stream| stream.queue.bytes() > 0);
        queued.map(|stream| QueuedStream {
            id: stream.id,
            tag: stream.tag,
            dequeued: stream.queue.taken(),
            is_window_closed: stream.send_window.available() == 0,
        })
    }

    /// Whether anything that was accepted on this stream, heads and trailers too, is not yet framed:
    /// [`reset`](Connection::reset) would take it along.
    pub fn has_queued(&self, stream: StreamId) -> bool {
        self.streams.find_ref(stream).is_some_and(|stream| !stream.queue.is_empty())
    }

    /// Frames queued data fairly, one frame of each stream after the other, up to
    /// [`Config::output_target`](crate::Config::output_target), then swaps all bytes to write into `out`,
    /// which must be empty; its buffers are used again. Returns whether there are any.
    ///
    /// Parts that nobody needs any more go to `out` as well, whether there are bytes or not. To
    /// [drop](Output::drop_discarded) them can run anybody's code, so that is left to whoever writes.
    ///
    /// Framing can make queues [`Writable`](Event::Writable): poll events afterwards.
    #[expect(
        clippy::inline_always,
        reason = "150 instructions of a lone call, which takes output three times"
    )]
    #[inline(always)]
    pub fn take_output(&mut self, out: &mut Output) -> bool {
        debug_assert!(out.is_empty(), "what was taken before must be written first");
        if self.sending.has_next() {
            self.frame_queued();
        }
        let is_taken = self.sending.take_output(out);
        if is_taken {
            self.budget.note_output_taken();
        }
        is_taken
    }

    /// [`take_output`](Self::take_output), where `out` was taken before and could not be written yet: both leave
    /// together, if what was taken before lies in one piece.
    pub fn take_more_output(&mut self, out: &mut Output) -> bool {
        let Some(before) = out.as_contiguous() else { return false };
        let mut both = Output::default();
        let writing_memory = self.sending.writing_memory;
        let is_taken = self.take_output(&mut both);
        if is_taken {
            self.sending.writing_memory += writing_memory;
            both.prepend(before);
            std::mem::swap(out, &mut both);
        }
        // Parts that are not to be written are dropped by whoever writes, not here.
        both.give_discarded(out);
        is_taken
    }

    /// See [`Output::lend`]: so that connections whose output is mostly empty can share its memory.
    #[inline]
    pub fn lend_output(&mut self, buffer: &mut Vec<u8>) {
        self.sending.output.lend(buffer);
    }

    /// Whether data waits because the peer's window for the whole connection is used up.
    #[inline]
    pub fn is_window_blocked(&self) -> bool {
        self.sending.ready.has_blocked()
    }

    /// Whether [`take_output`](Connection::take_output) is worth a call. It may still give nothing: streams that are
    /// ready can turn out to wait for the connection's window.
    pub fn wants_write(&self) -> bool {
        self.sending.has_output()
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

    /// [`Sending::emit_data`](crate::sending::Sending::emit_data), which pays for control frames.
    #[inline]
    pub(super) fn emit_data(&mut self, stream: StreamId, message: &[u8], end_stream: bool) {
        self.note_work(message.len());
        self.sending.emit_data(stream, message, end_stream);
    }

    /// Appends a header block behind its frame's head, which pays for control frames.
    #[inline]
    pub(super) fn emit_headers(&mut self, stream: StreamId, block: Block<'_>, end_stream: bool) {
        let len = self.sending.emit_headers(stream, block, end_stream);
        self.note_work(len);
    }

    /// HEADERS or DATA go out: they pay for control frames, and wipe out the client's strikes.
    #[inline]
    fn note_work(&mut self, len: usize) {
        self.budget.pay_for_control_frames(len);
        self.pings.note_answered();
    }

    /// Starts a DATA frame, or goes on with the last; it pays for control frames.
    #[inline]
    fn begin_frame(&mut self, stream: StreamId, len: usize) {
        self.note_work(len);
        self.sending.begin_frame(stream, len);
    }

    #[inline]
    fn finish_frame(&mut self, key: Key, end_stream: bool) {
        self.sending.finish_frame(end_stream);
        if end_stream {
            self.end_sent(key);
        }
    }

    fn frame_queued(&mut self) {
        while self.sending.output.len() < self.config.output_target {
            let window_open = self.sending.window_open();
            let Some(key) = self.sending.ready.next(&mut self.streams, window_open) else { break };
            self.frame_next(key);
        }
    }

    /// Sends one frame of a stream, as far as the windows allow; if it has more to send, it is scheduled again.
    fn frame_next(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let Some(len) = self.sending.frame_next(key, stream) else { return };
        self.budget.pay_for_control_frames(len);
        self.pings.note_answered();
        if stream.queue.became_low(self.config.send_queue_low_water) {
            self.pending.push_back(Event::Writable { stream: stream.id, tag: stream.tag });
        }
        if stream.ends_now() {
            self.end_sent(key);
        } else {
            self.sending.schedule(key, stream);
        }
    }
}
