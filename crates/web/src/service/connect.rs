//! Connect, called.

mod answer;
mod unary;

use std::sync::Arc;

use http::Request;
use thalweg_engine::RequestHead;

use super::call::Call;
use super::context::{Context, connection_of};
use super::enveloped;
use super::methods::Method;
use super::response::ResponseFuture;
use crate::body::Body;
use crate::codec::{CODECS, Codec};
use crate::connect::{Refusal, RequestReader, Rules, Shape, read_request};
use answer::Answer;

/// Answers a request to a method, which is Connect's.
pub(super) fn call(
    context: &Arc<Context>,
    method: &Arc<Method>,
    requires_version: bool,
    request: Request<Body>,
) -> ResponseFuture {
    let rules = Rules {
        codecs: &CODECS,
        requires_version,
        accepts: method.options().accept_compressed,
        offers: method.offers(),
    };
    let connection = connection_of(&request);
    let (parts, body) = request.into_parts();
    let head = match read_request(&parts.method, &parts.uri, &parts.headers, &rules) {
        Ok(Some(head)) => head,
        Ok(None) => return ResponseFuture::ready(Refusal::MethodNotAllowed.answer()),
        Err(refusal) => return ResponseFuture::ready(refusal.answer()),
    };
    let codec = Codec::named(head.codec).unwrap_or(Codec::Proto);
    let call = Call { context: Arc::clone(context), method: Arc::clone(method), codec };
    let asked = RequestHead::new(head.metadata, head.timeout, connection);
    let answer =
        Answer { call, is_get: matches!(head.shape, Shape::Get { .. }), encoding: head.answer_encoding };
    match head.shape {
        Shape::Stream => {
            let size_max = method.options().max_decoding_message_size;
            let reader = RequestReader::new(head.encoding, size_max);
            enveloped::call(answer.call.clone(), asked, body, reader, answer)
        }
        Shape::Post => unary::call(answer, asked, head.encoding, body),
        Shape::Get { message } => unary::call(answer, asked, head.encoding, Body::whole(message)),
    }
}
