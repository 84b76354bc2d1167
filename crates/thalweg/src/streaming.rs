//! Received messages of a stream: [`Streaming`].

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use thalweg_core::Status;
use thalweg_core::metadata::MetadataMap;
use thalweg_engine::{Incoming, Prefix};

use crate::codec;
use crate::message::{DecodeError, Message, Raw};

/// Received messages of a stream, in order: the requests on a server, the responses on a client. Also a [`Stream`].
///
/// Reading opens the peer's flow-control window: an unread stream stops the peer after one receive window. On a client,
/// dropping it before its end cancels the call.
pub struct Streaming<T: Message> {
    incoming: Incoming,
    /// Source of the messages if they do not come from the wire. It is checked only once `incoming` is finished, so
    /// streams from the wire pay nothing for it. The mutex is never locked; it keeps the stream `Sync`.
    source: Option<Mutex<Box<dyn MessageSource<T>>>>,
    message: PhantomData<fn() -> T>,
}

/// Next item of a stream.
enum NextItem {
    /// A message that is complete in the buffer.
    Message(Prefix),
    End,
    Error(Status),
    /// The wire has no (more) messages; the other source may have some.
    FromSource,
}

/// Source of a [`Streaming`]'s messages other than the wire.
pub(crate) trait MessageSource<T>: Send {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>>;

    /// Returns the trailing metadata, once the messages have ended.
    fn take_trailers(&mut self) -> Option<MetadataMap>;
}

