//! Opening streams (client).

use super::{Connection, Role};
use crate::error::OpenError;
use crate::event::Event;
use crate::fields::Block;
use crate::flow::{ReceiveWindow, SendWindow};
use crate::send_queue::SendQueue;
use crate::stream::{Scheduled, Stream, StreamId, StreamState, Tag};

impl Connection {
    /// Returns whether a stream can be opened now (client).
    pub fn can_open(&self) -> bool {
        self.check_open().is_ok()
    }

    /// Requests [`Event::StreamsFree`] for when a stream can be opened (client). Returns `false`, and no event follows,
    /// if one can be opened already or the connection accepts no more streams.
    pub fn notify_free_stream(&mut self) -> bool {
        let is_wanted = self.check_open() == Err(OpenError::NoFreeStream);
        self.stream_end_awaited |= is_wanted;
        is_wanted
    }

    /// Opens a stream with a request's headers (client). On servers it returns `Closed`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; nothing was sent. After `NoFreeStream`, wait for [`Event::StreamsFree`].
    pub fn open(&mut self, tag: Tag, headers: Block<'_>, end_stream: bool) -> Result<StreamId, OpenError> {
        self.check_header_list_size(headers)?;
        let stream = self.open_stream(tag, end_stream, 0)?;
        self.emit_headers(stream, headers, end_stream);
        Ok(stream)
    }

    /// Returns the peer's maximum header list size in bytes, counted as in RFC 9113 §6.5.2.
    pub fn header_list_max(&self) -> usize {
        self.sending.peer.max_header_list_size as usize
    }

    /// Headers consisting of fixed fields only are small enough for any peer.
    #[inline]
    fn check_header_list_size(&self, headers: Block<'_>) -> Result<(), OpenError> {
        if headers.extra.is_empty() {
            return Ok(());
        }
        let size = headers.extra.size() + headers.fixed.map_or(0, |fixed| fixed.fields().size());
        let size_max = self.header_list_max();
        if size > size_max { Err(OpenError::HeadersTooLarge { size, size_max }) } else { Ok(()) }
    }

    /// Opens a stream with a complete small request (client): its headers and a message that ends it.
    ///
    /// Returns the stream and whether the message was sent too. If the message has to wait (for a window or the output,
    /// or because it exceeds a frame), call [`send_data`](Connection::send_data) next.
    ///
    /// # Errors
    ///
    /// See [`open`](Connection::open).
    #[inline]
    pub fn open_with_message(
        &mut self,
        tag: Tag,
        headers: Block<'_>,
        message: &[u8],
    ) -> Result<(StreamId, bool), OpenError> {
        let len = message.len();
        let can_bypass_queues = self.sending.can_bypass_queues(len, self.config.output_target);
        if !can_bypass_queues || len > self.sending.peer.initial_window as usize {
            return self.open(tag, headers, false).map(|stream| (stream, false));
        }
        self.check_header_list_size(headers)?;
        let stream = self.open_stream(tag, true, len)?;
        self.emit_headers(stream, headers, false);
        self.emit_data(stream, message, true);
        Ok((stream, true))
    }

    fn check_open(&self) -> Result<(), OpenError> {
        if self.shutdown.is_closed() || self.role == Role::Server {
            return Err(OpenError::Closed);
        }
        if self.shutdown.peer_going_away() || self.shutdown.is_draining() {
            return Err(OpenError::GoingAway);
        }
        if self.next_id() > StreamId::MAX.get() {
            return Err(OpenError::IdsExhausted);
        }
        let streams_max = self.sending.peer.max_concurrent_streams.min(self.config.max_opened_streams);
        if self.streams.len() >= streams_max as usize {
            return Err(OpenError::NoFreeStream);
        }
        Ok(())
    }

    fn next_id(&self) -> u32 {
        match self.streams.highest().get() {
            0 => 1,
            highest => highest + 2,
        }
    }

    /// Adds a new stream to the table. `len` bytes of DATA are sent immediately.
    #[inline]
    fn open_stream(&mut self, tag: Tag, end_stream: bool, len: usize) -> Result<StreamId, OpenError> {
        debug_assert!(self.role == Role::Client, "servers do not open streams");
        if let Err(error) = self.check_open() {
            self.stream_end_awaited |= error == OpenError::NoFreeStream;
            return Err(error);
        }
        let id = StreamId::new(self.next_id());
        self.streams.use_id(id);
        let mut stream = self.new_stream(id, tag, StreamState::opened_here(end_stream), None);
        stream.send_window.consume(len);
        self.streams.insert(stream);
        Ok(id)
    }

    #[inline]
    pub(super) fn new_stream(
        &self,
        id: StreamId,
        tag: Tag,
        state: StreamState,
        body_left: Option<u64>,
    ) -> Stream {
        Stream {
            id,
            tag,
            state,
            scheduled: Scheduled::No,
            send_window: SendWindow::new(self.sending.peer.initial_window),
            receive_window: ReceiveWindow::new(self.receiving.stream_window),
            required: 0,
            queue: SendQueue::EMPTY,
            body_left,
            opened_in: self.receiving.batch,
        }
    }

    /// Handles the end of a stream that something waits for: the driver for a free stream, or a drain for the last one.
    #[cold]
    pub(super) fn stream_ended(&mut self) {
        if self.shutdown.is_draining() {
            if self.streams.len() == 0 {
                self.stream_end_awaited = false;
                self.send_last_goaway();
            }
        } else if self.can_open() {
            self.stream_end_awaited = false;
            self.pending.push_back(Event::StreamsFree);
        }
    }
}
