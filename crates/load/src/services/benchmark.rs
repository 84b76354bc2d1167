//! `grpc.testing.BenchmarkService` as the official benchmark workers serve it.

use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use thalweg::outbound::Responses;
use thalweg::{Request, Response, Status, Streaming};
use tokio::task::JoinHandle;

use super::proto::benchmark_service_server::BenchmarkService;
use super::proto::{SimpleRequest, SimpleResponse};
use super::zeros::payload;

/// Answers with as many zeros as each request asks for, and does nothing else: what is measured is the stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct BenchmarkWorker {
    pub(super) work: Work,
}

impl BenchmarkWorker {
    /// One that computes for so long for each message that it answers with, and for each of a client stream, as a
    /// handler does that has something to do.
    pub fn working(work: Duration) -> Self {
        Self { work: Work(work) }
    }
}

/// What a handler computes for a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work(Duration);

impl Work {
    /// Takes the processor for so long, and does not give it to others meanwhile.
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
    type StreamingCallStream = Answers;
    type StreamingFromServerStream = Answers;
    type StreamingBothWaysStream = Answers;

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        self.work.done();
        Ok(Response::new(response(request.get_ref())?))
    }

    async fn streaming_call(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<Answers>, Status> {
        Ok(Response::new(echo(request.into_inner(), self.work)))
    }

    /// The answer is of the size that the last request asks for.
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
    ) -> Result<Response<Answers>, Status> {
        let (response, work) = (response(request.get_ref())?, self.work);
        // The same response again and again: flow control and cancelling are what end it.
        Ok(Response::new(Answers::new(move |_, pack| {
            work.done();
            while pack.push(&response) {
                work.done();
            }
            Poll::Pending
        })))
    }

    /// The first request says how large the answers are.
    async fn streaming_both_ways(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<Answers>, Status> {
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

/// The responses of a stream.
type Answers = Responses<SimpleResponse>;

pub(super) fn response(request: &SimpleRequest) -> Result<SimpleResponse, Status> {
    Ok(SimpleResponse { payload: payload(request.response_size)?, ..SimpleResponse::default() })
}

/// One response for each request, as it comes: both have a place, and of the response the payload changes.
fn echo(mut requests: Streaming<SimpleRequest>, work: Work) -> Answers {
    let (mut request, mut response) = (SimpleRequest::default(), SimpleResponse::default());
    Answers::new(move |cx, pack| {
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

/// Responses until the requests end. A task of its own reads the requests: were they read between responses, a client
/// that first sends and then reads would wait for a server that first wants its responses read.
fn both_ways(response: SimpleResponse, work: Work, mut reader: Reader) -> Answers {
    Answers::new(move |cx, pack| {
        while !reader.0.is_finished() {
            work.done();
            if !pack.push(&response) {
                return Poll::Pending;
            }
        }
        // A reader that panicked has already said so on stderr.
        Pin::new(&mut reader.0).poll(cx).map(|ended| ended.unwrap_or(Ok(())))
    })
}

/// What reads the requests; it ends with the responses.
#[derive(Debug)]
pub(super) struct Reader(pub(super) JoinHandle<Result<(), Status>>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}
