//! A codec for tests.

use bytes::{Buf, BufMut, Bytes};

use super::buffer::{DecodeBuf, EncodeBuf};
use super::codecs::{Decoder, Encoder};
use crate::Status;

/// Messages are bytes.
#[derive(Debug, Default)]
pub(crate) struct BytesCodec;

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        if message == "invalid" {
            buffer.put_slice(b"partly");
            return Err(Status::invalid_argument("no such message"));
        }
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let message = buffer.copy_to_bytes(buffer.remaining());
        if message == "invalid" { Err(Status::internal("not a message")) } else { Ok(Some(message)) }
    }
}
