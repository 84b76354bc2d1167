//! `grpc.testing.BenchmarkService` as served by the official benchmark workers.

use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use thalweg::outbound::Responses;
use thalweg::{Request, Response, Status, Streaming};
use tokio::task::JoinHandle;

use super::proto::benchmark_service_server::BenchmarkService;
use super::proto::{SimpleRequest, SimpleResponse};
use super::zeros::payload;

/// Responds with as many zeros as each request asks for, and does nothing else, so that the stack is measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct BenchmarkWorker {
    pub(super) work: Work,
}

impl BenchmarkWorker {
    /// Creates a worker that computes for `work` per response message, and per message of a client stream, as a handler
    /// with real work would.
    pub fn working(work: Duration) -> Self {
        Self { work: Work(work) }
    }
}

/// Work of a handler per message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work(Duration);

impl Work {
    /// Spins for this time without yielding the processor.
    pub(super) fn done(self) {
        if self.0.is_zero() {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < self.0 {
            std::hint::spin_loop();
        }
    }
}

impl BenchmarkService for BenchmarkWorker {
    type StreamingCallStream = ResponseStream;
    type StreamingFromServerStream = ResponseStream;
    type StreamingBothWaysStream = ResponseStream;

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        self.work.done();
        Ok(Response::new(response(request.get_ref())?))
    }

    async fn streaming_call(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<ResponseStream>, Status> {
        Ok(Response::new(echo(request.into_inner(), self.work)))
    }

    /// The last request sets the size of the response.
    async fn streaming_from_client(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let mut requests = request.into_inner();
        let mut last = SimpleRequest::default();
        while requests.message_into(&mut last).await? {
            self.work.done();
        }
        Ok(Response::new(response(&last)?))
    }

    async fn streaming_from_server(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<ResponseStream>, Status> {
        let (response, work) = (response(request.get_ref())?, self.work);
        // The same response repeatedly, until flow control or cancellation stops it.
        Ok(Response::new(ResponseStream::new(move |_, pack| {
            work.done();
            while pack.push(&response) {
                work.done();
            }
            Poll::Pending
        })))
    }

    /// The first request sets the size of the responses.
    async fn streaming_both_ways(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<ResponseStream>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?;
        let response = first.as_ref().map(response).transpose()?.unwrap_or_default();
        let reader = tokio::spawn(async move {
            let mut request = SimpleRequest::default();
            while requests.message_into(&mut request).await? {}
            Ok(())
        });
        Ok(Response::new(both_ways(response, self.work, Reader(reader))))
    }
}

type ResponseStream = Responses<SimpleResponse>;

pub(super) fn response(request: &SimpleRequest) -> Result<SimpleResponse, Status> {
    Ok(SimpleResponse { payload: payload(request.response_size)?, ..SimpleResponse::default() })
}

/// Returns one response for each request. Both messages are reused; only the payload of the response changes.
fn echo(mut requests: Streaming<SimpleRequest>, work: Work) -> ResponseStream {
    let (mut request, mut response) = (SimpleRequest::default(), SimpleResponse::default());
    ResponseStream::new(move |cx, pack| {
        while !pack.is_full() {
            match requests.poll_message_into(cx, &mut request) {
                Poll::Ready(Ok(true)) => work.done(),
                Poll::Ready(ended) => return Poll::Ready(ended.map(drop)),
                Poll::Pending => return Poll::Pending,
            }
            response.payload = payload(request.response_size)?;
            pack.push(&response);
        }
        Poll::Pending
    })
}

/// Returns responses until the requests end. A separate task reads the requests: reading them between responses would
/// deadlock with a client that sends all requests before it reads.
fn both_ways(response: SimpleResponse, work: Work, mut reader: Reader) -> ResponseStream {
    ResponseStream::new(move |cx, pack| {
        while !reader.0.is_finished() {
            work.done();
            if !pack.push(&response) {
                return Poll::Pending;
            }
        }
        // A panic of the reader has already been reported on stderr.
        Pin::new(&mut reader.0).poll(cx).map(|ended| ended.unwrap_or(Ok(())))
    })
}

/// Task that reads the requests; aborted with the responses.
#[derive(Debug)]
pub(super) struct Reader(pub(super) JoinHandle<Result<(), Status>>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}
