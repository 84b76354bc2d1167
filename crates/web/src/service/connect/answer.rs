//! Format of the response to a Connect request: [`Answer`].

use std::sync::Arc;

use http::{HeaderMap, Response};
use thalweg_engine::{Encoding, Status};

use crate::body::Body;
use crate::codec::Codec;
use crate::connect::{Answering, RequestHead, Shape};
use crate::service::call::Call;
use crate::service::context::Context;
use crate::service::methods::Method;
use crate::service::protocol::Protocol;

/// Format of the response to a request.
pub(super) struct Answer {
    pub(super) call: Call,
    pub(super) is_get: bool,
    pub(super) encoding: Encoding,
}

impl Answer {
    pub(super) fn new(context: &Arc<Context>, method: &Arc<Method>, head: &RequestHead<'_>) -> Answer {
        let codec = Codec::named(head.codec).unwrap_or(Codec::Proto);
        let call = Call { context: Arc::clone(context), method: Arc::clone(method), codec };
        Answer { call, is_get: matches!(head.shape, Shape::Get { .. }), encoding: head.answer_encoding }
    }

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
