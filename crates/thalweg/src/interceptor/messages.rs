//! Type-erased messages of one direction of a call: [`Messages`].

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use thalweg_core::Status;
use thalweg_core::metadata::MetadataMap;

use super::message::AnyMessage;
use crate::message::Message;
use crate::streaming::{MessageSource, Streaming};

/// The messages that one side of a call sends, as an interceptor sees them: one message or a stream.
///
/// An interceptor observes them as they pass ([`on_message`](Self::on_message), [`on_end`](Self::on_end)), or replaces
/// them ([`one`](Self::one), [`stream`](Self::stream)). `Messages` is also a [`Stream`].
pub struct Messages(MessagesKind);

enum MessagesKind {
    /// `None` once it was taken.
    One(Option<AnyMessage>),
    /// The mutex is never locked; it keeps a call `Sync`.
    Stream(Mutex<Box<dyn ErasedStream>>),
    /// An interceptor rejected the single message.
    Rejected(Option<Status>),
}

/// A stream of messages of any type.
trait ErasedStream: Any + Send {
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>>;

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        None
    }
}

impl Messages {
    /// Creates a single message.
    pub fn one(message: impl Message) -> Self {
        Self(MessagesKind::One(Some(AnyMessage::new(message))))
    }

    /// Creates an empty value, for a request that is still to be read.
    pub(crate) fn none() -> Self {
        Self(MessagesKind::One(None))
    }

    /// Creates a stream of messages. An error ends the stream and the call. On a server, the call ends with that
    /// status; on a client, it fails with it, and the server sees a cancellation.
    pub fn stream<M: Message>(stream: impl Stream<Item = Result<M, Status>> + Send + 'static) -> Self {
        Self::of(SentStream(Box::pin(stream)))
    }

    /// Wraps messages that are read from the wire.
    pub(crate) fn received<M: Message>(streaming: Streaming<M>) -> Self {
        Self::of(streaming)
    }

    fn of(stream: impl ErasedStream + 'static) -> Self {
        Self(MessagesKind::Stream(Mutex::new(Box::new(stream))))
    }

    /// Calls `each` with every message as it passes; `each` may change it. A single message is passed at once, those of
    /// a stream as they are read. An error replaces the message and ends the stream: sending fails with it, and a
    /// reader receives it.
    pub fn on_message(
        self,
        mut each: impl FnMut(&mut AnyMessage) -> Result<(), Status> + Send + 'static,
    ) -> Self {
        match self.0 {
            MessagesKind::One(Some(mut message)) => match each(&mut message) {
                Ok(()) => Self(MessagesKind::One(Some(message))),
                Err(status) => Self(MessagesKind::Rejected(Some(status))),
            },
            MessagesKind::Stream(_) => Self::of(ObservedMessages { messages: self, each: Some(each) }),
            MessagesKind::One(None) | MessagesKind::Rejected(_) => self,
        }
    }

    /// Calls `end` once when the messages end: with the trailing metadata, or with the status that ended them. The
    /// status is CANCELLED if the stream was dropped early. For a single message, `end` is called at once.
    ///
    /// Only streams received by a client have trailing metadata.
    pub fn on_end(self, end: impl FnOnce(Result<&MetadataMap, &Status>) + Send + 'static) -> Self {
        match self.0 {
            MessagesKind::Stream(_) => {
                Self::of(ObservedEnd { messages: self, end: Some(end), trailers: None })
            }
            MessagesKind::Rejected(Some(ref status)) => {
                end(Err(status));
                self
            }
            MessagesKind::One(_) | MessagesKind::Rejected(None) => {
                end(Ok(&MetadataMap::new()));
                self
            }
        }
    }

