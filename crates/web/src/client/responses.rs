//! The response messages of a call: [`Responses`].

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use thalweg_engine::{Status, wire};
use tokio::time::{Instant, Sleep};

use crate::body::Body;
use crate::deadline::{Deadline, deadline_exceeded};
use crate::envelope::{ResponsePart, ResponseReader};

/// The response messages of a call in order, followed by the trailing metadata. An error is the last item: a non-OK
/// status, or the reason why the response could not be read.
///
/// Dropping it before its end cancels the call.
pub struct Responses {
    body: Body,
    reader: ResponseReader,
    deadline: Option<Pin<Box<Sleep>>>,
    trailers: Option<HeaderMap>,
    state: ReadState,
    /// Whether any part of the body has arrived. If not, a failure comes from the headers.
    has_body: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ReadState {
    Open,
    /// The outcome was received. The body must not continue.
    Ended,
    Closed,
}

impl Responses {
    pub(super) fn new(body: Body, reader: ResponseReader, deadline: Deadline) -> Responses {
        let deadline = deadline.timer();
        Responses { body, reader, deadline, trailers: None, state: ReadState::Open, has_body: false }
    }

    /// Returns the next message, or `None` after the last one. Cancel-safe.
    ///
    /// # Errors
    /// The call's status if it is not OK.
    pub async fn message(&mut self) -> Result<Option<Bytes>, Status> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    /// Takes the trailing metadata, available once the messages have ended.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// Returns the only message of a call and the trailing metadata. An error also carries the metadata of `head`.
    ///
    /// # Errors
    /// The call's status if it is not OK. UNIMPLEMENTED if there is not exactly one message: client and server disagree
    /// about the method's type.
    pub async fn only(&mut self, head: &HeaderMap) -> Result<(Bytes, HeaderMap), Status> {
        let outcome = self.only_message().await;
        outcome.map_err(|status| if self.has_body { status.prepend_metadata(head) } else { status })
    }

    async fn only_message(&mut self) -> Result<(Bytes, HeaderMap), Status> {
        let Some(message) = self.message().await? else { return Err(wire::no_message()) };
        if self.message().await?.is_some() {
            return Err(wire::more_than_one_message());
        }
        Ok((message, self.take_trailers().unwrap_or_default()))
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if self.state == ReadState::Closed {
            return Poll::Ready(None);
        }
        let polled = ready!(self.poll_received(cx));
        Poll::Ready(match polled {
            Ok(Some(message)) => Some(Ok(message)),
            Ok(None) => {
                self.state = ReadState::Closed;
                None
            }
            Err(status) => {
                self.fail(cx);
                Some(Err(status))
            }
        })
    }

    fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        loop {
            match self.reader.take()? {
                Some(ResponsePart::Message(message)) => return Poll::Ready(Ok(Some(message))),
                Some(ResponsePart::End(trailers)) => {
                    self.trailers = Some(trailers);
                    self.state = ReadState::Ended;
                    continue;
                }
                None => {}
            }
            match http_body::Body::poll_frame(Pin::new(&mut self.body), cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(piece) = frame.into_data() {
                        self.has_body |= !piece.is_empty();
                        self.reader.push(piece);
                    }
                }
                Poll::Ready(None) => {
                    if let Some(trailers) = self.reader.finish()? {
                        self.trailers = Some(trailers);
                    }
                    return Poll::Ready(Ok(None));
                }
                // The call's outcome is known, so a connection error no longer matters.
                Poll::Ready(Some(Err(_))) if self.state == ReadState::Ended => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(self.explain(status))),
                Poll::Pending => return self.poll_deadline(cx),
            }
        }
    }

    fn poll_deadline<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Status>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(deadline_exceeded("the response was not complete")))
    }

    /// Reports the deadline if it has passed: a server whose clock is ahead may end the call before the local timer.
    #[cold]
    fn explain(&self, status: Status) -> Status {
        let is_late = self.deadline.as_ref().is_some_and(|deadline| deadline.deadline() <= Instant::now());
        if is_late { deadline_exceeded("the response was not complete") } else { status }
    }

    /// Stops reading. Polls the body once more, so that a finished body returns its connection to the pool.
    #[cold]
    fn fail(&mut self, cx: &mut Context<'_>) {
        self.state = ReadState::Closed;
        let mut body = std::mem::take(&mut self.body);
        let _ = http_body::Body::poll_frame(Pin::new(&mut body), cx);
    }
}

impl Stream for Responses {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("body", &self.body)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
