//! [`EncodeBody`]: a body made of messages.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use bytes::{BufMut, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::buffer::EncodeBuf;
use super::codecs::{Encoder, HEADER_SIZE};
use super::compression::{CompressionEncoding, SingleMessageCompressionOverride};
use crate::Status;
use crate::chain::Chain;
use crate::compression::Encoding;

pin_project! {
    /// The body of a request or response whose messages come from a stream.
    ///
    /// Messages that are ready are sent together, up to the encoder's threshold.
    #[derive(Debug)]
    pub struct EncodeBody<T, U> {
        #[pin]
        messages: U,
        encoder: T,
        encoding: Option<CompressionEncoding>,
        message_size_max: usize,
        buffer: Chain,
        // The message before its compression.
        plain: Chain,
        // Frames that were encoded.
        frames: vec::IntoIter<Bytes>,
        role: Role,
        state: State,
        #[pin]
        cancelled: Option<WaitForCancellationFutureOwned>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An error ends the body.
    Client,
    /// The status is in the trailers.
    Server,
}

#[derive(Debug)]
enum State {
    Open,
    /// All messages are encoded; what is left is the outcome.
    Ending(Result<(), Status>),
    Ended,
}

impl<T: Encoder, U: Stream> EncodeBody<T, U> {
    /// Creates the body of a request.
    ///
    /// A message of more than `message_size_max` bytes, unlimited by default, fails with OUT_OF_RANGE.
    pub fn new_client(
        encoder: T,
        messages: U,
        encoding: Option<CompressionEncoding>,
        message_size_max: Option<usize>,
    ) -> Self {
        Self::new(encoder, messages, encoding, message_size_max, Role::Client)
    }

    /// Creates the body of a request that fails with CANCELLED when `token` is cancelled.
    #[doc(hidden)]
    pub fn new_client_with_cancellation(
        encoder: T,
        messages: U,
        encoding: Option<CompressionEncoding>,
        message_size_max: Option<usize>,
        token: Option<CancellationToken>,
    ) -> Self {
        let mut body = Self::new_client(encoder, messages, encoding, message_size_max);
        body.cancelled = token.map(CancellationToken::cancelled_owned);
        body
    }

    /// Creates the body of a response, with the status of the call in the trailers.
    ///
    /// A message of more than `message_size_max` bytes, unlimited by default, fails with OUT_OF_RANGE.
    pub fn new_server(
        encoder: T,
        messages: U,
        encoding: Option<CompressionEncoding>,
        compression_override: SingleMessageCompressionOverride,
        message_size_max: Option<usize>,
    ) -> Self {
        let encoding = match compression_override {
            SingleMessageCompressionOverride::Inherit => encoding,
            SingleMessageCompressionOverride::Disable => None,
        };
        Self::new(encoder, messages, encoding, message_size_max, Role::Server)
    }

    fn new(
        encoder: T,
        messages: U,
        encoding: Option<CompressionEncoding>,
        message_size_max: Option<usize>,
        role: Role,
    ) -> Self {
        Self {
            messages,
            encoder,
            encoding,
            message_size_max: message_size_max.unwrap_or(usize::MAX),
            buffer: Chain::default(),
            plain: Chain::default(),
            frames: Vec::new().into_iter(),
            role,
            state: State::Open,
            cancelled: None,
        }
    }
}

/// A body of messages that its sender can let encode into its own buffer, without frames between.
#[doc(hidden)]
pub trait EncodeMessages: Body<Data = Bytes, Error = Status> {
    /// Appends the available messages, with prefixes, until `out` has at least `len_max` bytes. Calls `note` with the
    /// length of each, without prefix.
    ///
    /// Ready when there are no more; the outcome is then the body's last frame. Pending if `out` is full, or if no
    /// message is available, and the task is woken when there is one.
    fn poll_encode(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut Chain,
        len_max: usize,
        note: &mut dyn FnMut(usize),
    ) -> Poll<()>;
}

impl<T, U> EncodeMessages for EncodeBody<T, U>
where
    T: Encoder<Error = Status>,
    U: Stream<Item = Result<T::Item, Status>>,
{
    fn poll_encode(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut Chain,
        len_max: usize,
        note: &mut dyn FnMut(usize),
    ) -> Poll<()> {
        let mut this = self.project();
        // Encoded before, for a caller who asked for frames.
        this.frames.by_ref().for_each(|frame| out.push(frame));
        while matches!(this.state, State::Open) {
            if out.len() >= len_max {
                return Poll::Pending;
            }
            let outcome = match this.messages.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(message))) => {
                    let encode = Encode { encoding: *this.encoding, size_max: *this.message_size_max };
                    match encode.append(this.encoder, message, this.plain, out) {
                        Ok(len) => {
                            note(len);
                            continue;
                        }
                        Err(status) => Err(status),
                    }
                }
                Poll::Ready(Some(Err(status))) => Err(status),
                Poll::Ready(None) => Ok(()),
                Poll::Pending => {
                    let cancelled = this.cancelled.as_mut().as_pin_mut();
                    if cancelled.is_none_or(|cancelled| cancelled.poll(cx).is_pending()) {
                        return Poll::Pending;
                    }
                    Err(Status::cancelled("the client cancelled the call"))
                }
            };
            *this.state = State::Ending(outcome);
        }
        Poll::Ready(())
    }
}

