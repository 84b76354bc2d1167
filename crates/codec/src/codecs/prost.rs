//! prost: structs with public fields, decoded into owned values.

use std::marker::PhantomData;

use prost::Message;

use crate::contract::Decodes;
use crate::converter::{Codec, ConversionError};

pub(crate) struct Prost<M>(pub(crate) PhantomData<M>);

impl<M: Message + Default + PartialEq + 'static> Codec for Prost<M> {
    type Object = M;
    type Decoded<'w> = M;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &M, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        object.encode(out).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<M, ConversionError> {
        M::decode(wire).map_err(ConversionError::new)
    }

    fn equals(object: &M, decoded: &M) -> bool {
        object == decoded
    }
}
