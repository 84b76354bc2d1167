//! Messages of a stream, as they arrive.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use thalweg_engine::{self as engine, Incoming, Prefix};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::codec;
use crate::message::{DecodeError, Message, Raw};
use crate::status::to_tonic;

/// The messages of a stream, in the order of their sending: a server's view of the requests, or a client's of the
/// responses. Also a [`Stream`].
///
/// To read gives the peer window to send more: a stream that is not read holds the peer back after one
/// receive window. A client that drops it before its end cancels the call.
pub struct Streaming<T: Message> {
    incoming: Incoming,
    /// Where the messages come from, if not from the wire. It is looked at where `incoming` has ended, so that streams
    /// from the wire pay nothing for it. In a mutex that is never locked: the stream stays `Sync`.
    elsewhere: Option<Mutex<Box<dyn Elsewhere<T>>>>,
    message: PhantomData<fn() -> T>,
}

/// What is next on a stream.
enum Found {
    /// A message, which lies whole in the buffer.
    Message(Prefix),
    End,
    Error(Status),
    /// The messages on the wire have ended, or never were there.
    Elsewhere,
}

/// Where the messages of a [`Streaming`] come from that is not read from the wire.
pub(crate) trait Elsewhere<T>: Send {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>>;

    /// The trailing metadata, once the messages have ended.
    fn take_trailers(&mut self) -> Option<MetadataMap>;
}

