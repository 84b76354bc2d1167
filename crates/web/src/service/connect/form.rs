//! Unary calls, with the message as the body.

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalResponse, LocalUnary};
use thalweg_engine::{Encoding, RequestHead, Status};

use super::answer::Answer;
use crate::body::Body;
use crate::compression::decompress;
use crate::service::unary::Form;

/// A unary Connect call.
pub(super) struct ConnectForm {
    pub(super) answer: Answer,
    /// Message of a GET; its body is ignored.
    pub(super) message: Option<Bytes>,
    /// Encoding of the message.
    pub(super) encoding: Encoding,
    pub(super) asked: RequestHead,
}

/// Maximum decompressed size of a GET message, in bytes. HPACK repeats a header in a few bytes, so a few bytes could
/// otherwise cost as much as a message of megabytes.
const GET_SIZE_MAX: usize = 64 << 10;

impl ConnectForm {
    fn message(&self, body: Bytes) -> Result<Bytes, Status> {
        let size_max = self.size_max();
        let sent = match &self.message {
            Some(sent) if self.encoding.compresses() => {
                decompress(self.encoding, sent.clone(), size_max.min(GET_SIZE_MAX))?
            }
            Some(sent) => decompress(self.encoding, sent.clone(), size_max)?,
            None => decompress(self.encoding, body, size_max)?,
        };
        self.answer.call.read(sent)
    }
}

impl Form for ConnectForm {
    fn cost(&self) -> &HandlerCost {
        self.answer.call.method.cost()
    }

    fn asked(&self) -> &RequestHead {
        &self.asked
    }

    fn size_max(&self) -> usize {
        self.answer.call.method.options().max_decoding_message_size
    }

    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>> {
        self.message(body).map_err(|status| self.failure(status))
    }

    fn call(&self, asked: &RequestHead, message: Bytes) -> LocalUnary {
        self.answer.call.unary(asked, message)
    }

    fn answer(&self, outcome: Result<LocalResponse, Status>) -> Response<Body> {
        let written = outcome.and_then(|answer| {
            let LocalResponse { metadata, message, trailers } = answer;
            Ok((metadata, self.answer.call.write(message)?, trailers))
        });
        match written {
            Ok((metadata, message, trailers)) => {
                self.answer.answering(false).success(&metadata, &trailers, message).map(Body::whole)
            }
            Err(status) => self.failure(status),
        }
    }

    fn failure(&self, status: Status) -> Response<Body> {
        self.answer.answering(false).failure(&status).map(Body::whole)
    }
}
