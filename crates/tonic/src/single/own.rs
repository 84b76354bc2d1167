//! Uncompressed messages that are the only one of their direction: encoded and decoded in one step.

use std::cell::Cell;

use bytes::{Buf, BufMut, Bytes};
use thalweg_engine::Chain;
use thalweg_engine::raw::Piece;
use vocabulary::codec::{DecodeBuf, Decoder, EncodeBuf, Encoder, MAX_DECODING_MESSAGE_SIZE};
use vocabulary::{Code, Status};

use super::wire::{PREFIX_LEN, too_large};

/// Initial size of the buffer of an encoded message, in bytes.
const ENCODED_LEN: usize = 512;
/// Messages up to this size are copied out of the thread's buffer. Larger ones take it along.
const COPIED_LEN_MAX: usize = 4 << 10;

thread_local! {
    /// Taken out while in use. A codec that calls another one finds none.
    static BUFFER: Cell<Option<Chain>> = const { Cell::new(None) };
}

/// Encodes `message` with its prefix.
///
/// # Errors
/// The status that the call ends with if the message cannot be sent.
pub(crate) fn encode<E>(mut encoder: E, message: E::Item, size_max: Option<usize>) -> Result<Piece, Status>
where
    E: Encoder<Error = Status> + 'static,
    E::Item: 'static,
{
    let mut wire = BUFFER.take().unwrap_or_default();
    wire.clear();
    wire.buffer().reserve(ENCODED_LEN);
    wire.put_bytes(0, PREFIX_LEN);
    let encoded = encoder.encode(message, &mut EncodeBuf::new(&mut wire));
    encoded.map_err(|error| Status::internal(format!("cannot encode the message: {error}")))?;
    let (len, limit) = (wire.len() - PREFIX_LEN, size_max.unwrap_or(usize::MAX));
    if len > limit {
        return Err(too_large("encoded", len, limit));
    }
    let len = u32::try_from(len).map_err(|_| {
        Status::resource_exhausted(format!("message of {len} bytes exceeds the gRPC maximum of 4294967295"))
    })?;
    wire.buffer()[1..PREFIX_LEN].copy_from_slice(&len.to_be_bytes());
    match wire.as_contiguous() {
        Some(bytes) if bytes.len() <= COPIED_LEN_MAX => {
            let piece = Bytes::copy_from_slice(bytes).into();
            BUFFER.with(|buffer| buffer.set(Some(wire)));
            Ok(piece)
        }
        _ => Ok(wire.into()),
    }
}

/// Decodes `wire`, for which [`is_single`](super::wire::is_single) returned true.
///
/// # Errors
/// The status that the call ends with if the message cannot be read.
pub(crate) fn decode<D>(mut decoder: D, mut wire: Bytes, size_max: Option<usize>) -> Result<D::Item, Status>
where
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + 'static,
{
    let len = wire.len().saturating_sub(PREFIX_LEN);
    let limit = size_max.unwrap_or(MAX_DECODING_MESSAGE_SIZE);
    if len > limit {
        return Err(too_large("decoded", len, limit));
    }
    wire.advance(PREFIX_LEN);
    let decoded = decoder.decode(&mut DecodeBuf::new(&mut wire, len))?;
    decoded.ok_or_else(|| Status::new(Code::Internal, "Missing message."))
}
