//! The messages of one direction of a call, whatever their type: [`Messages`].

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

/// What one side of a call sends, as an interceptor sees it: one message or a stream of them.
///
/// An interceptor looks at them as they pass ([`on_message`](Self::on_message), [`on_end`](Self::on_end)), or puts
/// others in their place ([`one`](Self::one), [`stream`](Self::stream)). It is a [`Stream`] of its messages, too.
pub struct Messages(Source);

enum Source {
    /// Not there any more when it was taken.
    One(Option<AnyMessage>),
    /// In a mutex that is never locked: a call stays `Sync`.
    Many(Mutex<Box<dyn Flow>>),
    /// An interceptor has refused the one message.
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
    /// One message.
    pub fn one(message: impl Message) -> Self {
        Self(Source::One(Some(AnyMessage::new(message))))
    }

    /// No message: of a request that is still to be read.
    pub(crate) fn none() -> Self {
        Self(Source::One(None))
    }

    /// The messages of a stream. An error is the last of them: at a server it ends the call with that, at a client
    /// the call fails with it, and the server sees it cancelled.
    pub fn stream<M: Message>(stream: impl Stream<Item = Result<M, Status>> + Send + 'static) -> Self {
        Self::of(Sent(Box::pin(stream)))
    }

    /// Those that are read from the wire.
    pub(crate) fn received<M: Message>(streaming: Streaming<M>) -> Self {
        Self::of(streaming)
    }

    fn of(flow: impl Flow + 'static) -> Self {
        Self(Source::Many(Mutex::new(Box::new(flow))))
    }

    /// Has `each` look at each message as it passes, and change it: the only one now, those of a stream when they are
    /// read from it. An error takes the message's place, and is the last: what is sent fails with it, who reads gets
    /// it.
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

    /// Has `end` know once how the messages ended: with the trailing metadata, or with the status that took the next
    /// one's place, which is CANCELLED where the stream was dropped before its end. Of one message it is called now.
    ///
    /// There is trailing metadata only in what a client receives as a stream.
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

    /// The message, if it is one, and not a stream.
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

    /// The one message of a direction that has one.
    pub(crate) async fn only(mut self) -> Result<AnyMessage, Status> {
        let mut next = async || poll_fn(|cx| self.poll_any(cx)).await.transpose();
        let Some(message) = next().await? else {
            return Err(Status::internal("an interceptor left no message where there must be one"));
        };
        match next().await? {
            None => Ok(message),
            Some(_) => Err(Status::internal("an interceptor put several messages where there must be one")),
        }
    }

    /// As who is behind the interceptors reads them.
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
        *flow.downcast().expect("its type was looked at")
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

/// What this side sends.
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

/// A stream whose messages are looked at; `None` when one was refused.
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

/// A stream whose end is told.
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
