//! Format of the response to a Connect request: [`ConnectResponseWriter`].

use std::sync::Arc;

use http::{HeaderMap, Response};
use thalweg_engine::{Encoding, Status};

use crate::body::Body;
use crate::codec::Codec;
use crate::connect::{RequestHead, ResponseFormat, Shape};
use crate::service::call::MethodCall;
use crate::service::context::Context;
use crate::service::methods::Method;
use crate::service::response_writer::ResponseWriter;

/// Format of the response to a request.
pub(super) struct ConnectResponseWriter {
    pub(super) call: MethodCall,
    pub(super) is_get: bool,
    pub(super) encoding: Encoding,
}

impl ConnectResponseWriter {
    pub(super) fn new(
        context: &Arc<Context>,
        method: &Arc<Method>,
        head: &RequestHead<'_>,
    ) -> ConnectResponseWriter {
        let codec = Codec::named(head.codec).unwrap_or(Codec::Proto);
        let call = MethodCall { context: Arc::clone(context), method: Arc::clone(method), codec };
        ConnectResponseWriter {
            call,
            is_get: matches!(head.shape, Shape::Get { .. }),
            encoding: head.response_encoding,
        }
    }

    pub(super) fn format(&self, is_stream: bool) -> ResponseFormat<'_> {
        ResponseFormat {
            codec: self.call.codec.name(),
            is_stream,
            is_get: self.is_get,
            compression: self.call.method.compression(self.encoding),
            detail_json: self.call.context.detail_json(),
        }
    }
}

impl ResponseWriter for ConnectResponseWriter {
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        self.format(true).head(metadata)
    }

    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        self.format(true).message(message, out)
    }

    fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        self.format(true).end(outcome, out);
        None
    }

    fn failure(&self, status: &Status) -> Response<Body> {
        self.format(true).failure(status).map(Body::full)
    }
}
