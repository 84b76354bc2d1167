//! Messages that are all there is in one direction of a call, without compression: encoded and decoded in one step.
//!
//! tonic keeps the buffers that codecs work on to itself, so both go through its own types; what these would do beyond
//! one message is left out.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body as _, Frame, SizeHint};
use tonic::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBody, EncodeBuf, Encoder, Streaming};
use tonic::{Code, Status};

/// Bytes that a message's buffer begins with: most messages are small, and it grows.
const BUFFER_LEN: usize = 512;
const PREFIX_LEN: usize = tonic::codec::HEADER_SIZE;

/// A codec's end with buffers for one message.
struct Single<C> {
    end: C,
    buffer_len: usize,
}

impl<C> Single<C> {
    fn settings(&self) -> BufferSettings {
        BufferSettings::new(self.buffer_len, usize::MAX)
    }
}

impl<E: Encoder> Encoder for Single<E> {
    type Item = E::Item;
    type Error = E::Error;

    #[inline]
    fn encode(&mut self, item: E::Item, into: &mut EncodeBuf<'_>) -> Result<(), E::Error> {
        self.end.encode(item, into)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.settings()
    }
}

impl<D: Decoder> Decoder for Single<D> {
    type Item = D::Item;
    type Error = D::Error;

    #[inline]
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<D::Item>, D::Error> {
        self.end.decode(from)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.settings()
    }
}

/// `message` with its prefix.
///
/// # Errors
/// The status that the call ends with, if it can't be sent.
pub(crate) fn encode<E>(encoder: E, message: E::Item, size_max: Option<usize>) -> Result<Bytes, Status>
where
    E: Encoder<Error = Status>,
{
    let encoder = Single { end: encoder, buffer_len: BUFFER_LEN };
    let mut body = pin!(EncodeBody::new_client(encoder, Once(Some(message)), None, size_max));
    let mut cx = Context::from_waker(Waker::noop());
    match body.as_mut().poll_frame(&mut cx) {
        Poll::Ready(Some(frame)) => {
            frame?.into_data().map_err(|_| Status::internal("a message was encoded to trailers"))
        }
        Poll::Ready(None) | Poll::Pending => Err(Status::internal("a message was encoded to nothing")),
    }
}

struct Once<T>(Option<T>);

impl<T> Unpin for Once<T> {}

impl<T> tokio_stream::Stream for Once<T> {
    type Item = Result<T, Status>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// Whether `wire` is one message, whole and not compressed.
#[inline]
pub(crate) fn is_single(wire: &[u8]) -> bool {
    match wire {
        [0, a, b, c, d, message @ ..] => message.len() == u32::from_be_bytes([*a, *b, *c, *d]) as usize,
        _ => false,
    }
}

/// The message that `wire` is, which [`is_single`].
///
/// # Errors
/// The status that the call ends with, if it can't be read.
pub(crate) fn decode<D>(decoder: D, wire: Bytes, size_max: Option<usize>) -> Result<D::Item, Status>
where
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + 'static,
{
    let decoder = Single { end: decoder, buffer_len: wire.len().max(PREFIX_LEN) };
    let body = Piece(Some(wire));
    let mut messages = Streaming::new_response(decoder, body, StatusCode::OK, None, size_max);
    let mut cx = Context::from_waker(Waker::noop());
    match tokio_stream::Stream::poll_next(Pin::new(&mut messages), &mut cx) {
        Poll::Ready(Some(message)) => message,
        Poll::Ready(None) | Poll::Pending => Err(Status::new(Code::Internal, "Missing message.")),
    }
}

/// One piece.
struct Piece(Option<Bytes>);

impl http_body::Body for Piece {
    type Data = Bytes;
    type Error = Status;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
