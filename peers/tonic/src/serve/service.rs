//! `grpc.testing.BenchmarkService`: responds with as many zeros as each request asks for.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::PAYLOAD_BYTES_MAX;
use crate::proto::benchmark_service_server::BenchmarkService;
use crate::proto::{Payload, SimpleRequest, SimpleResponse};
use crate::zeros::zeros;

#[derive(Clone, Copy)]
pub struct Benchmark {
    /// CPU time of a unary call.
    pub work: Duration,
}

impl Benchmark {
    fn work(self) {
        if self.work.is_zero() {
            return;
        }
        let started = Instant::now();
        while started.elapsed() < self.work {
            std::hint::spin_loop();
        }
    }
}

#[tonic::async_trait]
impl BenchmarkService for Benchmark {
    type StreamingCallStream = Echo;
    type StreamingFromServerStream = Endless;
    type StreamingBothWaysStream = BothWays;

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        self.work();
        Ok(Response::new(response(request.get_ref())?))
    }

    async fn streaming_call(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<Echo>, Status> {
        Ok(Response::new(Echo { requests: request.into_inner() }))
    }

    async fn streaming_from_client(
        &self,
        request: Request<Streaming<SimpleRequest>>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let mut requests = request.into_inner();
        while requests.message().await?.is_some() {}
        Ok(Response::new(SimpleResponse::default()))
    }

    async fn streaming_from_server(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<Endless>, Status> {
        Ok(Response::new(Endless { response: response(request.get_ref())? }))
    }

    /// The first request sets the size of the replies.
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
        Ok(Response::new(BothWays { response, reader: Some(reader) }))
    }
}

fn response(request: &SimpleRequest) -> Result<SimpleResponse, Status> {
    let body = match usize::try_from(request.response_size) {
        Ok(0) => return Ok(SimpleResponse::default()),
        Ok(size) if size <= PAYLOAD_BYTES_MAX => zeros(size),
        _ => {
            return Err(Status::invalid_argument(format!(
                "response_size {} is not within 0 to {PAYLOAD_BYTES_MAX}",
                request.response_size
            )));
        }
    };
    Ok(SimpleResponse { payload: Some(Payload { r#type: 0, body }), ..SimpleResponse::default() })
}

/// Sends a reply per request, as they arrive.
pub struct Echo {
    requests: Streaming<SimpleRequest>,
}

impl Stream for Echo {
    type Item = Result<SimpleResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let request = ready!(Pin::new(&mut self.requests).poll_next(cx));
        Poll::Ready(request.map(|request| response(&request?)))
    }
}

/// Repeats the same reply until the call is cancelled.
pub struct Endless {
    response: SimpleResponse,
}

impl Stream for Endless {
    type Item = Result<SimpleResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(self.response.clone())))
    }
}

/// Repeats the same reply until the requests end; a separate task reads them.
pub struct BothWays {
    response: SimpleResponse,
    /// `None` once it has ended.
    reader: Option<JoinHandle<Result<(), Status>>>,
}

impl Stream for BothWays {
    type Item = Result<SimpleResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
        if !reader.is_finished() {
            return Poll::Ready(Some(Ok(self.response.clone())));
        }
        let ended = ready!(Pin::new(reader).poll(cx));
        self.reader = None;
        Poll::Ready(ended.unwrap_or(Ok(())).err().map(Err))
    }
}

impl Drop for BothWays {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}
