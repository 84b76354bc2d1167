//! How a request of Connect's is answered: [`Answer`].

use http::{HeaderMap, Response};
use thalweg_engine::{Encoding, Status};

use crate::body::Body;
use crate::connect::Answering;
use crate::service::call::Call;
use crate::service::protocol::Protocol;

/// How a request is answered.
pub(super) struct Answer {
    pub(super) call: Call,
    pub(super) is_get: bool,
    pub(super) encoding: Encoding,
}

impl Answer {
    pub(super) fn answering(&self, is_stream: bool) -> Answering<'_> {
        Answering {
            codec: self.call.codec.name(),
            is_stream,
            is_get: self.is_get,
            compression: self.call.method.compression(self.encoding),
            detail_json: self.call.context.detail_json(),
        }
    }
}

impl Protocol for Answer {
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        self.answering(true).head(metadata)
    }

    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        self.answering(true).message(message, out)
    }

    fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        self.answering(true).end(outcome, out);
        None
    }

    fn failure(&self, status: &Status) -> Response<Body> {
        self.answering(true).failure(status).map(Body::whole)
    }
}
