//! tonic's own codec, with buffers set up for streams.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::BufferSettings;
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Bytes of a buffer that messages are encoded into and decoded from. It is tonic's default: 1 and 64 KiB made no
/// difference that could be told from noise.
pub const BUFFER_SIZE: usize = 8 << 10;

/// Encoded messages of a stream are handed to HTTP/2 when they are so many bytes, or none is at hand.
pub const YIELD_THRESHOLD: usize = 64 << 10;

/// What the generated stubs convert messages with.
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> ProstEncoder<T> {
        ProstCodec::<T, U>::raw_encoder(settings())
    }

    fn decoder(&mut self) -> ProstDecoder<U> {
        ProstCodec::<T, U>::raw_decoder(settings())
    }
}

fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER_SIZE, YIELD_THRESHOLD)
}
