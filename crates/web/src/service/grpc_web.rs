//! gRPC-Web, called.

use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use thalweg_engine::{EncodingSet, RequestHead, Status};

use super::call::Call;
use super::context::{Context, connection_of};
use super::enveloped;
use super::methods::Method;
use super::protocol::Protocol;
use super::response::ResponseFuture;
use crate::body::Body;
use crate::codec::{CODECS, Codec};
use crate::compression::Compression;
use crate::grpc_web::{Answering, ContentType, RequestReader, Rules, read_request};

/// Answers a request whose content type is gRPC-Web's.
pub(super) fn call(context: &Arc<Context>, method: &Arc<Method>, request: Request<Body>) -> ResponseFuture {
    let accepts = method.options().accept_compressed;
    let rules = Rules { codecs: &CODECS, accepts, offers: method.offers() };
    let connection = connection_of(&request);
    let (parts, body) = request.into_parts();
    let read = match read_request(&parts.method, &parts.headers, &rules) {
        Ok(read) => read,
        Err(refusal) => return ResponseFuture::ready(refusal.answer()),
    };
    let codec = Codec::named(read.codec).unwrap_or(Codec::Proto);
    let call = Call { context: Arc::clone(context), method: Arc::clone(method), codec };
    let size_max = method.options().max_decoding_message_size;
    let reader = RequestReader::new(read.is_text, read.head.encoding, size_max);
    let content_type = read.answering.content_type;
    let answer = Answer {
        is_text: content_type.is_text,
        codec: if content_type.codec.is_empty() { "" } else { codec.name() },
        compression: method.compression(read.answering.compression.encoding),
        accepts,
    };
    let head = RequestHead::new(read.head.metadata, read.head.timeout, connection);
    enveloped::call(call, head, body, reader, answer)
}

/// How a request is answered.
struct Answer {
    is_text: bool,
    /// As the content type has it: empty if it says nothing.
    codec: &'static str,
    compression: Compression,
    accepts: EncodingSet,
}

impl Answer {
    fn answering(&self) -> Answering<'static> {
        Answering {
            content_type: ContentType { is_text: self.is_text, codec: self.codec },
            compression: self.compression,
            accepts: self.accepts,
        }
    }
}

impl Protocol for Answer {
    fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        self.answering().head(metadata)
    }

    fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        self.answering().message(message, out)
    }

    fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        self.answering().end(outcome, out);
        None
    }

    fn failure(&self, status: &Status) -> Response<Body> {
        self.answering().failure(status).map(Body::whole)
    }
}
