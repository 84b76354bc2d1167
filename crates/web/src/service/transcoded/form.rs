//! Calls with one message each way.

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalResponse, LocalUnary};
use thalweg_engine::{RequestHead, Status};

use super::call::Call;
use super::failure::Failure;
use crate::body::Body;
use crate::service::unary::Form;

/// A unary transcoded call.
pub(super) struct TranscodedForm {
    pub(super) call: Call,
    pub(super) asked: RequestHead,
}

impl TranscodedForm {
    fn refused(&self, failure: &Failure) -> Response<Body> {
        failure.answer(&self.call.routes.context)
    }
}

impl Form for TranscodedForm {
    fn cost(&self) -> &HandlerCost {
        &self.call.target().cost
    }

    fn asked(&self) -> &RequestHead {
        &self.asked
    }

    fn size_max(&self) -> usize {
        self.call.size_max()
    }

    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>> {
        self.call.message(body).map_err(|failure| self.refused(&failure))
    }

    fn call(&self, asked: &RequestHead, message: Bytes) -> LocalUnary {
        self.call.unary(asked, message)
    }

    fn answer(&self, outcome: Result<LocalResponse, Status>) -> Response<Body> {
        match outcome.map_err(Failure::from).and_then(|answer| self.call.whole(&answer)) {
            Ok(answer) => answer,
            Err(failure) => self.refused(&failure),
        }
    }

    fn failure(&self, status: Status) -> Response<Body> {
        self.refused(&Failure::unreadable(status))
    }
}
