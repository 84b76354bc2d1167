//! The traits of codecs.

use std::io;

use super::buffer::{DecodeBuf, EncodeBuf};
use crate::Status;

/// Length of a message's prefix, in bytes: a flag for compression, and the length as four bytes.
#[doc(hidden)]
pub const HEADER_SIZE: usize = 5;

/// Encodes and decodes the messages of a method.
pub trait Codec {
    /// The messages that are sent.
    type Encode: Send + 'static;
    /// The messages that are received.
    type Decode: Send + 'static;
    /// Encodes messages of a stream.
    type Encoder: Encoder<Item = Self::Encode, Error = Status> + Send + 'static;
    /// Decodes messages of a stream.
    type Decoder: Decoder<Item = Self::Decode, Error = Status> + Send + 'static;

    /// Returns an encoder for one stream.
    fn encoder(&mut self) -> Self::Encoder;

    /// Returns a decoder for one stream.
    fn decoder(&mut self) -> Self::Decoder;
}

/// Encodes the messages of a stream.
pub trait Encoder {
    /// The messages.
    type Item;
    /// The error of a message that cannot be encoded.
    type Error: From<io::Error>;

    /// Appends a message to `buffer`, without prefix.
    fn encode(&mut self, message: Self::Item, buffer: &mut EncodeBuf<'_>) -> Result<(), Self::Error>;

    /// Returns the sizes of the buffer.
    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

/// Decodes the messages of a stream.
pub trait Decoder {
    /// The messages.
    type Item;
    /// The error of bytes that are not a message.
    type Error: From<io::Error>;

    /// Decodes the message that `buffer` holds, without prefix.
    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Self::Error>;

    /// Returns the sizes of the buffer.
    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

/// Sizes of the buffer into which the messages of a stream are encoded.
#[derive(Clone, Copy, Debug)]
pub struct BufferSettings {
    pub(super) buffer_size: usize,
    pub(super) yield_threshold: usize,
}

impl BufferSettings {
    /// Creates settings, in bytes: the initial size of the buffer, and from which number of encoded bytes on they are
    /// sent although more messages are ready. Connections of Thalweg that encode into their own buffer ignore both.
    pub fn new(buffer_size: usize, yield_threshold: usize) -> Self {
        Self { buffer_size, yield_threshold }
    }
}

/// 8 KiB, and 32 KiB.
impl Default for BufferSettings {
    fn default() -> Self {
        Self::new(8 * 1024, 32 * 1024)
    }
}
