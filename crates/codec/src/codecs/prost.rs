//! prost: structs with public fields, decoded into owned values.

use std::marker::PhantomData;

use prost::Message;

use crate::contract::Decodes;
use crate::converter::{Codec, NotConverted};

pub(crate) struct Prost<M>(pub(crate) PhantomData<M>);

impl<M: Message + Default + PartialEq + 'static> Codec for Prost<M> {
    type Object = M;
    type Decoded<'w> = M;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &M, out: &mut Vec<u8>) -> Result<(), NotConverted> {
        object.encode(out).map_err(NotConverted::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<M, NotConverted> {
        M::decode(wire).map_err(NotConverted::new)
    }

    fn same(object: &M, decoded: &M) -> bool {
        object == decoded
    }
}
