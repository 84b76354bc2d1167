//! [`EncodeBody`]: a body made of messages.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::buffer::EncodeBuf;
use super::codecs::{Encoder, HEADER_SIZE};
use super::compression::{CompressionEncoding, SingleMessageCompressionOverride, compress};
use crate::Status;

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
        buffer: BytesMut,
        // The message before its compression.
        plain: BytesMut,
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
    /// All messages are encoded; what is left are their bytes and the outcome.
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
            buffer: BytesMut::new(),
            plain: BytesMut::new(),
            role,
            state: State::Open,
            cancelled: None,
        }
    }
}

impl<T, U> Body for EncodeBody<T, U>
where
    T: Encoder<Error = Status>,
    U: Stream<Item = Result<T::Item, Status>>,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut this = self.project();
        let settings = this.encoder.buffer_settings();
        while matches!(this.state, State::Open) {
            let message = match this.messages.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(status))) => {
                    *this.state = State::Ending(Err(status));
                    break;
                }
                Poll::Ready(None) => {
                    *this.state = State::Ending(Ok(()));
                    break;
                }
                Poll::Pending if !this.buffer.is_empty() => break,
                Poll::Pending => {
                    let cancelled = this.cancelled.as_mut().as_pin_mut();
                    if cancelled.is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
                        *this.state = State::Ending(Err(Status::cancelled("the client cancelled the call")));
                        break;
                    }
                    return Poll::Pending;
                }
            };
            if this.buffer.capacity() == 0 {
                this.buffer.reserve(settings.buffer_size);
            }
            let encode = Encode { encoding: *this.encoding, size_max: *this.message_size_max };
            if let Err(status) = encode.append(this.encoder, message, this.plain, this.buffer) {
                *this.state = State::Ending(Err(status));
            } else if this.buffer.len() >= settings.yield_threshold {
                break;
            }
        }
        if !this.buffer.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(this.buffer.split().freeze()))));
        }
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
    /// Appends a message with its prefix. `buffer` is unchanged on error.
    fn append<T: Encoder<Error = Status>>(
        self,
        encoder: &mut T,
        message: T::Item,
        plain: &mut BytesMut,
        buffer: &mut BytesMut,
    ) -> Result<(), Status> {
        let start = buffer.len();
        buffer.put_bytes(0, HEADER_SIZE);
        let encoded = match self.encoding {
            None => encoder.encode(message, &mut EncodeBuf::new(buffer)),
            Some(encoding) => {
                plain.clear();
                encoder
                    .encode(message, &mut EncodeBuf::new(plain))
                    .and_then(|()| compress(encoding, plain, buffer))
            }
        };
        let prefix = encoded.and_then(|()| self.prefix(buffer.len() - start - HEADER_SIZE));
        match prefix {
            Ok(prefix) => {
                buffer[start..start + HEADER_SIZE].copy_from_slice(&prefix);
                Ok(())
            }
            Err(status) => {
                buffer.truncate(start);
                Err(status)
            }
        }
    }

    fn prefix(self, len: usize) -> Result<[u8; HEADER_SIZE], Status> {
        let Self { encoding, size_max } = self;
        if len > size_max {
            return Err(Status::out_of_range(format!(
                "a message of {len} bytes is larger than {size_max}, the maximum"
            )));
        }
        let len = u32::try_from(len).map_err(|_| {
            Status::resource_exhausted(format!(
                "a message of {len} bytes exceeds the gRPC maximum of 4294967295"
            ))
        })?;
        let [a, b, c, d] = len.to_be_bytes();
        Ok([u8::from(encoding.is_some()), a, b, c, d])
    }
}

#[cfg(test)]
mod tests;