    /// Returns the message if it is a single one; `None` for a stream.
    pub fn as_one(&self) -> Option<&AnyMessage> {
        match &self.0 {
            MessagesKind::One(message) => message.as_ref(),
            MessagesKind::Stream(_) | MessagesKind::Rejected(_) => None,
        }
    }

    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        match &mut self.0 {
            MessagesKind::One(message) => Poll::Ready(message.take().map(Ok)),
            MessagesKind::Stream(stream) => {
                stream.get_mut().unwrap_or_else(PoisonError::into_inner).poll_any(cx)
            }
            MessagesKind::Rejected(status) => Poll::Ready(status.take().map(Err)),
        }
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        match &mut self.0 {
            MessagesKind::Stream(stream) => {
                stream.get_mut().unwrap_or_else(PoisonError::into_inner).take_trailers()
            }
            MessagesKind::One(_) | MessagesKind::Rejected(_) => None,
        }
    }

    /// Returns the only message of a direction that has exactly one.
    pub(crate) async fn only(mut self) -> Result<AnyMessage, Status> {
        let mut next = async || poll_fn(|cx| self.poll_any(cx)).await.transpose();
        let Some(message) = next().await? else {
            return Err(Status::internal("an interceptor removed the only message"));
        };
        match next().await? {
            None => Ok(message),
            Some(_) => Err(Status::internal("an interceptor returned several messages, expected one")),
        }
    }

    /// Returns the messages as a typed stream, for the code behind the interceptors.
    pub(crate) fn into_streaming<M: Message>(self) -> Streaming<M> {
        let stream = match self.0 {
            MessagesKind::Stream(stream) => stream.into_inner().unwrap_or_else(PoisonError::into_inner),
            one => return Streaming::from_source(Self(one)),
        };
        let is_untouched = (&*stream as &dyn Any).is::<Streaming<M>>();
        if !is_untouched {
            return Streaming::from_source(Self(MessagesKind::Stream(Mutex::new(stream))));
        }
        let stream: Box<dyn Any> = stream;
        *stream.downcast().expect("checked type was checked")
    }
}

impl Stream for Messages {
    type Item = Result<AnyMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_any(cx)
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            MessagesKind::One(message) => f.debug_tuple("One").field(message).finish(),
            MessagesKind::Stream(_) => f.write_str("Stream(..)"),
            MessagesKind::Rejected(status) => f.debug_tuple("Rejected").field(status).finish(),
        }
    }
}

impl<M: Message> MessageSource<M> for Messages {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<M, Status>>> {
        let message = ready!(self.poll_any(cx));
        Poll::Ready(message.map(|message| message.and_then(AnyMessage::into_message)))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.take_trailers()
    }
}

impl<M: Message> ErasedStream for Streaming<M> {
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        self.poll_message(cx).map(|message| message.map(|message| message.map(AnyMessage::new)))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.take_trailers()
    }
}

/// A stream that this side sends.
struct SentStream<St>(Pin<Box<St>>);

impl<M, St> ErasedStream for SentStream<St>
where
    M: Message,
    St: Stream<Item = Result<M, Status>> + Send + 'static,
{
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        let message = self.0.as_mut().poll_next(cx);
        message.map(|message| message.map(|message| message.map(AnyMessage::new)))
    }
}

/// A stream with an observer of its messages; `each` is `None` after an error.
struct ObservedMessages<F> {
    messages: Messages,
    each: Option<F>,
}

impl<F> ErasedStream for ObservedMessages<F>
where
    F: FnMut(&mut AnyMessage) -> Result<(), Status> + Send + 'static,
{
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        let Some(each) = &mut self.each else { return Poll::Ready(None) };
        let Some(message) = ready!(self.messages.poll_any(cx)) else { return Poll::Ready(None) };
        let message = message.and_then(|mut message| each(&mut message).map(|()| message));
        if message.is_err() {
            self.each = None;
        }
        Poll::Ready(Some(message))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.messages.take_trailers()
    }
}

/// A stream with an observer of its end.
struct ObservedEnd<F: FnOnce(Result<&MetadataMap, &Status>)> {
    messages: Messages,
    end: Option<F>,
    trailers: Option<MetadataMap>,
}

impl<F> ErasedStream for ObservedEnd<F>
where
    F: FnOnce(Result<&MetadataMap, &Status>) + Send + 'static,
{
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        let message = ready!(self.messages.poll_any(cx));
        match &message {
            Some(Ok(_)) => {}
            Some(Err(status)) => self.notify(Err(status)),
            None => {
                self.trailers = self.messages.take_trailers();
                let trailers = self.trailers.clone().unwrap_or_default();
                self.notify(Ok(&trailers));
            }
        }
        Poll::Ready(message)
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.trailers.take()
    }
}

impl<F: FnOnce(Result<&MetadataMap, &Status>)> ObservedEnd<F> {
    fn notify(&mut self, outcome: Result<&MetadataMap, &Status>) {
        if let Some(end) = self.end.take() {
            end(outcome);
        }
    }
}

impl<F: FnOnce(Result<&MetadataMap, &Status>)> Drop for ObservedEnd<F> {
    fn drop(&mut self) {
        if self.end.is_some() {
            self.notify(Err(&Status::cancelled("the stream was dropped before its end")));
        }
    }
}
