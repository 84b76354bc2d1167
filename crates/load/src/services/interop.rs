//! `grpc.testing.TestService` as specified by gRPC's interoperability tests.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use thalweg::metadata::MetadataMap;
use thalweg::server::Trailers;
use thalweg::{Code, Request, Response, Status, Streaming};
use tokio::time::{Sleep, sleep};

use super::proto::test_service_server::TestService;
use super::proto::{
    EchoStatus, Empty, ResponseParameters, SimpleRequest, SimpleResponse, StreamingInputCallRequest,
    StreamingInputCallResponse, StreamingOutputCallRequest, StreamingOutputCallResponse,
};
use super::zeros::payload;

/// Key of metadata echoed in the initial metadata.
const ECHO_INITIAL: &str = "x-grpc-test-echo-initial";
/// Key of metadata echoed in the trailing metadata.
const ECHO_TRAILING: &str = "x-grpc-test-echo-trailing-bin";
/// Maximum requests HalfDuplexCall buffers before it responds.
const HALF_DUPLEX_REQUESTS_MAX: usize = 1024;

/// Server of gRPC's interoperability tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct InteropServer;

impl TestService for InteropServer {
    type StreamingOutputCallStream = Replies;
    type FullDuplexCallStream = Replies;
    type HalfDuplexCallStream = Replies;

    async fn empty_call(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        wanted_status(request.response_status.as_ref())?;
        let payload = payload(request.response_size)?;
        Ok(echoing(&metadata, SimpleResponse { payload, ..SimpleResponse::default() }))
    }

    async fn cacheable_unary_call(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let mut response = self.unary_call(request).await?;
        let cacheable = "max-age=60, public".parse().expect("the value is a constant of printable ASCII");
        response.metadata_mut().insert("cache-control", cacheable);
        Ok(response)
    }

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<Replies>, Status> {
        let (metadata, _, request) = request.into_parts();
        Ok(echoing(&metadata, Replies::to(Requests::Collected(VecDeque::from([request])))))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        let (metadata, _, mut requests) = request.into_parts();
        let mut received: usize = 0;
        while let Some(request) = requests.message().await? {
            received += request.payload.map_or(0, |payload| payload.body.len());
        }
        // The response field is an i32.
        let aggregated_payload_size = i32::try_from(received).unwrap_or(i32::MAX);
        Ok(echoing(&metadata, StreamingInputCallResponse { aggregated_payload_size }))
    }

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Replies>, Status> {
        let (metadata, _, requests) = request.into_parts();
        Ok(echoing(&metadata, Replies::to(Requests::Arriving(Box::new(requests)))))
    }

    async fn half_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Replies>, Status> {
        let (metadata, _, mut requests) = request.into_parts();
        let mut collected = VecDeque::new();
        while let Some(request) = requests.message().await? {
            if collected.len() == HALF_DUPLEX_REQUESTS_MAX {
                return Err(Status::resource_exhausted(format!(
                    "HalfDuplexCall accepts at most {HALF_DUPLEX_REQUESTS_MAX} requests"
                )));
            }
            collected.push_back(request);
        }
        Ok(echoing(&metadata, Replies::to(Requests::Collected(collected))))
    }

    async fn unimplemented_call(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("UnimplementedCall is not implemented on purpose"))
    }
}

/// Returns a response with the metadata that the request wants echoed.
fn echoing<T>(requested: &MetadataMap, message: T) -> Response<T> {
    let mut response = Response::new(message);
    if let Some(value) = requested.get(ECHO_INITIAL) {
        response.metadata_mut().insert(ECHO_INITIAL, value.clone());
    }
    if let Some(value) = requested.get_bin(ECHO_TRAILING) {
        let mut trailers = MetadataMap::new();
        trailers.insert_bin(ECHO_TRAILING, value.clone());
        response.extensions_mut().insert(Trailers(trailers));
    }
    response
}

/// Returns the status with which the request wants its call to end, as an error.
fn wanted_status(wanted: Option<&EchoStatus>) -> Result<(), Status> {
    match wanted {
        Some(EchoStatus { code, message }) if *code != 0 => {
            Err(Status::new(Code::from_i32(*code), message.clone()))
        }
        _ => Ok(()),
    }
}

/// Responses of the streaming calls, as the parameters of each request ask for.
#[derive(Debug)]
pub struct Replies {
    requests: Requests,
    /// Remaining responses of the current request.
    parameters: VecDeque<ResponseParameters>,
    /// Wait before the next response.
    interval: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
enum Requests {
    Arriving(Box<Streaming<StreamingOutputCallRequest>>),
    Collected(VecDeque<StreamingOutputCallRequest>),
}

impl Replies {
    fn to(requests: Requests) -> Self {
        Self { requests, parameters: VecDeque::new(), interval: None }
    }
}

impl Stream for Replies {
    type Item = Result<StreamingOutputCallResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(interval) = &mut self.interval {
                ready!(interval.as_mut().poll(cx));
                self.interval = None;
            } else if let Some(wait) = self.parameters.front_mut().and_then(take_interval) {
                self.interval = Some(Box::pin(sleep(wait)));
                continue;
            }
            if let Some(parameters) = self.parameters.pop_front() {
                let response =
                    payload(parameters.size).map(|payload| StreamingOutputCallResponse { payload });
                return Poll::Ready(Some(response));
            }
            match ready!(self.requests.poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(request) => match request.and_then(parameters_of) {
                    Ok(parameters) => self.parameters = parameters,
                    Err(status) => return Poll::Ready(Some(Err(status))),
                },
            }
        }
    }
}

impl Requests {
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<StreamingOutputCallRequest, Status>>> {
        match self {
            Self::Arriving(requests) => Pin::new(requests).poll_next(cx),
            Self::Collected(requests) => Poll::Ready(requests.pop_front().map(Ok)),
        }
    }
}

/// Takes the wait before this response.
fn take_interval(parameters: &mut ResponseParameters) -> Option<Duration> {
    let interval_us = u64::try_from(std::mem::take(&mut parameters.interval_us)).ok()?;
    (interval_us > 0).then(|| Duration::from_micros(interval_us))
}

fn parameters_of(request: StreamingOutputCallRequest) -> Result<VecDeque<ResponseParameters>, Status> {
    wanted_status(request.response_status.as_ref())?;
    Ok(request.response_parameters.into())
}
