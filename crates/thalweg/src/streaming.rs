//! Messages of a stream, as they arrive.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_engine::Incoming;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::codec;
use crate::message::Message;
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
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
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
        // What `poll_prefix` asks first: asked here, it costs a stream from the wire nothing.
        if self.incoming.is_finished() {
            return self.poll_elsewhere(cx);
        }
        self.poll_wire(cx)
    }

    /// The last message stays as long as its call goes on.
    pub(crate) fn keep_taken(&self) {
        self.incoming.keep_taken();
    }

    #[inline]
    fn poll_wire(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        let prefix = match self.incoming.poll_prefix(cx) {
            Poll::Ready(Some(Ok(prefix))) => prefix,
            Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(to_tonic(status)))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        match self.incoming.take(prefix).and_then(codec::decode) {
            Ok(message) => Poll::Ready(Some(Ok(message))),
            Err(status) => Poll::Ready(Some(Err(to_tonic(self.incoming.fail(status))))),
        }
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
