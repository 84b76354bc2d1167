//! Messages as bytes: codecs, compression, and the streams and bodies built on them.

mod buffer;
mod codecs;
mod compression;
mod decode;
mod encode;
#[cfg(test)]
pub(crate) mod testing;

pub use self::buffer::{DecodeBuf, EncodeBuf};
pub use self::codecs::{BufferSettings, Codec, Decoder, Encoder, HEADER_SIZE};
pub use self::compression::{
    ACCEPT_ENCODING, CompressionEncoding, ENCODING, EnabledCompressionEncodings,
    SingleMessageCompressionOverride,
};
pub use self::decode::{MAX_DECODING_MESSAGE_SIZE, Streaming};
pub use self::encode::{EncodeBody, EncodeMessages};