impl<T: Message> Streaming<T> {
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self { incoming, source: None, message: PhantomData }
    }

    /// Creates a `Streaming` from any stream of messages, for tests of handlers and clients and for stand-ins of
    /// servers. An error ends the stream.
    ///
    /// ```
    /// # use thalweg::{Raw, Status, Stream, Streaming};
    /// # fn example(stream: impl Stream<Item = Result<Raw, Status>> + Send + 'static) {
    /// let requests = Streaming::from_stream(stream);
    /// # }
    /// ```
    pub fn from_stream(stream: impl Stream<Item = Result<T, Status>> + Send + 'static) -> Self {
        Self::from_source(Messages(Some(Box::pin(stream))))
    }

    pub(crate) fn from_source(source: impl MessageSource<T> + 'static) -> Self {
        let source = Some(Mutex::new(Box::new(source) as Box<dyn MessageSource<T>>));
        Self { incoming: Incoming::detached(), source, message: PhantomData }
    }

    /// Waits for the next message; `None` after the peer's last message.
    ///
    /// # Errors
    /// On a client: the call's status if it is not OK, UNAVAILABLE for a lost connection, or DEADLINE_EXCEEDED. On a
    /// server: the call's cancellation.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    pub async fn message(&mut self) -> Result<Option<T>, Status> {
        if let Some(wire) = self.incoming.next_at_hand() {
            // Messages are large: decoding it here avoids moving it between functions.
            return match T::decode(wire) {
                Ok(message) => Ok(Some(message)),
                Err(error) => Err(self.undecodable(&error)),
            };
        }
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    /// Reads the next message into `message`. Returns false after the peer's last message and leaves `message`
    /// unchanged.
    ///
    /// The old content of `message` is overwritten, but allocations of its fields are reused if the message type
    /// supports it ([`Message::decode_into`]; prost and buffa do). For small messages this takes half the time of
    /// [`message`](Self::message), which has to move each message.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// Same as [`message`](Self::message). After an error the content of `message` is unspecified.
    ///
    /// # Examples
    ///
    /// ```
    /// # use thalweg::{Raw, Status, Streaming};
    /// async fn total_bytes(mut readings: Streaming<Raw>) -> Result<usize, Status> {
    ///     let (mut reading, mut total) = (Raw::default(), 0);
    ///     while readings.message_into(&mut reading).await? {
    ///         total += reading.0.len();
    ///     }
    ///     Ok(total)
    /// }
    /// ```
    pub async fn message_into(&mut self, message: &mut T) -> Result<bool, Status> {
        if let Some(wire) = self.incoming.next_at_hand() {
            return match message.decode_into(wire) {
                Ok(()) => Ok(true),
                Err(error) => Err(self.undecodable(&error)),
            };
        }
        poll_fn(|cx| self.poll_into(cx, message)).await
    }

    /// Polls for the next message like [`message_into`](Self::message_into), for `poll` functions. If pending, it wakes
    /// the task of `cx` when there is more.
    ///
    /// # Errors
    /// Same as [`message_into`](Self::message_into).
    #[inline]
    pub fn poll_message_into(&mut self, cx: &mut Context<'_>, message: &mut T) -> Poll<Result<bool, Status>> {
        let Some(wire) = self.incoming.next_at_hand() else { return self.poll_into(cx, message) };
        Poll::Ready(match message.decode_into(wire) {
            Ok(()) => Ok(true),
            Err(error) => Err(self.undecodable(&error)),
        })
    }

    /// Like [`poll_message_into`](Self::poll_message_into), for a message that is not yet complete in the buffer.
    #[inline(never)]
    fn poll_into(&mut self, cx: &mut Context<'_>, message: &mut T) -> Poll<Result<bool, Status>> {
        match self.poll_next_item(cx) {
            Poll::Ready(NextItem::Message(prefix)) => {
                let read =
                    self.incoming.take(prefix).and_then(|payload| codec::decode_into(payload, message));
                Poll::Ready(read.map(|()| true).map_err(|status| self.fail(status)))
            }
            Poll::Ready(NextItem::End) => Poll::Ready(Ok(false)),
            Poll::Ready(NextItem::Error(status)) => Poll::Ready(Err(status)),
            Poll::Ready(NextItem::FromSource) => self.poll_source(cx).map(|read| match read {
                None => Ok(false),
                Some(read) => read.map(|read| {
                    *message = read;
                    true
                }),
            }),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits for one message and reads it, and further messages that have already arrived, into `messages`, from the
    /// first slot on. Returns the number of messages read; 0 after the peer's last message or if `messages` is empty.
    ///
    /// Each slot is overwritten as by [`message_into`](Self::message_into).
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// Same as [`message`](Self::message), once the messages before the error have been read.
    ///
    /// # Examples
    ///
    /// ```
    /// # use thalweg::{Raw, Status, Streaming};
    /// # async fn store(_: &[Raw]) {}
    /// async fn record(mut readings: Streaming<Raw>) -> Result<(), Status> {
    ///     let mut places = vec![Raw::default(); 256];
    ///     loop {
    ///         match readings.messages_into(&mut places).await? {
    ///             0 => return Ok(()),
    ///             count => store(&places[..count]).await,
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn messages_into(&mut self, messages: &mut [T]) -> Result<usize, Status> {
        poll_fn(|cx| self.poll_messages_into(cx, messages)).await
    }

    fn poll_messages_into(
        &mut self,
        cx: &mut Context<'_>,
        messages: &mut [T],
    ) -> Poll<Result<usize, Status>> {
        for (count, message) in messages.iter_mut().enumerate() {
            match self.poll_message_into(cx, message) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Err(status)) if count == 0 => return Poll::Ready(Err(status)),
                Poll::Ready(Err(status)) => {
                    // Keeps the error for the next read, which looks here once the wire has ended.
                    self.source = Some(Mutex::new(Box::new(Failed(Some(status)))));
                    return Poll::Ready(Ok(count));
                }
                Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Ready(Ok(false)) | Poll::Pending => return Poll::Ready(Ok(count)),
            }
        }
        Poll::Ready(Ok(messages.len()))
    }

    /// Returns the trailing metadata; discards messages that are left.
    ///
    /// # Errors
    /// Same as [`message`](Self::message).
    pub async fn trailers(&mut self) -> Result<Option<MetadataMap>, Status> {
        while self.message().await?.is_some() {}
        Ok(self.take_trailers())
    }

    pub(crate) fn take_trailers(&mut self) -> Option<MetadataMap> {
        match self.source() {
            Some(source) => source.take_trailers(),
            None => self.incoming.take_trailers().map(MetadataMap::from_headers),
        }
    }

    fn source(&mut self) -> Option<&mut Box<dyn MessageSource<T>>> {
        let source = self.source.as_mut()?;
        Some(source.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Polls the other source: there are no (more) messages on the wire.
    #[cold]
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        match self.source() {
            Some(source) => source.poll_message(cx),
            None => Poll::Ready(None),
        }
    }

    #[inline]
    pub(crate) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        let Some(wire) = self.incoming.next_at_hand() else { return self.poll_owned(cx) };
        Poll::Ready(Some(match T::decode(wire) {
            Ok(message) => Ok(message),
            Err(error) => Err(self.undecodable(&error)),
        }))
    }

    /// Like [`poll_message`](Self::poll_message), for a message that is not yet complete in the buffer.
    #[inline(never)]
    fn poll_owned(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        let prefix = match self.poll_next_item(cx) {
            Poll::Ready(NextItem::Message(prefix)) => prefix,
            Poll::Ready(NextItem::End) => return Poll::Ready(None),
            Poll::Ready(NextItem::Error(status)) => return Poll::Ready(Some(Err(status))),
            Poll::Ready(NextItem::FromSource) => return self.poll_source(cx),
            Poll::Pending => return Poll::Pending,
        };
        match self.incoming.take(prefix).and_then(codec::decode) {
            Ok(message) => Poll::Ready(Some(Ok(message))),
            Err(status) => Poll::Ready(Some(Err(self.fail(status)))),
        }
    }

    fn poll_next_item(&mut self, cx: &mut Context<'_>) -> Poll<NextItem> {
        // `poll_prefix` checks this first, so checking it here adds no cost to a stream from the wire.
        if self.incoming.is_finished() {
            return Poll::Ready(NextItem::FromSource);
        }
        match self.incoming.poll_prefix(cx) {
            Poll::Ready(Some(Ok(prefix))) => Poll::Ready(NextItem::Message(prefix)),
            Poll::Ready(Some(Err(status))) => Poll::Ready(NextItem::Error(status)),
            Poll::Ready(None) => Poll::Ready(NextItem::End),
            Poll::Pending => Poll::Pending,
        }
    }

    #[cold]
    fn undecodable(&mut self, error: &DecodeError) -> Status {
        self.fail(codec::undecodable(error))
    }

    /// Fails the call because a message could not be used.
    #[cold]
    fn fail(&mut self, status: Status) -> Status {
        self.incoming.fail(status)
    }

    /// Counts the memory of the last message until its call ends.
    pub(crate) fn keep_taken(&self) {
        self.incoming.count_taken();
    }
}

