//! gRPC-Web calls.

use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use thalweg_engine::{RequestHead, Status};

use super::call::MethodCall;
use super::context::{Context, connection_of};
use super::enveloped;
use super::methods::Method;
use super::response::ResponseFuture;
use super::response_writer::ResponseWriter;
use crate::body::Body;
use crate::codec::{CODECS, Codec};
use crate::envelope::EnvelopeReader;
use crate::grpc_web::{ResponseFormat, Rules, read_request};

/// Handles a request with gRPC-Web's content type.
pub(super) fn call(context: &Arc<Context>, method: &Arc<Method>, request: Request<Body>) -> ResponseFuture {
    let (accepts, offers) = (method.options().accept_compressed, method.offers());
    let rules: Rules<'static> = Rules { codecs: &CODECS, accepts, offers };
    let connection = connection_of(&request);
    let (parts, body) = request.into_parts();
    let read = match read_request(&parts.method, &parts.headers, &rules) {
        Ok(read) => read,
        Err(refusal) => return ResponseFuture::ready(refusal.response()),
    };
    let codec = Codec::named(read.codec).unwrap_or(Codec::Proto);
    let call = MethodCall { context: Arc::clone(context), method: Arc::clone(method), codec };
    let size_max = method.options().max_decoding_message_size;
    let reader = EnvelopeReader::new(0, read.head.encoding, size_max).with_text(read.is_text);
    let compression = method.compression(read.response_format.compression.encoding);
    let writer = ResponseFormat { compression, ..read.response_format };
    let head = RequestHead::new(read.head.metadata, read.head.timeout, connection);
    enveloped::call(call, head, body, reader, writer)
}

impl ResponseWriter for ResponseFormat<'static> {
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        self.head(metadata)
    }

    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        self.message(message, out)
    }

    fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        self.end(outcome, out);
        None
    }

    fn failure(&self, status: &Status) -> Response<Body> {
        self.failure(status).map(Body::full)
    }
}
