//! Connect calls.

mod response_writer;
mod unary;

use std::sync::Arc;

use http::Request;
use thalweg_engine::raw::RawHead;
use thalweg_engine::{ConnectionInfo, RequestHead};

use super::context::{Context, connection_of};
use super::enveloped;
use super::methods::Method;
use super::response::ResponseFuture;
use super::unary::UnaryAdapter;
use crate::body::Body;
use crate::codec::CODECS;
use crate::connect::{self, Refusal, Rules, Shape, read_request};
use crate::envelope::EnvelopeReader;
use response_writer::ConnectResponseWriter;
use unary::ConnectUnary;

/// Handles a Connect request to a method.
pub(super) fn call(
    context: &Arc<Context>,
    method: &Arc<Method>,
    requires_version: bool,
    request: Request<Body>,
) -> ResponseFuture {
    let rules = rules(method, requires_version);
    let connection = connection_of(&request);
    let (parts, body) = request.into_parts();
    let head = match read_request(&parts.method, &parts.uri, &parts.headers, &rules) {
        Ok(Some(head)) => head,
        Ok(None) => return ResponseFuture::ready(Refusal::MethodNotAllowed.response()),
        Err(refusal) => return ResponseFuture::ready(refusal.response()),
    };
    if head.shape != Shape::Stream {
        return ResponseFuture::unary(&unary_adapter(context, method, head, connection), body);
    }
    let writer = ConnectResponseWriter::new(context, method, &head);
    let reader = EnvelopeReader::new(0, head.encoding, method.options().max_decoding_message_size);
    let request_head = RequestHead::new(head.metadata, head.timeout, connection);
    enveloped::call(writer.call.clone(), request_head, body, reader, writer)
}

/// Returns the adapter of a unary call; `None` if it is refused.
pub(super) fn adapter(
    context: &Arc<Context>,
    method: &Arc<Method>,
    requires_version: bool,
    head: &RawHead<'_>,
) -> Option<Arc<dyn UnaryAdapter>> {
    let rules = rules(method, requires_version);
    let read = read_request(head.method, head.uri, head.headers, &rules).ok()??;
    Some(unary_adapter(context, method, read, head.connection.cloned()))
}

fn unary_adapter(
    context: &Arc<Context>,
    method: &Arc<Method>,
    head: connect::RequestHead<'_>,
    connection: Option<Arc<ConnectionInfo>>,
) -> Arc<dyn UnaryAdapter> {
    let writer = ConnectResponseWriter::new(context, method, &head);
    let message = if let Shape::Get { message } = head.shape { Some(message) } else { None };
    let request_head = RequestHead::new(head.metadata, head.timeout, connection);
    Arc::new(ConnectUnary { writer, message, encoding: head.encoding, request_head })
}

fn rules(method: &Method, requires_version: bool) -> Rules<'static> {
    Rules {
        codecs: &CODECS,
        requires_version,
        accepts: method.options().accept_compressed,
        offers: method.offers(),
    }
}
