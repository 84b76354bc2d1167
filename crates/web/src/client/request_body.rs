//! Enveloped requests as a body that is encoded while it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};
use thalweg_engine::{Code, Status};

use crate::compression::Compression;
use crate::grpc_web::put_message;

/// Encoding of messages in a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageEncoder {
    pub(super) compression: Compression,
    /// Whether the body is Base64.
    pub(super) is_text: bool,
    /// Maximum size of a message, in bytes.
    pub(super) size_max: usize,
}

impl MessageEncoder {
    pub(super) fn encode(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        check_size(message.len(), self.size_max)?;
        put_message(message, &self.compression, self.is_text, out)
    }
}

/// Returns RESOURCE_EXHAUSTED if a message of `len` bytes may not be sent.
pub(super) fn check_size(len: usize, size_max: usize) -> Result<(), Status> {
    if len <= size_max {
        return Ok(());
    }
    let why = format!(
        "trying to send message larger than max ({len} vs. {size_max}): see the sender's max_encoding_message_size"
    );
    Err(Status::local(Code::ResourceExhausted, why))
}

/// Bytes of ready messages after which a piece is sent.
const PIECE_LEN: usize = 32 * 1024;

/// A stream of messages as a body.
pub(super) struct MessageBody {
    /// `None` once it has ended.
    requests: Option<Requests>,
    encoder: MessageEncoder,
}

type Requests = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl MessageBody {
    pub(super) fn new(requests: Requests, encoder: MessageEncoder) -> MessageBody {
        MessageBody { requests: Some(requests), encoder }
    }

    /// Encodes the messages that are ready, up to [`PIECE_LEN`].
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, Status>> {
        let mut piece = Vec::new();
        while piece.len() < PIECE_LEN
            && let Some(requests) = &mut self.requests
        {
            match requests.as_mut().poll_next(cx) {
                Poll::Ready(Some(message)) => self.encoder.encode(&message?, &mut piece)?,
                Poll::Ready(None) => self.requests = None,
                Poll::Pending if piece.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(piece))
    }
}

impl http_body::Body for MessageBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.poll_piece(cx).map(|piece| match piece {
            Ok(piece) if piece.is_empty() => None,
            Ok(piece) => Some(Ok(Frame::data(piece.into()))),
            Err(status) => {
                self.requests = None;
                Some(Err(status))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.requests.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.requests.is_none() { SizeHint::with_exact(0) } else { SizeHint::new() }
    }
}
