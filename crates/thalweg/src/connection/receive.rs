//! Messages of one stream, as their reader takes them from the connection.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tonic::Status;

use super::slot::keep_waker;
use super::{Connection, End, SlotKey};
use crate::grpc::codec::{self, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::{EnvelopeError, Prefix};
use crate::grpc::response::ResponseHead;
use crate::measure::CallMeasure;
use crate::message::Message;

/// Bytes behind a large message that are copied, so that it can keep the buffer.
const TAIL_MAX: usize = 4 * 1024;

/// The reading half of a stream. Dropping it gives its slot back.
///
/// Bytes are taken from the slot in bulk, and cut into messages here, on the reader's own time.
pub(crate) struct Incoming<T> {
    connection: Arc<Connection>,
    key: SlotKey,
    buffer: Vec<u8>,
    /// How much of `buffer` has been read.
    position: usize,
    message_size_max: usize,
    encoding: Encoding,
    measure: CallMeasure,
    message: PhantomData<fn() -> T>,
}

impl<T: Message> Incoming<T> {
    pub(crate) fn new(
        connection: Arc<Connection>,
        key: SlotKey,
        message_size_max: usize,
        encoding: Encoding,
        measure: CallMeasure,
    ) -> Self {
        Self {
            connection,
            key,
            buffer: Vec::new(),
            position: 0,
            message_size_max,
            encoding,
            measure,
            message: PhantomData,
        }
    }

    pub(crate) fn set_encoding(&mut self, encoding: Encoding) {
        self.encoding = encoding;
    }

    /// The next message; or, in the place of a message, how the stream ended.
    #[inline]
    pub(crate) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Result<T, End>, Status>> {
        loop {
            if let Some(prefix) = self.find_whole()? {
                self.measure.received(prefix.len);
                return Poll::Ready(self.cut(prefix).map(Ok));
            }
            if let Some(end) = ready!(self.poll_refill(cx))? {
                return Poll::Ready(Ok(Err(end)));
            }
        }
    }

    /// The prefix of the next message, if that lies whole in the buffer.
    #[inline]
    fn find_whole(&self) -> Result<Option<Prefix>, Status> {
        let unread = &self.buffer[self.position..];
        let prefix = Prefix::parse(unread, self.message_size_max)?;
        Ok(prefix.filter(|prefix| unread.len() >= prefix.envelope_len()))
    }

    /// Cuts the next message out of the buffer. Inlined, as are its callers: a message is some hundred bytes of small
    /// fields, and each time that one is moved right after it was made the processor waits for their stores.
    #[inline]
    fn cut(&mut self, prefix: Prefix) -> Result<T, Status> {
        let unread = &self.buffer[self.position..];
        if self.position == 0
            && codec::keeps_buffer(prefix.len)
            && unread.len() - prefix.envelope_len() <= TAIL_MAX
        {
            return self.cut_whole(prefix);
        }
        self.position += prefix.envelope_len();
        codec::decode(prefix, Wire::Lent(unread), self.encoding, self.message_size_max)
    }

    /// Gives the buffer to the message that (almost) fills it; the few bytes behind it are copied.
    #[cold]
    fn cut_whole(&mut self, prefix: Prefix) -> Result<T, Status> {
        let tail = self.buffer[prefix.envelope_len()..].to_vec();
        let wire = Wire::Gathered(std::mem::replace(&mut self.buffer, tail));
        codec::decode(prefix, wire, self.encoding, self.message_size_max)
    }

    /// Takes what has arrived. `Some` when nothing more will.
    fn poll_refill(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<End>, Status>> {
        let mut state = self.connection.lock();
        let Some((slot, http2, _)) = state.parts(self.key) else {
            return Poll::Ready(Err(Status::internal("the stream was read after its end")));
        };
        let tail = if self.position == self.buffer.len() {
            self.buffer.clear();
            Vec::new()
        } else {
            let mut tail = std::mem::take(&mut self.buffer);
            tail.drain(..self.position);
            tail
        };
        self.position = 0;
        if slot.put_back(tail, http2)? {
            slot.take_inbox(&mut self.buffer, http2);
            // Given-back window may be a WINDOW_UPDATE by now.
            if http2.wants_write() {
                state.notify_driver();
            }
            return Poll::Ready(Ok(None));
        }
        match &slot.end {
            Some(End::Complete(Ok(_))) if !slot.inbox.is_empty() => {
                Poll::Ready(Err(EnvelopeError::Truncated { received: slot.inbox.len() }.into()))
            }
            Some(end) => Poll::Ready(Ok(Some(end.clone()))),
            None => {
                keep_waker(&mut slot.receiver, cx.waker());
                if http2.wants_write() {
                    state.notify_driver();
                }
                Poll::Pending
            }
        }
    }

    /// Client: the head of the response, or the end that came in its place.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arc<ResponseHead>, End>> {
        let mut state = self.connection.lock();
        let Some(slot) = state.slot(self.key) else {
            let status = Status::internal("the stream was read after its end");
            return Poll::Ready(Err(End::Lost { status, unprocessed: false }));
        };
        if let Some(head) = &slot.head {
            return Poll::Ready(Ok(Arc::clone(head)));
        }
        if let Some(end) = &slot.end {
            return Poll::Ready(Err(end.clone()));
        }
        slot.wake_on_head = true;
        keep_waker(&mut slot.receiver, cx.waker());
        Poll::Pending
    }

    /// A client is done with the call: if it is still going on, it is reset with CANCEL. Does nothing the second time.
    pub(crate) fn cancel(&mut self) {
        self.connection.cancel(self.key);
    }

    pub(crate) fn measure(&self) -> &CallMeasure {
        &self.measure
    }

    /// Where the stream is.
    pub(crate) fn place(&self) -> (Arc<Connection>, SlotKey) {
        (Arc::clone(&self.connection), self.key)
    }

    /// A server's handler reads no more requests.
    pub(crate) fn discard(&mut self) {
        let mut state = self.connection.lock();
        if let Some((slot, http2, _)) = state.parts(self.key) {
            slot.discard(http2);
            if http2.wants_write() {
                state.notify_driver();
            }
        }
    }
}

impl<T> std::fmt::Debug for Incoming<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming")
            .field("key", &self.key)
            .field("buffered", &self.buffer.len())
            .finish_non_exhaustive()
    }
}
