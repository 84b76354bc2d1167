//! Calls with messages that are already encoded.

use std::sync::Arc;

use thalweg::Raw;

use crate::call::Call;
use crate::form::{Form, Source};
use crate::requests::Requests;
use crate::turn::Turn;
use crate::variables::Variables;
use crate::went::Failure;

pub(crate) struct Bytes<'c> {
    pub(crate) call: &'c Call,
    pub(crate) requests: &'c Requests,
}

impl Form for Bytes<'_> {
    type Request = Raw;
    type Response = Raw;
    type Source = StreamedBytes;

    fn request(&self, turn: &Turn<'_>) -> Result<Raw, String> {
        self.requests.of_call(turn.number, turn.worker as u64, turn.variables()).map(Raw)
    }

    fn requests(&self, turn: &Turn<'_>) -> StreamedBytes {
        StreamedBytes {
            requests: self.requests.clone(),
            variables: turn.variables.clone().unwrap_or_default(),
            number: turn.number,
            worker: turn.worker as u64,
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

    fn check(&self, response: &Raw, turn: &mut Turn<'_>) -> Result<(), Failure> {
        match &self.call.expects.responses {
            None => Ok(()),
            Some(check) => check.check(&response.0, turn.variables_mut()).map_err(Failure::Check),
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