impl<T: Message> Streaming<T> {
    /// Waits for the next message and lends it, decoded by `read`. `wire_of` returns the bytes of a message that did
    /// not come from the wire.
    pub(crate) async fn lend<'a, R>(
        &'a mut self,
        wire_of: fn(T) -> Bytes,
        read: impl FnOnce(&'a [u8]) -> Result<R, DecodeError>,
    ) -> Result<Option<R>, Status> {
        let borrowed = match self.incoming.prefix_at_hand() {
            Some(prefix) => self.incoming.lend(prefix),
            None => match poll_fn(|cx| self.poll_next_item(cx)).await {
                NextItem::Message(prefix) => self.incoming.lend(prefix),
                NextItem::End => return Ok(None),
                NextItem::Error(status) => return Err(status),
                NextItem::FromSource => match poll_fn(|cx| self.poll_source(cx)).await {
                    Some(message) => Ok(self.incoming.lend_owned(wire_of(message?))),
                    None => return Ok(None),
                },
            },
        };
        let borrowed = borrowed?;
        read(borrowed.bytes).map(Some).map_err(|error| borrowed.fail(codec::undecodable(&error)))
    }
}

impl Streaming<Raw> {
    /// Waits for the next message and returns its bytes in place, valid until the next read. `None` after the peer's
    /// last message.
    ///
    /// For decoders that borrow from their input, and for readers of only a few fields. An uncompressed message is
    /// neither allocated nor copied.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// Same as [`message`](Self::message).
    ///
    /// # Examples
    ///
    /// ```
    /// # use thalweg::{Raw, Status, Streaming};
    /// async fn longest(mut lines: Streaming<Raw>) -> Result<usize, Status> {
    ///     let mut longest = 0;
    ///     while let Some(line) = lines.next_bytes().await? {
    ///         longest = longest.max(line.len());
    ///     }
    ///     Ok(longest)
    /// }
    /// ```
    pub async fn next_bytes(&mut self) -> Result<Option<&[u8]>, Status> {
        self.lend(|Raw(bytes)| bytes, Ok).await
    }
}

impl<T: Message> Stream for Streaming<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

impl<T: Message> fmt::Debug for Streaming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Streaming");
        match &self.source {
            None => debug.field("incoming", &self.incoming).finish(),
            Some(_) => debug.finish_non_exhaustive(),
        }
    }
}

/// The error that follows messages that were read together.
struct Failed(Option<Status>);

impl<T> MessageSource<T> for Failed {
    fn poll_message(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        Poll::Ready(self.0.take().map(Err))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        None
    }
}

/// A stream of the application; `None` after its end.
struct Messages<St>(Option<Pin<Box<St>>>);

impl<T, St> MessageSource<T> for Messages<St>
where
    St: Stream<Item = Result<T, Status>> + Send,
{
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        let Some(stream) = &mut self.0 else { return Poll::Ready(None) };
        let polled = stream.as_mut().poll_next(cx);
        if let Poll::Ready(None | Some(Err(_))) = &polled {
            self.0 = None;
        }
        polled
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        None
    }
}
