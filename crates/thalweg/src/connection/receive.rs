//! Messages of one stream, as their reader takes them from the connection.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tonic::Status;

use super::slot::keep_waker;
use super::{Connection, End, Head, SlotKey, Trailers};
use crate::grpc::compression::{self, Encoding};
use crate::grpc::envelope::{self, Prefix};
use crate::message::Message;

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
    encoding: Option<Encoding>,
    message: PhantomData<fn() -> T>,
}

impl<T: Message> Incoming<T> {
    pub(crate) fn new(
        connection: Arc<Connection>,
        key: SlotKey,
        message_size_max: usize,
        encoding: Option<Encoding>,
    ) -> Self {
        Self { connection, key, buffer: Vec::new(), position: 0, message_size_max, encoding, message: PhantomData }
    }

    pub(crate) fn set_encoding(&mut self, encoding: Option<Encoding>) {
        self.encoding = encoding;
    }

    /// The next message; or, in the place of a message, how the stream ended.
    pub(crate) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Result<T, End>, Status>> {
        loop {
            if let Some(message) = self.cut()? {
                return Poll::Ready(Ok(Ok(message)));
            }
            if let Some(end) = ready!(self.poll_refill(cx))? {
                return Poll::Ready(Ok(Err(end)));
            }
        }
    }

    /// Cuts the next message out of the buffer, if it lies there whole.
    fn cut(&mut self) -> Result<Option<T>, Status> {
        let unread = &self.buffer[self.position..];
        let Some(prefix) = envelope::parse_prefix(unread, self.message_size_max)? else { return Ok(None) };
        let Some(body) = unread.get(envelope::PREFIX_LEN..envelope::PREFIX_LEN + prefix.len) else {
            return Ok(None);
        };
        let message = decode(prefix, body, self.encoding, self.message_size_max)?;
        self.position += envelope::PREFIX_LEN + prefix.len;
        Ok(Some(message))
    }

    /// Takes what has arrived. `Some` when nothing more will.
    fn poll_refill(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<End>, Status>> {
        let mut state = self.connection.lock();
        let Some((slot, http2, _)) = state.parts(self.key) else {
            return Poll::Ready(Err(Status::internal("the stream was read after its end")));
        };
        let tail = self.buffer.len() - self.position;
        if tail == 0 {
            self.buffer.clear();
        } else {
            let mut tail_buffer = std::mem::take(&mut self.buffer);
            tail_buffer.drain(..self.position);
            slot.put_back(tail_buffer, http2)?;
        }
        self.position = 0;
        if slot.is_ready() {
            slot.take_inbox(&mut self.buffer, http2);
            // Given-back window may be a WINDOW_UPDATE by now.
            if http2.wants_write() {
                state.notify_driver();
            }
            return Poll::Ready(Ok(None));
        }
        match &slot.end {
            Some(End::Complete(_)) if !slot.inbox.is_empty() => {
                Poll::Ready(Err(Status::internal(format!(
                    "the stream ended inside a message, {} bytes into it",
                    slot.inbox.len()
                ))))
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
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arc<Head>, End>> {
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
        keep_waker(&mut slot.receiver, cx.waker());
        Poll::Pending
    }

    /// A client is done with the call: if it is still going on, it is reset with CANCEL. Does nothing the second time.
    pub(crate) fn cancel(&mut self) {
        self.connection.cancel(self.key);
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
        f.debug_struct("Incoming").field("key", &self.key).field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// Decodes one message that lies whole in `body`.
pub(crate) fn decode<T: Message>(
    prefix: Prefix,
    body: &[u8],
    encoding: Option<Encoding>,
    message_size_max: usize,
) -> Result<T, Status> {
    let decoded = if prefix.compressed {
        let encoding = encoding
            .ok_or_else(|| Status::internal("a message is marked compressed, but grpc-encoding names no encoding"))?;
        let plain = compression::decompress(encoding, body, message_size_max)?;
        T::decode_owned(plain.into())
    } else {
        T::decode(body)
    };
    decoded.map_err(|error| Status::internal(format!("the message could not be decoded: {error}")))
}

/// The status and the trailers that an end stands for.
pub(crate) fn status_of(end: End) -> Result<Option<Box<Trailers>>, Status> {
    match end {
        End::Complete(None) => Ok(None),
        End::Complete(Some(trailers)) => match trailers.error {
            Some(status) => Err(status),
            None => Ok(Some(trailers)),
        },
        End::Lost { status, .. } => Err(status),
    }
}
