//! The answers of a call, as they come: [`Answers`].

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
use crate::deadline::{Deadline, too_late};
use crate::envelope::{AnswerReader, Received};

/// The messages of an answer, in the order of their sending; and behind them the trailing metadata. An error is the
/// last of them: the status of a call that did not end with OK, or why it could not be read.
///
/// Dropping it before its end cancels the call.
pub struct Answers {
    body: Body,
    reader: AnswerReader,
    deadline: Option<Pin<Box<Sleep>>>,
    trailers: Option<HeaderMap>,
    state: State,
    /// Whether anything of the body has come. Without it, a failure is what the head has said.
    has_body: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Messages may come.
    Open,
    /// What ends the call has come. Nothing may follow it in the body.
    Ending,
    Over,
}

impl Answers {
    pub(super) fn new(body: Body, reader: AnswerReader, deadline: Deadline) -> Answers {
        let deadline = deadline.timer();
        Answers { body, reader, deadline, trailers: None, state: State::Open, has_body: false }
    }

    /// The next message; `None` behind the last. Cancel-safe.
    ///
    /// # Errors
    /// How the call ended, if not with OK.
    pub async fn message(&mut self) -> Result<Option<Bytes>, Status> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    /// The trailing metadata, once the messages have ended.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// The message of a call that has one, and the trailing metadata. A failure has the metadata of the `head` too.
    ///
    /// # Errors
    /// How the call ended, if not with OK. UNIMPLEMENTED, if there was no message, or more than one: the server takes
    /// the method for another one.
    pub async fn only(&mut self, head: &HeaderMap) -> Result<(Bytes, HeaderMap), Status> {
        let outcome = self.only_message().await;
        outcome.map_err(|status| if self.has_body { status.behind(head) } else { status })
    }

    async fn only_message(&mut self) -> Result<(Bytes, HeaderMap), Status> {
        let Some(message) = self.message().await? else { return Err(wire::no_message()) };
        if self.message().await?.is_some() {
            return Err(wire::more_than_one_message());
        }
        Ok((message, self.take_trailers().unwrap_or_default()))
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if self.state == State::Over {
            return Poll::Ready(None);
        }
        let polled = ready!(self.poll_received(cx));
        Poll::Ready(match polled {
            Ok(Some(message)) => Some(Ok(message)),
            Ok(None) => {
                self.state = State::Over;
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
                Some(Received::Message(message)) => return Poll::Ready(Ok(Some(message))),
                Some(Received::End(trailers)) => {
                    self.trailers = Some(trailers);
                    self.state = State::Ending;
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
                // The call has ended. That its connection did so too is no news.
                Poll::Ready(Some(Err(_))) if self.state == State::Ending => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(self.explain(status))),
                Poll::Pending => return self.poll_deadline(cx),
            }
        }
    }

    fn poll_deadline<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Status>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(too_late("its answer had not ended")))
    }

    /// A server whose clock runs out first ends the call, which may come before this side's timer.
    #[cold]
    fn explain(&self, status: Status) -> Status {
        let is_late = self.deadline.as_ref().is_some_and(|deadline| deadline.deadline() <= Instant::now());
        if is_late { too_late("its answer had not ended") } else { status }
    }

    /// Nothing more is read. A body that has come to its end is read to there: its connection takes other calls then.
    #[cold]
    fn fail(&mut self, cx: &mut Context<'_>) {
        self.state = State::Over;
        let mut body = std::mem::take(&mut self.body);
        let _ = http_body::Body::poll_frame(Pin::new(&mut body), cx);
    }
}

impl Stream for Answers {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("body", &self.body)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
