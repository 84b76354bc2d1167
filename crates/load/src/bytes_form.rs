//! Calls with messages that are already encoded.

use std::sync::Arc;

use thalweg::Raw;

use crate::call::Call;
use crate::call_context::CallContext;
use crate::call_outcome::Failure;
use crate::form::{Form, Source};
use crate::requests::Requests;
use crate::variables::Variables;

pub(crate) struct Bytes<'c> {
    pub(crate) call: &'c Call,
    pub(crate) requests: &'c Requests,
}

impl Form for Bytes<'_> {
    type Request = Raw;
    type Response = Raw;
    type Source = StreamedBytes;

    fn request(&self, context: &CallContext<'_>) -> Result<Raw, String> {
        self.requests.of_call(context.number, context.worker as u64, context.variables()).map(Raw)
    }

    fn requests(&self, context: &CallContext<'_>) -> StreamedBytes {
        StreamedBytes {
            requests: self.requests.clone(),
            variables: context.variables.clone().unwrap_or_default(),
            number: context.number,
            worker: context.worker as u64,
            next: 0,
            message: Raw::default(),
        }
    }

    fn request_bytes(&self, request: &Raw) -> u64 {
        request.0.len() as u64
    }

    fn response_bytes(response: &Raw) -> u64 {
        response.0.len() as u64
    }

    fn check(&self, response: &Raw, context: &mut CallContext<'_>) -> Result<(), Failure> {
        match &self.call.expects.responses {
            None => Ok(()),
            Some(check) => check.check(&response.0, context.variables_mut()).map_err(Failure::Check),
        }
    }
}

/// Encoded requests of one stream.
pub(crate) struct StreamedBytes {
    requests: Requests,
    variables: Arc<Variables>,
    number: u64,
    worker: u64,
    next: u64,
    message: Raw,
}

impl Source for StreamedBytes {
    type Request = Raw;

    fn next(&mut self) -> Option<Result<(&Raw, u64), String>> {
        if self.next == self.requests.per_stream() {
            return None;
        }
        let message = self.requests.of_stream(self.number, self.worker, self.next, &self.variables);
        self.next += 1;
        Some(message.map(|message| {
            let bytes = message.len() as u64;
            self.message = Raw(message);
            (&self.message, bytes)
        }))
    }
}
