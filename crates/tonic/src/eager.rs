//! Streams of messages on their way to tonic's encoder: [`Eager`].
//!
//! tonic sends the messages that it has encoded when the stream returns `Poll::Pending`. `tokio_stream::iter` does so
//! after every 32 messages, which makes frames of 160 bytes of a stream of empty messages.

#[cfg(feature = "server")]
use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "server")]
use std::task::ready;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use thalweg_engine::Yields;
use tokio_stream::Stream;
#[cfg(feature = "server")]
use tonic::server::{ServerStreamingService, StreamingService};
#[cfg(feature = "server")]
use tonic::{Request, Response, Status, Streaming};

pin_project! {
    /// A stream that is polled again when it yields.
    #[derive(Debug)]
    pub(crate) struct Eager<S> {
        #[pin]
        stream: S,
        yields: Yields,
    }
}

impl<S> Eager<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, yields: Yields::default() }
    }
}

impl<S: Stream> Stream for Eager<S> {
    type Item = S::Item;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        this.yields.poll_next(|| this.stream.as_mut().poll_next(cx))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

/// A service whose responses are [`Eager`] streams.
#[cfg(feature = "server")]
pub(crate) struct EagerService<S>(pub(crate) S);

#[cfg(feature = "server")]
impl<R, S: ServerStreamingService<R>> ServerStreamingService<R> for EagerService<S> {
    type Response = S::Response;
    type ResponseStream = Eager<S::ResponseStream>;
    type Future = EagerFuture<S::Future>;

    fn call(&mut self, request: Request<R>) -> Self::Future {
        EagerFuture { future: self.0.call(request) }
    }
}

#[cfg(feature = "server")]
impl<R, S: StreamingService<R>> StreamingService<R> for EagerService<S> {
    type Response = S::Response;
    type ResponseStream = Eager<S::ResponseStream>;
    type Future = EagerFuture<S::Future>;

    fn call(&mut self, request: Request<Streaming<R>>) -> Self::Future {
        EagerFuture { future: self.0.call(request) }
    }
}

#[cfg(feature = "server")]
pin_project! {
    /// The future of an [`EagerService`].
    pub(crate) struct EagerFuture<F> {
        #[pin]
        future: F,
    }
}

#[cfg(feature = "server")]
impl<F, S> Future for EagerFuture<F>
where
    F: Future<Output = Result<Response<S>, Status>>,
{
    type Output = Result<Response<Eager<S>>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().future.poll(cx));
        Poll::Ready(response.map(|response| response.map(Eager::new)))
    }
}
