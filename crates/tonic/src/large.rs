//! Large messages of a stream, which tonic's `Streaming` would copy to its buffer, and make space for without a look at
//! what they are.
//!
//! They go around it: its body gives an empty message where a large one came, and its decoder, which has the next turn
//! in the same poll, decodes that in its place. So they are copied once, to where their data begin at a multiple of 64
//! bytes: what reads them as arrays (Arrow) does not copy them once more.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};

use crate::body::Body;
use crate::single;

const PREFIX_LEN: usize = tonic::codec::HEADER_SIZE;
/// Fewer bytes are not worth it: the allocator gives such buffers back to the system, and takes new ones, all the
/// time.
const LEN_MIN: usize = 2 << 20;
/// Bytes at a multiple of which data begin. What Arrow asks for.
const ALIGNMENT: usize = 64;
const LEN_MAX_DEFAULT: usize = 4 << 20;

thread_local! {
    /// The message that is decoded next.
    static NEXT: Cell<Option<Bytes>> = const { Cell::new(None) };
    /// Whether there is one: of each empty message that is asked, and this costs less.
    static HAS_NEXT: Cell<bool> = const { Cell::new(false) };
}

/// A codec whose decoders read from an [`Around`].
#[derive(Debug)]
pub(crate) struct Large<C>(pub(crate) C);

impl<C: Codec> Codec for Large<C> {
    type Encode = C::Encode;
    type Decode = C::Decode;
    type Encoder = C::Encoder;
    type Decoder = LargeDecoder<C::Decoder>;

    fn encoder(&mut self) -> C::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> LargeDecoder<C::Decoder> {
        let decoder = self.0.decoder();
        LargeDecoder { settings: decoder.buffer_settings(), decoder: Some(decoder) }
    }
}

pub(crate) struct LargeDecoder<D> {
    settings: BufferSettings,
    /// None once it has failed.
    decoder: Option<D>,
}

impl<D> Decoder for LargeDecoder<D>
where
    D: Decoder<Error = Status> + Send + 'static,
    D::Item: Send + 'static,
{
    type Item = D::Item;
    type Error = Status;

    #[inline]
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<D::Item>, Status> {
        if !from.has_remaining()
            && HAS_NEXT.take()
            && let Some(message) = NEXT.take()
        {
            let decoder = self.decoder.take().ok_or_else(|| Status::internal("the decoder has failed"))?;
            let (decoder, item) = single::decode_in_place(decoder, message)?;
            self.decoder = Some(decoder);
            return Ok(item);
        }
        match &mut self.decoder {
            Some(decoder) => decoder.decode(from),
            None => Err(Status::internal("the decoder has failed")),
        }
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.settings
    }
}

/// The body of a stream whose large messages go around `Streaming`.
pub(crate) struct Around {
    body: Body,
    /// The largest message that is decoded, in bytes; of others `Streaming` says that they are too large.
    len_max: usize,
}

impl Around {
    pub(crate) fn new(body: Body, len_max: Option<usize>) -> Self {
        Self { body, len_max: len_max.unwrap_or(LEN_MAX_DEFAULT) }
    }
}

impl http_body::Body for Around {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(self.body.poll_piece(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(piece) = frame.data_ref()
            && piece.len() >= LEN_MIN
            && piece.len() - PREFIX_LEN <= self.len_max
            && self.body.gave_messages()
            && single::is_single(piece)
        {
            NEXT.set(Some(aligned(piece)));
            HAS_NEXT.set(true);
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; PREFIX_LEN])))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A copy of a message that has its prefix, where its data begin as they shall, and with room for as much again:
/// `Streaming` makes sure of that, with a copy, when it has seen the prefix.
fn aligned(wire: &[u8]) -> Bytes {
    let mut buffer = Vec::with_capacity(ALIGNMENT + 2 * wire.len());
    let data_start = buffer.as_ptr() as usize + PREFIX_LEN + data_start(&wire[PREFIX_LEN..]);
    let padding = data_start.next_multiple_of(ALIGNMENT) - data_start;
    buffer.resize(padding, 0);
    buffer.extend_from_slice(wire);
    let mut bytes = Bytes::from(buffer);
    bytes.advance(padding);
    bytes
}

/// Where the data of a message of Protobuf's begin: those of its field that has more than half of it. Zero where there
/// is none, or it is another kind of message.
fn data_start(message: &[u8]) -> usize {
    let mut rest = message;
    while let Some(tag) = varint(&mut rest) {
        let len = match tag & 7 {
            0 if varint(&mut rest).is_some() => 0,
            1 => 8,
            2 => match varint(&mut rest) {
                Some(len) if len > message.len() as u64 / 2 => return message.len() - rest.len(),
                Some(len) => len as usize,
                None => break,
            },
            5 => 4,
            _ => break,
        };
        let Some(next) = rest.get(len..) else { break };
        rest = next;
    }
    0
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, &byte) in rest.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(fields: &[&[u8]]) -> Vec<u8> {
        fields.concat()
    }

    /// A field with bytes, whose length takes four bytes.
    fn data(number: u8, len: usize) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        field
            .extend((0..4).map(|index| (len >> (7 * index)) as u8 & 0x7f | if index < 3 { 0x80 } else { 0 }));
        field.extend((0..len).map(|index| index as u8));
        field
    }

    #[test]
    fn data_begin_behind_whatever_stands_before_them() {
        let large = data(5, 3 << 20);
        for (front, start) in [
            (&[][..], 5),
            (&[0x08, 0x96, 0x01][..], 8),
            (&[0x09, 1, 2, 3, 4, 5, 6, 7, 8][..], 14),
            (&[0x0d, 1, 2, 3, 4][..], 10),
            (&[0x12, 3, b'a', b'b', b'c'][..], 10),
        ] {
            assert_eq!(data_start(&message(&[front, &large])), start, "{front:?}");
        }
    }

    #[test]
    fn what_has_no_data_begins_at_its_start() {
        let two_halves = message(&[&data(1, 1 << 20), &data(2, 1 << 20)]);
        let texts = [&b""[..], b"{\"a\": 1}", &[0xff; 100], &[0x0b], &[0x12, 0xff], &[0x09, 1], &two_halves];
        for text in texts {
            assert_eq!(data_start(text), 0);
        }
    }

    #[test]
    fn a_copy_is_aligned_has_room_and_is_nobody_elses() {
        for front in 0..70 {
            let message = message(&[&[0x08, 1].repeat(front), &data(2, 2 << 20)]);
            let len = u32::try_from(message.len()).unwrap().to_be_bytes();
            let wire = [&[0][..], &len, &message].concat();
            let bytes = aligned(&wire);
            assert_eq!(bytes, wire);
            let data = &bytes[PREFIX_LEN + 2 * front + 5..];
            assert_eq!(data.as_ptr() as usize % ALIGNMENT, 0);
            let buffer = bytes.try_into_mut().expect("there is no other");
            assert!(buffer.capacity() >= 2 * wire.len());
        }
    }
}
