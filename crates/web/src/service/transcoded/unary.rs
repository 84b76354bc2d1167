//! Calls with one message each way.

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalResponse, LocalUnary};
use thalweg_engine::{RequestHead, Status};

use super::call::TranscodedCall;
use super::failure::Failure;
use crate::body::Body;
use crate::service::unary::UnaryAdapter;

/// A unary transcoded call.
pub(super) struct TranscodedUnary {
    pub(super) call: TranscodedCall,
    pub(super) request_head: RequestHead,
}

impl TranscodedUnary {
    fn failure_response(&self, failure: &Failure) -> Response<Body> {
        failure.response(&self.call.routes.context)
    }
}

impl UnaryAdapter for TranscodedUnary {
    fn cost(&self) -> &HandlerCost {
        &self.call.target().cost
    }

    fn request_head(&self) -> &RequestHead {
        &self.request_head
    }

    fn size_max(&self) -> usize {
        self.call.size_max()
    }

    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>> {
        self.call.message(body).map_err(|failure| self.failure_response(&failure))
    }

    fn call(&self, request_head: &RequestHead, message: Bytes) -> LocalUnary {
        self.call.unary(request_head, message)
    }

    fn response(&self, outcome: Result<LocalResponse, Status>) -> Response<Body> {
        match outcome.map_err(Failure::from).and_then(|response| self.call.unary_response(&response)) {
            Ok(response) => response,
            Err(failure) => self.failure_response(&failure),
        }
    }

    fn failure(&self, status: Status) -> Response<Body> {
        self.failure_response(&Failure::unreadable(status))
    }
}
