//! Unary calls, with the message as the body.

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalResponse, LocalUnary};
use thalweg_engine::{Encoding, RequestHead, Status};

use super::response_writer::ConnectResponseWriter;
use crate::body::Body;
use crate::compression::decompress;
use crate::service::unary::UnaryAdapter;

/// A unary Connect call.
pub(super) struct ConnectUnary {
    pub(super) writer: ConnectResponseWriter,
    /// Message of a GET; its body is ignored.
    pub(super) message: Option<Bytes>,
    /// Encoding of the message.
    pub(super) encoding: Encoding,
    pub(super) request_head: RequestHead,
}

/// Maximum decompressed size of a GET message, in bytes. HPACK repeats a header in a few bytes, so a few bytes could
/// otherwise cost as much as a message of megabytes.
const GET_SIZE_MAX: usize = 64 << 10;

impl ConnectUnary {
    fn message(&self, body: Bytes) -> Result<Bytes, Status> {
        let size_max = self.size_max();
        let sent = match &self.message {
            Some(sent) if self.encoding.compresses() => {
                decompress(self.encoding, sent.clone(), size_max.min(GET_SIZE_MAX))?
            }
            Some(sent) => decompress(self.encoding, sent.clone(), size_max)?,
            None => decompress(self.encoding, body, size_max)?,
        };
        self.writer.call.read(sent)
    }
}

impl UnaryAdapter for ConnectUnary {
    fn cost(&self) -> &HandlerCost {
        self.writer.call.method.cost()
    }

    fn request_head(&self) -> &RequestHead {
        &self.request_head
    }

    fn size_max(&self) -> usize {
        self.writer.call.method.options().max_decoding_message_size
    }

    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>> {
        self.message(body).map_err(|status| self.failure(status))
    }

    fn call(&self, request_head: &RequestHead, message: Bytes) -> LocalUnary {
        self.writer.call.unary(request_head, message)
    }

    fn response(&self, outcome: Result<LocalResponse, Status>) -> Response<Body> {
        let written = outcome.and_then(|response| {
            let LocalResponse { metadata, message, trailers } = response;
            Ok((metadata, self.writer.call.write(message)?, trailers))
        });
        match written {
            Ok((metadata, message, trailers)) => {
                self.writer.format(false).success(&metadata, &trailers, message).map(Body::full)
            }
            Err(status) => self.failure(status),
        }
    }

    fn failure(&self, status: Status) -> Response<Body> {
        self.writer.format(false).failure(&status).map(Body::full)
    }
}