impl<T, U> Body for EncodeBody<T, U>
where
    T: Encoder<Error = Status>,
    U: Stream<Item = Result<T::Item, Status>>,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.as_mut().project();
        if let Some(frame) = this.frames.next() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        let settings = this.encoder.buffer_settings();
        let mut buffer = std::mem::take(this.buffer);
        buffer.buffer().reserve(settings.buffer_size);
        let polled = self.as_mut().poll_encode(cx, &mut buffer, settings.yield_threshold.max(1), &mut |_| ());
        let this = self.project();
        *this.frames = buffer.take_parts().into_iter();
        *this.buffer = buffer;
        if let Some(frame) = this.frames.next() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        ready!(polled);
        let State::Ending(outcome) = std::mem::replace(this.state, State::Ended) else {
            return Poll::Ready(None);
        };
        Poll::Ready(match (*this.role, outcome) {
            (Role::Client, Ok(())) => None,
            (Role::Client, Err(status)) => Some(Err(status)),
            (Role::Server, outcome) => Some(Ok(Frame::trailers(trailers(&outcome)))),
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}

fn trailers(outcome: &Result<(), Status>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    match outcome {
        Ok(()) => {
            trailers.insert(Status::GRPC_STATUS, http::HeaderValue::from_static("0"));
        }
        Err(status) => status.write_fields(&mut trailers),
    }
    trailers
}

/// How messages are encoded.
#[derive(Clone, Copy)]
struct Encode {
    encoding: Option<CompressionEncoding>,
    size_max: usize,
}

impl Encode {
    /// Appends a message with its prefix. Returns its length. `out` is unchanged on error.
    #[inline]
    fn append<T: Encoder<Error = Status>>(
        self,
        encoder: &mut T,
        message: T::Item,
        plain: &mut Chain,
        out: &mut Chain,
    ) -> Result<usize, Status> {
        let (mark, before) = (out.mark(), out.len());
        out.put_bytes(0, HEADER_SIZE);
        let encoded = match self.encoding {
            None => encoder.encode(message, &mut EncodeBuf::new(out)).map_err(failed),
            Some(encoding) => {
                plain.clear();
                let encoded = encoder.encode(message, &mut EncodeBuf::new(plain)).map_err(failed);
                encoded.map(|()| Encoding::from(encoding).compress(plain.make_contiguous(), out.buffer()))
            }
        };
        let len = out.len() - before - HEADER_SIZE;
        match encoded.and_then(|()| self.prefix(len)) {
            Ok(prefix) => {
                out.buffer()[mark.buffer_len()..][..HEADER_SIZE].copy_from_slice(&prefix);
                Ok(len)
            }
            Err(status) => {
                out.truncate(mark);
                Err(status)
            }
        }
    }

    #[inline]
    fn prefix(self, len: usize) -> Result<[u8; HEADER_SIZE], Status> {
        match u32::try_from(len) {
            Ok(wire_len) if len <= self.size_max => {
                let [a, b, c, d] = wire_len.to_be_bytes();
                Ok([u8::from(self.encoding.is_some()), a, b, c, d])
            }
            _ => Err(self.too_large(len)),
        }
    }

    #[cold]
    fn too_large(self, len: usize) -> Status {
        let size_max = self.size_max;
        if len > size_max {
            return Status::out_of_range(format!(
                "a message of {len} bytes is larger than {size_max}, the maximum"
            ));
        }
        Status::resource_exhausted(format!("a message of {len} bytes exceeds the gRPC maximum of 4294967295"))
    }
}

/// The status of a call whose message cannot be encoded: INTERNAL, whatever the encoder's.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: Status) -> Status {
    Status::internal(format!("cannot encode the message: {error}"))
}

#[cfg(test)]
mod tests;
