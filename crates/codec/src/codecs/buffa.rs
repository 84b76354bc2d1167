//! buffa: owned messages, and views whose strings stay in the input bytes.

use std::marker::PhantomData;

use buffa::{HasMessageView, Message, MessageView, SizeCache};

use crate::contract::Decodes;
use crate::converter::{Codec, ConversionError};
use crate::read::Read;

pub(crate) struct Owned<M> {
    /// Lengths of nested messages. Kept between encodings, as buffa recommends.
    sizes: SizeCache,
    message: PhantomData<M>,
}

/// Encodes owned messages and reads views.
pub(crate) struct View<M>(Owned<M>);

impl<M> Default for Owned<M> {
    fn default() -> Self {
        Self { sizes: SizeCache::new(), message: PhantomData }
    }
}

impl<M> Default for View<M> {
    fn default() -> Self {
        Self(Owned::default())
    }
}

impl<M: Message + PartialEq + 'static> Codec for Owned<M> {
    type Object = M;
    type Decoded<'w> = M;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &M, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        object.try_encode_with_cache(&mut self.sizes, out).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<M, ConversionError> {
        M::decode_from_slice(wire).map_err(ConversionError::new)
    }

    fn equals(object: &M, decoded: &M) -> bool {
        object == decoded
    }
}

impl<M: HasMessageView + PartialEq + 'static> Codec for View<M>
where
    for<'w> M::View<'w>: Read,
{
    type Object = M;
    type Decoded<'w> = M::View<'w>;
    const DECODES: Decodes = Decodes::Borrowed;

    #[inline]
    fn encode(&mut self, object: &M, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        self.0.encode(object, out)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<M::View<'w>, ConversionError> {
        M::decode_view(wire).map_err(ConversionError::new)
    }

    #[inline]
    fn read(decoded: &M::View<'_>) -> u64 {
        decoded.read()
    }

    fn equals(object: &M, decoded: &M::View<'_>) -> bool {
        decoded.to_owned_message().is_ok_and(|decoded| decoded == *object)
    }
}