impl<T: Message> Streaming<T> {
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self { incoming, elsewhere: None, message: PhantomData }
    }

    /// The messages of any stream: for tests of handlers and of clients, and for what answers in a server's place. An
    /// error is the last of them.
    ///
    /// ```
    /// # use thalweg::{Raw, Status, Stream, Streaming};
    /// # fn example(stream: impl Stream<Item = Result<Raw, Status>> + Send + 'static) {
    /// let requests = Streaming::from_stream(stream);
    /// # }
    /// ```
    pub fn from_stream(stream: impl Stream<Item = Result<T, Status>> + Send + 'static) -> Self {
        Self::from_elsewhere(Messages(Some(Box::pin(stream))))
    }

    pub(crate) fn from_elsewhere(elsewhere: impl Elsewhere<T> + 'static) -> Self {
        let elsewhere = Some(Mutex::new(Box::new(elsewhere) as Box<dyn Elsewhere<T>>));
        Self { incoming: Incoming::detached(), elsewhere, message: PhantomData }
    }

    /// The next message; `None` when the peer has sent its last.
    ///
    /// Cancel-safe: dropping the future loses no message.
    ///
    /// # Errors
    /// On a client the status of the call if that is not OK, a lost connection (UNAVAILABLE), the deadline; on a
    /// server the call's cancellation.
    pub async fn message(&mut self) -> Result<Option<T>, Status> {
        if let Some(wire) = self.incoming.next_at_hand() {
            // Messages are large: one is decoded here, and not handed from function to function.
            return match T::decode(wire) {
                Ok(message) => Ok(Some(message)),
                Err(error) => Err(self.undecodable(&error)),
            };
        }
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    /// Reads the next message to the place of `message`; false when the peer has sent its last, which leaves `message`
    /// as it was.
    ///
    /// Nothing of what was in `message` stays but memory that its fields had allocated, where the messages' kind can
    /// use it again ([`Message::decode_into`]; prost's and buffa's do). For small messages this takes half of the time
    /// of [`message`](Self::message), which has to move each of them.
    ///
    /// Cancel-safe: dropping the future loses no message.
    ///
    /// # Errors
    /// As [`message`](Self::message). After an error it is not said what is in `message`.
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

    /// As [`message_into`](Self::message_into), for who writes a `poll` function: pending, it wakes the task of `cx`
    /// when there is more.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    #[inline]
    pub fn poll_message_into(&mut self, cx: &mut Context<'_>, message: &mut T) -> Poll<Result<bool, Status>> {
        let Some(wire) = self.incoming.next_at_hand() else { return self.poll_into(cx, message) };
        Poll::Ready(match message.decode_into(wire) {
            Ok(()) => Ok(true),
            Err(error) => Err(self.undecodable(&error)),
        })
    }

    /// As [`poll_message_into`](Self::poll_message_into), where the message is not at hand.
    #[inline(never)]
    fn poll_into(&mut self, cx: &mut Context<'_>, message: &mut T) -> Poll<Result<bool, Status>> {
        match self.poll_found(cx) {
            Poll::Ready(Found::Message(prefix)) => {
                let read =
                    self.incoming.take(prefix).and_then(|payload| codec::decode_into(payload, message));
                Poll::Ready(read.map(|()| true).map_err(|status| self.fail(status)))
            }
            Poll::Ready(Found::End) => Poll::Ready(Ok(false)),
            Poll::Ready(Found::Error(status)) => Poll::Ready(Err(status)),
            Poll::Ready(Found::Elsewhere) => self.poll_elsewhere(cx).map(|read| match read {
                None => Ok(false),
                Some(read) => read.map(|read| {
                    *message = read;
                    true
                }),
            }),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Reads messages to the places of `messages`, from the first on: waits for one, and takes those that are there
    /// behind it, as many as there are places for. How many were read; 0 when the peer has sent its last, or there are
    /// no places.
    ///
    /// Each place is read to as [`message_into`](Self::message_into) does it.
    ///
    /// Cancel-safe: dropping the future loses no message.
    ///
    /// # Errors
    /// As [`message`](Self::message), once the messages before it have been read.
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
                    // The next who asks gets it: where the wire has ended, it is looked for here.
                    self.elsewhere = Some(Mutex::new(Box::new(Failed(Some(status)))));
                    return Poll::Ready(Ok(count));
                }
                Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Ready(Ok(false)) | Poll::Pending => return Poll::Ready(Ok(count)),
            }
        }
        Poll::Ready(Ok(messages.len()))
    }

    /// The trailing metadata, once the messages have ended; reads over those that are left.
    pub async fn trailers(&mut self) -> Result<Option<MetadataMap>, Status> {
        while self.message().await?.is_some() {}
        Ok(self.take_trailers())
    }

    pub(crate) fn take_trailers(&mut self) -> Option<MetadataMap> {
        match self.elsewhere() {
            Some(elsewhere) => elsewhere.take_trailers(),
            None => self.incoming.take_trailers().map(MetadataMap::from_headers),
        }
    }

    fn elsewhere(&mut self) -> Option<&mut Box<dyn Elsewhere<T>>> {
        let elsewhere = self.elsewhere.as_mut()?;
        Some(elsewhere.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// The messages on the wire have ended, or never were there.
    #[cold]
    fn poll_elsewhere(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        match self.elsewhere() {
            Some(elsewhere) => elsewhere.poll_message(cx),
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

    /// As [`poll_message`](Self::poll_message), where the message is not at hand.
    #[inline(never)]
    fn poll_owned(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        let prefix = match self.poll_found(cx) {
            Poll::Ready(Found::Message(prefix)) => prefix,
            Poll::Ready(Found::End) => return Poll::Ready(None),
            Poll::Ready(Found::Error(status)) => return Poll::Ready(Some(Err(status))),
            Poll::Ready(Found::Elsewhere) => return self.poll_elsewhere(cx),
            Poll::Pending => return Poll::Pending,
        };
        match self.incoming.take(prefix).and_then(codec::decode) {
            Ok(message) => Poll::Ready(Some(Ok(message))),
            Err(status) => Poll::Ready(Some(Err(self.fail(status)))),
        }
    }

    fn poll_found(&mut self, cx: &mut Context<'_>) -> Poll<Found> {
        // What `poll_prefix` asks first: asked here, it costs a stream from the wire nothing.
        if self.incoming.is_finished() {
            return Poll::Ready(Found::Elsewhere);
        }
        match self.incoming.poll_prefix(cx) {
            Poll::Ready(Some(Ok(prefix))) => Poll::Ready(Found::Message(prefix)),
            Poll::Ready(Some(Err(status))) => Poll::Ready(Found::Error(to_tonic(status))),
            Poll::Ready(None) => Poll::Ready(Found::End),
            Poll::Pending => Poll::Pending,
        }
    }

    #[cold]
    fn undecodable(&mut self, error: &DecodeError) -> Status {
        self.fail(codec::undecodable(error))
    }

    /// A message that was taken is not what was expected.
    #[cold]
    fn fail(&mut self, status: engine::Status) -> Status {
        to_tonic(self.incoming.fail(status))
    }

    /// The last message stays as long as its call goes on.
    pub(crate) fn keep_taken(&self) {
        self.incoming.keep_taken();
    }
}

impl<T: Message> Streaming<T> {
    /// Waits for the next message and lends it, decoded by `read`; `wire_of` gives the bytes of one that did not come
    /// from the wire.
    pub(crate) async fn lend<'a, R>(
        &'a mut self,
        wire_of: fn(T) -> Bytes,
        read: impl FnOnce(&'a [u8]) -> Result<R, DecodeError>,
    ) -> Result<Option<R>, Status> {
        let lent = match self.incoming.prefix_at_hand() {
            Some(prefix) => self.incoming.lend(prefix),
            None => match poll_fn(|cx| self.poll_found(cx)).await {
                Found::Message(prefix) => self.incoming.lend(prefix),
                Found::End => return Ok(None),
                Found::Error(status) => return Err(status),
                Found::Elsewhere => match poll_fn(|cx| self.poll_elsewhere(cx)).await {
                    Some(message) => Ok(self.incoming.lend_kept(wire_of(message?))),
                    None => return Ok(None),
                },
            },
        };
        let lent = lent.map_err(to_tonic)?;
        read(lent.bytes).map(Some).map_err(|error| to_tonic(lent.fail(codec::undecodable(&error))))
    }
}

impl Streaming<Raw> {
    /// The bytes of the next message, where they lie: until the next one is asked for. `None` when the peer has sent
    /// its last.
    ///
    /// For decoders that borrow from what they decode, and for who looks at a few fields. Nothing is allocated or
    /// copied for a message that is not compressed.
    ///
    /// Cancel-safe: dropping the future loses no message.
    ///
    /// # Errors
    /// As [`message`](Self::message).
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
        match &self.elsewhere {
            None => debug.field("incoming", &self.incoming).finish(),
            Some(_) => debug.finish_non_exhaustive(),
        }
    }
}

/// Behind messages that were read together: the error that came instead of the next.
struct Failed(Option<Status>);

impl<T> Elsewhere<T> for Failed {
    fn poll_message(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        Poll::Ready(self.0.take().map(Err))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        None
    }
}

/// A stream of the application's; `None` behind its end.
struct Messages<St>(Option<Pin<Box<St>>>);

impl<T, St> Elsewhere<T> for Messages<St>
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
