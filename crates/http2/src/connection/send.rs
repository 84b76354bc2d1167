//! Sending: frames HEADERS and DATA fairly. Control frames precede queued DATA, because they enter the output
//! immediately and queued DATA only when the output is taken.

use bytes::Bytes;

use super::Connection;
use crate::error::SendError;
use crate::event::Event;
use crate::fields::Block;
use crate::output::Output;
use crate::send_queue::{Queued, QueuedBlock};
use crate::stream::{QueuedStream, StreamId};
use crate::stream_table::StreamKey;

impl Connection {
    /// Frames a complete small response directly into the output (server): its headers, a message and its trailers.
    ///
    /// Returns `false`, having done nothing, if any part would have to wait (for the queue, a window or the output, or
    /// because the message exceeds a frame). Then send the parts one by one.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent.
    #[inline]
    pub fn send_response(
        &mut self,
        stream: StreamId,
        headers: Block<'_>,
        message: &[u8],
        trailers: Block<'_>,
    ) -> Result<bool, SendError> {
        let len = message.len();
        let can_bypass_queues = self.sending.can_bypass_queues(len, self.config.output_target);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.unsendable_error(stream));
        };
        if !can_bypass_queues || !state.can_send_now(len) {
            return Ok(false);
        }
        state.state.send_headers(false);
        state.send_window.consume(len);
        self.emit_headers(stream, headers, false);
        self.emit_data(stream, message, false);
        self.emit_headers(stream, trailers, true);
        self.end_sent(key);
        Ok(true)
    }

    /// Sends a response's headers or trailers, after any queued DATA.
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
            return Err(self.unsendable_error(stream));
        };
        state.state.send_headers(end_stream);
        // If the peer does not read, responses wait in their streams, whose number is bounded.
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

    /// Frames a small DATA directly into the output; `encode` must append exactly `len` bytes.
    ///
    /// Returns `false`, having done nothing, if it would have to wait (for the queue, a window or the output, or
    /// because it exceeds a frame). Then use [`send_data`](Connection::send_data).
    ///
    /// # Panics
    ///
    /// If `encode` does not append exactly `len` bytes.
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
        let can_bypass_queues = self.sending.can_bypass_queues(len, self.config.output_target);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            return Err(self.unsendable_error(stream));
        };
        if len == 0 && !end_stream {
            return Ok(true);
        }
        if !can_bypass_queues || !state.can_send_now(len) {
            return Ok(false);
        }
        state.send_window.consume(len);
        self.begin_frame(stream, len);
        let buffer = self.sending.output.buffer();
        let start = buffer.len();
        encode(buffer);
        assert_eq!(
            buffer.len() - start,
            len,
            "`encode` appended a different number of bytes than it announced"
        );
        self.finish_frame(key, end_stream);
        Ok(true)
    }

    /// Queues bytes, possibly in several parts, and sends them as the windows allow. To bound the queue, check
    /// [`queued`](Connection::queued) and wait for [`Event::Writable`].
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
        let can_bypass_queues = self.sending.can_bypass_queues(len, self.config.output_target);
        let Some((key, state)) = self.streams.find_sendable(stream) else {
            parts.into_iter().for_each(|part| self.sending.output.discard(part));
            return Err(self.unsendable_error(stream));
        };
        if len == 0 && !end_stream {
            return Ok(());
        }
        state.state.send_data(end_stream);
        if can_bypass_queues && state.can_send_now(len) {
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
            // Only END_STREAM.
            items.push(&mut state.queue, Queued::Data(Bytes::new()));
        }
        state.queue.note_growth(self.config.send_queue_low_water);
        self.sending.schedule(key, state);
        Ok(())
    }

    /// Returns the bytes of DATA accepted on this stream and not yet framed.
    pub fn queued(&self, stream: StreamId) -> usize {
        self.streams.find_ref(stream).map_or(0, |stream| stream.queue.bytes())
    }

    /// Returns the same for all streams.
    #[inline]
    pub fn queued_in_all(&self) -> usize {
        self.sending.items.bytes()
    }

    /// Returns the memory of the queued DATA in bytes. A part that is sent in pieces counts in full until its last
    /// piece has left the queue.
    #[inline]
    pub fn queued_memory(&self) -> usize {
        self.sending.items.memory()
    }

    /// Returns the memory in bytes of everything that is queued, framed, or taken and not yet
    /// [written](Self::note_written). Taken output itself does not count.
    pub fn unsent_memory(&self) -> usize {
        let sending = &self.sending;
        let framed = sending.items.framed_memory() + sending.writing_memory;
        sending.items.memory() + sending.output.len() + framed
    }

    /// Records that all taken output has been written.
    #[inline]
    pub fn note_written(&mut self) {
        self.sending.writing_memory = 0;
    }

    /// Moves discarded parts into `out`, to be [dropped](Output::drop_discarded). With
    /// [`take_output`](Self::take_output) they are dropped only after all earlier output is written.
    pub fn take_discarded(&mut self, out: &mut Output) {
        self.sending.output.move_discarded_to(out);
    }

    /// Returns the bytes of DATA that have left the queues of all streams so far.
    pub fn dequeued_in_all(&self) -> u64 {
        self.sending.items.taken()
    }

    /// Returns whether more is queued than the buffer budget. If so, start nothing that adds to it.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.queued_memory() > self.buffer_budget
    }

    /// Returns the streams with queued DATA.
    pub fn queued_streams(&self) -> impl Iterator<Item = QueuedStream> {
        let queued = self.streams.iter().map(|(_, stream)| stream).filter(|stream| stream.queue.bytes() > 0);
        queued.map(|stream| QueuedStream {
            id: stream.id,
            tag: stream.tag,
            dequeued: stream.queue.taken(),
            is_window_closed: stream.send_window.available() == 0,
        })
    }

    /// Returns whether anything accepted on this stream, including headers and trailers, is not yet framed. A
    /// [`reset`](Connection::reset) would drop it.
    pub fn has_queued(&self, stream: StreamId) -> bool {
        self.streams.find_ref(stream).is_some_and(|stream| !stream.queue.is_empty())
    }

    /// Frames queued data up to [`Config::output_target`](crate::Config::output_target), one frame per stream in turn,
    /// then swaps all bytes to write into `out`. `out` must be empty; its buffers are reused. Returns whether there are
    /// bytes to write.
    ///
    /// Discarded parts move to `out` too, even if there are no bytes. [Dropping](Output::drop_discarded) them can run
    /// arbitrary code, so this is left to the writer.
    ///
    /// Framing can make queues [`Writable`](Event::Writable), so poll events afterwards.
    #[expect(clippy::inline_always, reason = "saves 150 instructions of a lone call")]
    #[inline(always)]
    pub fn take_output(&mut self, out: &mut Output) -> bool {
        debug_assert!(out.is_empty(), "earlier output must be written first");
        if self.sending.has_next() {
            self.frame_queued();
        }
        let is_taken = self.sending.take_output(out);
        if is_taken {
            self.budget.note_output_taken();
        }
        is_taken
    }

    /// Like [`take_output`](Self::take_output), for an `out` that was taken before and could not be written yet. Merges
    /// both, if the earlier output is contiguous.
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
        // Discarded parts are dropped by the writer, not here.
        both.move_discarded_to(out);
        is_taken
    }

    /// Gives the output an empty buffer to use; see [`Output::adopt_buffer`]. Lets connections whose output is mostly
    /// empty share memory.
    #[inline]
    pub fn adopt_output_buffer(&mut self, buffer: &mut Vec<u8>) {
        self.sending.output.adopt_buffer(buffer);
    }

    /// Returns whether data waits because the peer's connection window is exhausted.
    #[inline]
    pub fn is_window_blocked(&self) -> bool {
        self.sending.ready.has_blocked()
    }

    /// Returns whether to call [`take_output`](Connection::take_output). It may still return nothing, if all ready
    /// streams turn out to wait for the connection's window.
    pub fn wants_write(&self) -> bool {
        self.sending.has_output()
    }

    #[cold]
    fn unsendable_error(&self, stream: StreamId) -> SendError {
        if self.is_open(stream) {
            SendError::HalfClosed
        } else if self.is_closed() {
            SendError::Closed
        } else {
            SendError::UnknownStream
        }
    }

    /// Calls [`Sending::emit_data`](crate::sending::Sending::emit_data) and credits the frame.
    #[inline]
    pub(super) fn emit_data(&mut self, stream: StreamId, message: &[u8], end_stream: bool) {
        self.credit_work(message.len());
        self.sending.emit_data(stream, message, end_stream);
    }

    /// Appends a header block with its frame header and credits the frame.
    #[inline]
    pub(super) fn emit_headers(&mut self, stream: StreamId, block: Block<'_>, end_stream: bool) {
        let len = self.sending.emit_headers(stream, block, end_stream);
        self.credit_work(len);
    }

    /// Credits HEADERS or DATA toward control frames, and clears the client's ping strikes.
    #[inline]
    fn credit_work(&mut self, len: usize) {
        self.budget.pay_for_control_frames(len);
        self.pings.note_sent();
    }

    /// Starts a DATA frame or extends the last one, and credits it.
    #[inline]
    fn begin_frame(&mut self, stream: StreamId, len: usize) {
        self.credit_work(len);
        self.sending.begin_frame(stream, len);
    }

    #[inline]
    fn finish_frame(&mut self, key: StreamKey, end_stream: bool) {
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

    /// Sends one frame of a stream, as far as the windows allow, and reschedules the stream if it has more.
    fn frame_next(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let Some(len) = self.sending.frame_next(key, stream) else { return };
        self.budget.pay_for_control_frames(len);
        self.pings.note_sent();
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
