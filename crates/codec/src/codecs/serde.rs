//! Codecs based on serde: serde_json, sonic-rs, rmp-serde, and pbjson's ProtoJSON, which is serde_json with prost's
//! messages.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract::Decodes;
use crate::converter::{Codec, ConversionError};

pub(crate) struct SerdeJson<T>(pub(crate) PhantomData<T>);
pub(crate) struct SonicRs<T>(pub(crate) PhantomData<T>);
/// Structs as maps with field names, like MessagePack in other languages.
pub(crate) struct RmpSerde<T>(pub(crate) PhantomData<T>);

impl<T: Serialize + DeserializeOwned + PartialEq + Send + 'static> Codec for SerdeJson<T> {
    type Object = T;
    type Decoded<'w> = T;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &T, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        serde_json::to_writer(out, object).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<T, ConversionError> {
        serde_json::from_slice(wire).map_err(ConversionError::new)
    }

    fn equals(object: &T, decoded: &T) -> bool {
        object == decoded
    }
}

impl<T: Serialize + DeserializeOwned + PartialEq + Send + 'static> Codec for SonicRs<T> {
    type Object = T;
    type Decoded<'w> = T;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &T, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        sonic_rs::to_writer(out, object).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<T, ConversionError> {
        sonic_rs::from_slice(wire).map_err(ConversionError::new)
    }

    fn equals(object: &T, decoded: &T) -> bool {
        object == decoded
    }
}

impl<T: Serialize + DeserializeOwned + PartialEq + Send + 'static> Codec for RmpSerde<T> {
    type Object = T;
    type Decoded<'w> = T;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &T, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        rmp_serde::encode::write_named(out, object).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<T, ConversionError> {
        rmp_serde::from_slice(wire).map_err(ConversionError::new)
    }

    fn equals(object: &T, decoded: &T) -> bool {
        object == decoded
    }
}
