//! Connect calls.

mod answer;
mod form;

use std::sync::Arc;

use http::Request;
use thalweg_engine::raw::RawHead;
use thalweg_engine::{ConnectionInfo, RequestHead};

use super::context::{Context, connection_of};
use super::enveloped;
use super::methods::Method;
use super::response::ResponseFuture;
use super::unary::Form;
use crate::body::Body;
use crate::codec::CODECS;
use crate::connect::{self, Refusal, Rules, Shape, read_request};
use crate::envelope::Reader;
use answer::Answer;
use form::ConnectForm;

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
        Ok(None) => return ResponseFuture::ready(Refusal::MethodNotAllowed.answer()),
        Err(refusal) => return ResponseFuture::ready(refusal.answer()),
    };
    if head.shape != Shape::Stream {
        return ResponseFuture::unary(&unary_form(context, method, head, connection), body);
    }
    let answer = Answer::new(context, method, &head);
    let reader = Reader::new(0, head.encoding, method.options().max_decoding_message_size);
    let asked = RequestHead::new(head.metadata, head.timeout, connection);
    enveloped::call(answer.call.clone(), asked, body, reader, answer)
}

/// Returns the form of a unary call; `None` if it is refused.
pub(super) fn form(
    context: &Arc<Context>,
    method: &Arc<Method>,
    requires_version: bool,
    head: &RawHead<'_>,
) -> Option<Arc<dyn Form>> {
    let rules = rules(method, requires_version);
    let read = read_request(head.method, head.uri, head.headers, &rules).ok()??;
    Some(unary_form(context, method, read, head.connection.cloned()))
}

fn unary_form(
    context: &Arc<Context>,
    method: &Arc<Method>,
    head: connect::RequestHead<'_>,
    connection: Option<Arc<ConnectionInfo>>,
) -> Arc<dyn Form> {
    let answer = Answer::new(context, method, &head);
    let message = if let Shape::Get { message } = head.shape { Some(message) } else { None };
    let asked = RequestHead::new(head.metadata, head.timeout, connection);
    Arc::new(ConnectForm { answer, message, encoding: head.encoding, asked })
}

fn rules(method: &Method, requires_version: bool) -> Rules<'static> {
    Rules {
        codecs: &CODECS,
        requires_version,
        accepts: method.options().accept_compressed,
        offers: method.offers(),
    }
}
