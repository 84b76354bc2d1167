//! Messages of a stream, as they arrive.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::time::{Instant, Sleep};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::connection::{Connection, End, Incoming, SendLoop, SendOutcome, SlotKey};
use crate::measure::CallMeasure;
use crate::message::Message;

/// The messages of a stream, in the order of their sending: a server's view of the requests, or a client's of the
/// responses. Also a [`Stream`].
///
/// Reading is what gives the peer room to send more: a stream that is not read holds the peer back after one
/// receive window. A client that drops it before its end cancels the call.
#[derive(Debug)]
pub struct Streaming<T: Message> {
    incoming: Incoming<T>,
    side: Side,
    finished: bool,
    trailers: Option<MetadataMap>,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// Who reads, which decides what dropping means.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    /// Dropping cancels the call.
    Client,
    /// Dropping only says that the rest of the requests is not wanted: the handler may still answer.
    Server,
}

impl<T: Message> Streaming<T> {
    pub(crate) fn of_responses(incoming: Incoming<T>) -> Self {
        Self { incoming, side: Side::Client, finished: false, trailers: None, deadline: None }
    }

    pub(crate) fn of_requests(incoming: Incoming<T>) -> Self {
        Self { incoming, side: Side::Server, finished: false, trailers: None, deadline: None }
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
        Ok(self.trailers.take())
    }

    /// Client: the initial metadata, or the end that came in its place.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<MetadataMap, End>> {
        let head = ready!(self.incoming.poll_head(cx))?;
        self.incoming.set_encoding(head.encoding);
        Poll::Ready(Ok(head.metadata.clone()))
    }

    /// Client: from now on the deadline ends the stream.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
    }

    /// Client: goes on sending the requests while the responses are read at leisure.
    pub(crate) fn send_in_background<S, Req>(&self, mut sender: SendLoop<S>)
    where
        S: Stream<Item = Result<Req, Status>> + Unpin + Send + 'static,
        Req: Message,
    {
        let (connection, key) = self.incoming.place();
        let mut unfinished = FailUnlessFinished(Some((connection, key)));
        tokio::spawn(async move {
            let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
            let Some((connection, key)) = unfinished.0.take() else { return };
            if let SendOutcome::Failed(status) = outcome {
                connection.fail(key, &status);
            }
        });
    }

    pub(crate) fn take_trailers(&mut self) -> MetadataMap {
        self.trailers.take().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        if self.finished {
            return Poll::Ready(None);
        }
        let ended = match self.incoming.poll_message(cx) {
            Poll::Ready(Ok(Ok(message))) => return Poll::Ready(Some(Ok(message))),
            Poll::Pending => match self.poll_deadline(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(status) => Err(status),
            },
            Poll::Ready(Ok(Err(end))) => end.outcome(),
            Poll::Ready(Err(status)) => Err(status),
        };
        Poll::Ready(self.finish(ended).err().map(Err))
    }

    /// Also after an error of our own making (a message too large or broken, the deadline): the peer must hear of it, and a
    /// client that has its answer need not send the rest of its requests.
    #[cold]
    fn finish(&mut self, ended: Result<MetadataMap, Status>) -> Result<(), Status> {
        self.finished = true;
        if self.side == Side::Client {
            self.measure().end(ended.as_ref().map_or_else(Status::code, |_| Code::Ok));
        }
        self.stop();
        self.trailers = Some(ended?);
        Ok(())
    }

    pub(crate) fn measure(&self) -> &CallMeasure {
        self.incoming.measure()
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        match &mut self.deadline {
            None => Poll::Pending,
            Some(sleep) => sleep.as_mut().poll(cx).map(|()| deadline_exceeded()),
        }
    }

    /// Stops receiving: on a client that ends the call, on a server the rest of the requests is dropped.
    fn stop(&mut self) {
        match self.side {
            Side::Client => self.incoming.cancel(),
            Side::Server => self.incoming.discard(),
        }
    }
}

impl<T: Message> Stream for Streaming<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

impl<T: Message> Drop for Streaming<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the call when the task that sends its requests does not come to its end: the stream of requests panicked, or
/// the runtime shuts down. The server would wait for more, and the reader for the server.
struct FailUnlessFinished(Option<(Arc<Connection>, SlotKey)>);

impl Drop for FailUnlessFinished {
    fn drop(&mut self) {
        if let Some((connection, key)) = self.0.take() {
            connection.fail(key, &Status::internal("the stream of requests panicked or was dropped"));
        }
    }
}

pub(crate) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}
