//! gRPC with other codecs: `application/grpc+json` and `application/grpc+msgpack`, over HTTP/2.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use thalweg_engine::http2::fields::FieldList;
use thalweg_engine::{EncodingSet, RequestHead, Status, wire};

use super::call::MethodCall;
use super::context::{Context, connection_of};
use super::enveloped;
use super::methods::Method;
use super::pages;
use super::response::ResponseFuture;
use super::response_writer::ResponseWriter;
use crate::body::Body;
use crate::codec::Codec;
use crate::compression::{self, Compression};
use crate::envelope::{self, EnvelopeReader};
use crate::fields;

const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Handles a request with gRPC's content type and this codec.
pub(super) fn call(
    context: &Arc<Context>,
    method: &Arc<Method>,
    codec: Codec,
    request: Request<Body>,
) -> ResponseFuture {
    let accepts = method.options().accept_compressed;
    let connection = connection_of(&request);
    let (parts, body) = request.into_parts();
    let mut writer = GrpcResponseWriter { codec, accepts, compression: Compression::NONE };
    let http_method = parts.method.as_str().as_bytes();
    let head = match wire::receive_request(Some(http_method), accepts, fields::grpc_fields(&parts.headers)) {
        Ok(head) => head,
        Err(wire::Refusal::Status(status)) => return ResponseFuture::ready(writer.failure(&status)),
        // The content type is already checked.
        Err(_) => {
            let allow = HeaderValue::from_static("POST");
            return ResponseFuture::ready(pages::method_not_allowed(&parts.headers, allow));
        }
    };
    writer.compression = method.compression(compression::first_common(method.offers(), head.accepts));
    let call = MethodCall { context: Arc::clone(context), method: Arc::clone(method), codec };
    let reader = EnvelopeReader::new(0, head.encoding, method.options().max_decoding_message_size);
    let head = RequestHead::new(head.metadata, head.timeout, connection);
    enveloped::call(call, head, body, reader, writer)
}

/// Format of the response to a request.
struct GrpcResponseWriter {
    codec: Codec,
    accepts: EncodingSet,
    compression: Compression,
}

impl GrpcResponseWriter {
    fn build(&self, fields: &FieldList) -> Response<()> {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        fields::append_fields(fields, headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(self.codec)));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(self.accepts.value()));
        response
    }
}

fn content_type(codec: Codec) -> &'static str {
    match codec {
        Codec::Proto => "application/grpc",
        Codec::Json => "application/grpc+json",
        Codec::MessagePack => "application/grpc+msgpack",
    }
}

fn trailers(outcome: Result<&HeaderMap, &Status>) -> FieldList {
    let mut fields = FieldList::new();
    wire::emit_trailers(outcome, wire::METADATA_SIZE_MAX, &mut fields);
    fields
}

impl ResponseWriter for GrpcResponseWriter {
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        let mut fields = FieldList::new();
        wire::emit_response(self.compression.encoding, metadata, wire::METADATA_SIZE_MAX, &mut fields)?;
        Ok(self.build(&fields))
    }

    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        envelope::put_message(message, &self.compression, out)
    }

    fn end(&self, outcome: Result<&HeaderMap, &Status>, _: &mut Vec<u8>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        fields::append_fields(&trailers(outcome), &mut headers);
        Some(headers)
    }

    fn failure(&self, status: &Status) -> Response<Body> {
        self.build(&trailers(Err(status))).map(|()| Body::empty())
    }
}
