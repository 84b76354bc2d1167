//! Messages of gRPC's BenchmarkService.

use prost::Message;
use thalweg::Status;

use crate::call_context::CallContext;
use crate::call_outcome::Failure;
use crate::form::{Form, Source};
use crate::record::MessageOwnership;
use crate::services::proto::{Payload, SimpleRequest, SimpleResponse};
use crate::services::zeros;

/// BenchmarkService messages with payloads of one size.
#[derive(Clone, Debug)]
pub struct BenchmarkMessages {
    request: SimpleRequest,
    encoded_bytes: u64,
    /// Payload bytes of a response.
    response_bytes: usize,
    message_ownership: MessageOwnership,
    /// Messages of a request stream.
    per_stream: u64,
}

impl BenchmarkMessages {
    /// Creates messages with payloads of `request_bytes` and `response_bytes`. A request stream has `per_stream`
    /// messages.
    pub fn new(
        request_bytes: usize,
        response_bytes: usize,
        message_ownership: MessageOwnership,
        per_stream: u64,
    ) -> Self {
        let request = request(request_bytes, response_bytes);
        let encoded_bytes = request.encoded_len() as u64;
        Self { request, encoded_bytes, response_bytes, message_ownership, per_stream }
    }

    pub(crate) fn per_stream(&self) -> u64 {
        self.per_stream
    }
}

impl Form for BenchmarkMessages {
    type Request = SimpleRequest;
    type Response = SimpleResponse;
    type Source = Repeated;

    fn request(&self, _: &CallContext<'_>) -> Result<SimpleRequest, String> {
        Ok(self.request.clone())
    }

    fn requests(&self, _: &CallContext<'_>) -> Repeated {
        Repeated { request: self.request.clone(), bytes: self.encoded_bytes, left: self.per_stream }
    }

    fn request_bytes(&self, _: &SimpleRequest) -> u64 {
        self.encoded_bytes
    }

    fn response_bytes(response: &SimpleResponse) -> u64 {
        response.encoded_len() as u64
    }

    fn check(&self, response: &SimpleResponse, _: &mut CallContext<'_>) -> Result<(), Failure> {
        check_size(response, self.response_bytes).map_err(Failure::Status)
    }

    fn is_owned(&self) -> bool {
        self.message_ownership == MessageOwnership::Owned
    }
}

/// The same request, repeated.
#[derive(Debug)]
pub(crate) struct Repeated {
    request: SimpleRequest,
    bytes: u64,
    left: u64,
}

impl Source for Repeated {
    type Request = SimpleRequest;

    #[inline]
    fn next(&mut self) -> Option<Result<(&SimpleRequest, u64), String>> {
        self.left = self.left.checked_sub(1)?;
        Some(Ok((&self.request, self.bytes)))
    }
}

/// Checks the payload size of a response.
#[inline]
pub(crate) fn check_size(response: &SimpleResponse, asked: usize) -> Result<(), Status> {
    match response.payload.as_ref().map_or(0, |payload| payload.body.len()) {
        got if got == asked => Ok(()),
        got => Err(Status::data_loss(format!("expected a response of {asked} bytes, got {got}"))),
    }
}

/// Returns a request of `size` bytes that asks for `response_size` bytes. If both are 0, the message is empty.
pub fn request(size: usize, response_size: usize) -> SimpleRequest {
    SimpleRequest {
        response_size: i32::try_from(response_size).expect("payloads are bounded by PAYLOAD_BYTES_MAX"),
        payload: payload(size),
        ..SimpleRequest::default()
    }
}

/// Returns a payload of `size` zeros, or `None` if `size` is 0.
pub fn payload(size: usize) -> Option<Payload> {
    (size > 0).then(|| Payload { r#type: 0, body: zeros(size) })
}
