//! `grpc.testing.BenchmarkService` with streams of owned messages, as most programs write them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use thalweg::{Request, Response, Status, Streaming};

use super::benchmark::{BenchmarkWorker, Reader, Work, response};
use super::proto::benchmark_service_server::BenchmarkService;
use super::proto::{SimpleRequest, SimpleResponse};

/// Like [`BenchmarkWorker`](super::BenchmarkWorker), with tonic's stream API: each message is newly allocated and
/// passed by value.
#[derive(Clone, Copy, Debug)]
pub struct OwnedBenchmarkWorker(pub BenchmarkWorker);

impl BenchmarkService for OwnedBenchmarkWorker {
    type StreamingCallStream = Echo;
    type StreamingFromServerStream = tokio_stream::Iter<Endless>;
    type StreamingBothWaysStream = BothWays;

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        self.0.unary_call(request).await
    }

    async fn streaming_call(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<Echo>, Status> {
        Ok(Response::new(Echo { requests: request.into_inner(), work: self.0.work }))
    }

    /// The last request sets the size of the response.
    async fn streaming_from_client(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let mut requests = request.into_inner();
        let mut last = SimpleRequest::default();
        while let Some(request) = requests.message().await? {
            self.0.work.done();
            last = request;
        }
        Ok(Response::new(response(&last)?))
    }

    async fn streaming_from_server(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<tokio_stream::Iter<Endless>>, Status> {
        let endless = Endless { response: response(request.get_ref())?, work: self.0.work };
        Ok(Response::new(tokio_stream::iter(endless)))
    }

    /// The first request sets the size of the responses.
    async fn streaming_both_ways(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<BothWays>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?;
        let response = first.as_ref().map(response).transpose()?.unwrap_or_default();
        let reader = tokio::spawn(async move {
            while requests.message().await?.is_some() {}
            Ok(())
        });
        Ok(Response::new(BothWays { response, work: self.0.work, reader: Some(Reader(reader)) }))
    }
}

/// One response for each request.
#[derive(Debug)]
pub struct Echo {
    requests: Streaming<SimpleRequest>,
    work: Work,
}

impl Stream for Echo {
    type Item = Result<SimpleResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let request = ready!(Pin::new(&mut self.requests).poll_next(cx));
        if let Some(Ok(_)) = &request {
            self.work.done();
        }
        Poll::Ready(request.map(|request| response(&request?)))
    }
}

/// The same response repeatedly, until flow control or cancellation stops it.
#[derive(Debug)]
pub struct Endless {
    response: SimpleResponse,
    work: Work,
}

impl Iterator for Endless {
    type Item = Result<SimpleResponse, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        self.work.done();
        Some(Ok(self.response.clone()))
    }
}

/// Responses until the requests end. A separate task reads the requests: reading them between responses would deadlock
/// with a client that sends all requests before it reads.
#[derive(Debug)]
pub struct BothWays {
    response: SimpleResponse,
    work: Work,
    /// `None` once it has ended.
    reader: Option<Reader>,
}

impl Stream for BothWays {
    type Item = Result<SimpleResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
        if !reader.0.is_finished() {
            self.work.done();
            return Poll::Ready(Some(Ok(self.response.clone())));
        }
        let ended = ready!(Pin::new(&mut reader.0).poll(cx));
        self.reader = None;
        // A panic of the reader has already been reported on stderr.
        Poll::Ready(ended.unwrap_or(Ok(())).err().map(Err))
    }
}
