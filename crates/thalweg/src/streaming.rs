//! Messages of a stream, as they arrive.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
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
#[derive(Debug)]
pub struct Streaming<T: Message> {
    incoming: Incoming,
    message: PhantomData<fn() -> T>,
}

impl<T: Message> Streaming<T> {
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self { incoming, message: PhantomData }
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
        Ok(self.incoming.take_trailers().map(MetadataMap::from_headers))
    }

    #[inline]
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
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
