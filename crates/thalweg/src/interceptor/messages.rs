//! Type-erased messages of one direction of a call: [`Messages`].

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::message::AnyMessage;
use crate::message::Message;
use crate::streaming::{Elsewhere, Streaming};

/// The messages that one side of a call sends, as an interceptor sees them: one message or a stream.
///
/// An interceptor observes them as they pass ([`on_message`](Self::on_message), [`on_end`](Self::on_end)), or replaces
/// them ([`one`](Self::one), [`stream`](Self::stream)). `Messages` is also a [`Stream`].
pub struct Messages(Source);

enum Source {
    /// `None` once it was taken.
    One(Option<AnyMessage>),
    /// The mutex is never locked; it keeps a call `Sync`.
    Many(Mutex<Box<dyn Flow>>),
    /// An interceptor rejected the single message.
    Refused(Option<Status>),
}

/// A stream of messages of any type.
trait Flow: Any + Send {
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>>;

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        None
    }
}

impl Messages {
    /// Creates a single message.
    pub fn one(message: impl Message) -> Self {
        Self(Source::One(Some(AnyMessage::new(message))))
    }

    /// Creates an empty value, for a request that is still to be read.
    pub(crate) fn none() -> Self {
        Self(Source::One(None))
    }

    /// Creates a stream of messages. An error ends the stream and the call. On a server, the call ends with that
    /// status; on a client, it fails with it, and the server sees a cancellation.
    pub fn stream<M: Message>(stream: impl Stream<Item = Result<M, Status>> + Send + 'static) -> Self {
        Self::of(Sent(Box::pin(stream)))
    }

    /// Wraps messages that are read from the wire.
    pub(crate) fn received<M: Message>(streaming: Streaming<M>) -> Self {
        Self::of(streaming)
    }

    fn of(flow: impl Flow + 'static) -> Self {
        Self(Source::Many(Mutex::new(Box::new(flow))))
    }

    /// Calls `each` with every message as it passes; `each` may change it. A single message is passed at once, those of
    /// a stream as they are read. An error replaces the message and ends the stream: sending fails with it, and a
    /// reader receives it.
    pub fn on_message(
        self,
        mut each: impl FnMut(&mut AnyMessage) -> Result<(), Status> + Send + 'static,
    ) -> Self {
        match self.0 {
            Source::One(Some(mut message)) => match each(&mut message) {
                Ok(()) => Self(Source::One(Some(message))),
                Err(status) => Self(Source::Refused(Some(status))),
            },
            Source::Many(_) => Self::of(Watched { messages: self, each: Some(each) }),
            Source::One(None) | Source::Refused(_) => self,
        }
    }

    /// Calls `end` once when the messages end: with the trailing metadata, or with the status that ended them. The
    /// status is CANCELLED if the stream was dropped early. For a single message, `end` is called at once.
    ///
    /// Only streams received by a client have trailing metadata.
    pub fn on_end(self, end: impl FnOnce(Result<&MetadataMap, &Status>) + Send + 'static) -> Self {
        match self.0 {
            Source::Many(_) => Self::of(Ended { messages: self, end: Some(end), trailers: None }),
            Source::Refused(Some(ref status)) => {
                end(Err(status));
                self
            }
            Source::One(_) | Source::Refused(None) => {
                end(Ok(&MetadataMap::new()));
                self
            }
        }
    }

    /// Returns the message if it is a single one; `None` for a stream.
    pub fn as_one(&self) -> Option<&AnyMessage> {
        match &self.0 {
            Source::One(message) => message.as_ref(),
            Source::Many(_) | Source::Refused(_) => None,
        }
    }

    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        match &mut self.0 {
            Source::One(message) => Poll::Ready(message.take().map(Ok)),
            Source::Many(flow) => flow.get_mut().unwrap_or_else(PoisonError::into_inner).poll_any(cx),
            Source::Refused(status) => Poll::Ready(status.take().map(Err)),
        }
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        match &mut self.0 {
            Source::Many(flow) => flow.get_mut().unwrap_or_else(PoisonError::into_inner).take_trailers(),
            Source::One(_) | Source::Refused(_) => None,
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
        let flow = match self.0 {
            Source::Many(flow) => flow.into_inner().unwrap_or_else(PoisonError::into_inner),
            one => return Streaming::from_elsewhere(Self(one)),
        };
        let is_untouched = (&*flow as &dyn Any).is::<Streaming<M>>();
        if !is_untouched {
            return Streaming::from_elsewhere(Self(Source::Many(Mutex::new(flow))));
        }
        let flow: Box<dyn Any> = flow;
        *flow.downcast().expect("checked above")
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
            Source::One(message) => f.debug_tuple("One").field(message).finish(),
            Source::Many(_) => f.write_str("Many(..)"),
            Source::Refused(status) => f.debug_tuple("Refused").field(status).finish(),
        }
    }
}

impl<M: Message> Elsewhere<M> for Messages {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<M, Status>>> {
        let message = ready!(self.poll_any(cx));
        Poll::Ready(message.map(|message| message.and_then(AnyMessage::into_message)))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.take_trailers()
    }
}

impl<M: Message> Flow for Streaming<M> {
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        self.poll_message(cx).map(|message| message.map(|message| message.map(AnyMessage::new)))
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.take_trailers()
    }
}

/// A stream that this side sends.
struct Sent<St>(Pin<Box<St>>);

impl<M, St> Flow for Sent<St>
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
struct Watched<F> {
    messages: Messages,
    each: Option<F>,
}

impl<F> Flow for Watched<F>
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
struct Ended<F: FnOnce(Result<&MetadataMap, &Status>)> {
    messages: Messages,
    end: Option<F>,
    trailers: Option<MetadataMap>,
}

impl<F> Flow for Ended<F>
where
    F: FnOnce(Result<&MetadataMap, &Status>) + Send + 'static,
{
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnyMessage, Status>>> {
        let message = ready!(self.messages.poll_any(cx));
        match &message {
            Some(Ok(_)) => {}
            Some(Err(status)) => self.tell(Err(status)),
            None => {
                self.trailers = self.messages.take_trailers();
                let trailers = self.trailers.clone().unwrap_or_default();
                self.tell(Ok(&trailers));
            }
        }
        Poll::Ready(message)
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.trailers.take()
    }
}

impl<F: FnOnce(Result<&MetadataMap, &Status>)> Ended<F> {
    fn tell(&mut self, outcome: Result<&MetadataMap, &Status>) {
        if let Some(end) = self.end.take() {
            end(outcome);
        }
    }
}

impl<F: FnOnce(Result<&MetadataMap, &Status>)> Drop for Ended<F> {
    fn drop(&mut self) {
        if self.end.is_some() {
            self.tell(Err(&Status::cancelled("the stream was dropped before its end")));
        }
    }
}
