//! Uncompressed messages that are the only one of their direction: encoded and decoded in one step.
//!
//! tonic's codec buffers can be created only by its own `EncodeBody` and `Streaming`, which are designed for the many
//! messages of a call. Each thread keeps one of each for the small messages of all its calls. Each message is passed to
//! them as a job, through thread-local storage.

use std::any::Any;
use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::LocalKey;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::{Body as _, Frame};
use thalweg_engine::raw::Piece;
use vocabulary::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBody, EncodeBuf, Encoder, Streaming};
use vocabulary::{Code, Status};

use super::wire::{PREFIX_LEN, too_large};

/// Above this size the encoder or decoder is not kept, because its buffers have grown.
const SMALL_LEN_MAX: usize = 8 << 10;
const DECODED_LEN_MAX: usize = 4 << 20;

type Encoders = Pin<Box<EncodeBody<EncodeNext, Next>>>;
type Decoders = Box<Streaming<()>>;

// They are taken out while in use. A codec that panics, or calls another codec, finds none rather than a wrong one.
thread_local! {
    static ENCODERS: Cell<Option<Encoders>> = const { Cell::new(None) };
    static DECODERS: Cell<Option<Decoders>> = const { Cell::new(None) };
    static TO_ENCODE: Cell<Option<Box<dyn Encode>>> = const { Cell::new(None) };
    static TO_DECODE: Cell<Option<(Bytes, Box<dyn Decode>)>> = const { Cell::new(None) };
    static DECODED: Cell<Option<Box<dyn Decode>>> = const { Cell::new(None) };
}

/// Sets the value without the initialisation check of `LocalKey::set`.
fn set<T>(slot: &'static LocalKey<Cell<Option<T>>>, value: T) {
    slot.with(|slot| slot.set(Some(value)));
}

/// Encodes `message` with its prefix.
///
/// # Errors
/// The status that the call ends with if the message cannot be sent.
pub(crate) fn encode<E>(encoder: E, message: E::Item, size_max: Option<usize>) -> Result<Piece, Status>
where
    E: Encoder<Error = Status> + 'static,
    E::Item: 'static,
{
    let missing = || Status::internal("encoding a message produced nothing");
    let make = || Box::pin(EncodeBody::new_client(EncodeNext, Next, None, Some(usize::MAX)));
    let mut encoders = ENCODERS.take().unwrap_or_else(make);
    set(&TO_ENCODE, Box::new(Encoding { encoder, message: Some(message) }));
    let Poll::Ready(Some(frame)) = encoders.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()))
    else {
        return Err(missing());
    };
    let wire = frame?.into_data().map_err(|_| missing())?;
    if wire.len() <= SMALL_LEN_MAX {
        set(&ENCODERS, encoders);
    }
    let (len, limit) = (wire.len().saturating_sub(PREFIX_LEN), size_max.unwrap_or(usize::MAX));
    if len > limit {
        return Err(too_large("encoded", len, limit));
    }
    Ok(wire.into())
}

/// A message with its encoder.
trait Encode {
    fn encode(&mut self, into: &mut EncodeBuf<'_>) -> Result<(), Status>;
}

struct Encoding<E: Encoder> {
    encoder: E,
    message: Option<E::Item>,
}

impl<E: Encoder<Error = Status>> Encode for Encoding<E> {
    fn encode(&mut self, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        self.message.take().map_or(Ok(()), |message| self.encoder.encode(message, into))
    }
}

/// Encodes the current job.
struct EncodeNext;

impl Encoder for EncodeNext {
    type Item = Box<dyn Encode>;
    type Error = Status;

    #[inline]
    fn encode(&mut self, mut job: Box<dyn Encode>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        job.encode(into)
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(SMALL_LEN_MAX, usize::MAX)
    }
}

struct Next;

impl tokio_stream::Stream for Next {
    type Item = Result<Box<dyn Encode>, Status>;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Without another job, the encoded message is returned, and the stream is polled again later.
        TO_ENCODE.take().map_or(Poll::Pending, |job| Poll::Ready(Some(Ok(job))))
    }
}

/// Decodes `wire`, for which [`is_single`](super::wire::is_single) returned true.
///
/// # Errors
/// The status that the call ends with if the message cannot be read.
pub(crate) fn decode<D>(decoder: D, wire: Bytes, size_max: Option<usize>) -> Result<D::Item, Status>
where
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + 'static,
{
    let (len, limit) = (wire.len().saturating_sub(PREFIX_LEN), size_max.unwrap_or(DECODED_LEN_MAX));
    if len > limit {
        return Err(too_large("decoded", len, limit));
    }
    let is_small = wire.len() <= SMALL_LEN_MAX;
    let make = || {
        let buffer_len = if is_small { SMALL_LEN_MAX } else { 0 };
        Box::new(Streaming::new_response(
            DecodeNext { buffer_len },
            Pieces,
            StatusCode::OK,
            None,
            Some(usize::MAX),
        ))
    };
    // A new decoder takes over a large message's buffer instead of copying it.
    let mut decoders = is_small.then(|| DECODERS.take()).flatten().unwrap_or_else(make);
    set(&TO_DECODE, (wire, Box::new(Decoding { decoder, message: None })));
    let mut cx = Context::from_waker(Waker::noop());
    let polled = tokio_stream::Stream::poll_next(Pin::new(&mut *decoders), &mut cx);
    let job = DECODED.take();
    if let Poll::Ready(Some(outcome)) = polled {
        outcome?;
    }
    let job = job.and_then(|job| (job as Box<dyn Any>).downcast::<Decoding<D>>().ok());
    let Some(message) = job.and_then(|job| job.message) else {
        return Err(Status::new(Code::Internal, "Missing message."));
    };
    if is_small {
        set(&DECODERS, decoders);
    }
    Ok(message)
}

/// A decoder of a message, and then the message.
trait Decode: Any {
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<(), Status>;
}

struct Decoding<D: Decoder> {
    decoder: D,
    message: Option<D::Item>,
}

impl<D> Decode for Decoding<D>
where
    D: Decoder<Error = Status> + 'static,
    D::Item: 'static,
{
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<(), Status> {
        self.message = self.decoder.decode(from)?;
        Ok(())
    }
}

/// Decodes the current job.
struct DecodeNext {
    buffer_len: usize,
}

impl Decoder for DecodeNext {
    type Item = ();
    type Error = Status;

    #[inline]
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        if let Some(mut job) = DECODED.take() {
            job.decode(from)?;
            set(&DECODED, job);
        }
        // The next message belongs to another call.
        from.advance(from.remaining());
        Ok(Some(()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(self.buffer_len, usize::MAX)
    }
}

/// The encoded bytes of the current job.
struct Pieces;

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some((wire, job)) = TO_DECODE.take() else { return Poll::Pending };
        set(&DECODED, job);
        Poll::Ready(Some(Ok(Frame::data(wire))))
    }
}
