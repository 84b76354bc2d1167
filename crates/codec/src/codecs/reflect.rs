//! prost-reflect: messages of types only known at run time, as Protobuf and as ProtoJSON.

use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use crate::contract::Decodes;
use crate::converter::{Codec, ConversionError};

pub(crate) struct Reflect(pub(crate) MessageDescriptor);
pub(crate) struct ReflectJson(pub(crate) MessageDescriptor);

impl Codec for Reflect {
    type Object = DynamicMessage;
    type Decoded<'w> = DynamicMessage;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &DynamicMessage, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        object.encode(out).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<DynamicMessage, ConversionError> {
        DynamicMessage::decode(self.0.clone(), wire).map_err(ConversionError::new)
    }

    fn equals(object: &DynamicMessage, decoded: &DynamicMessage) -> bool {
        object == decoded
    }
}

impl Codec for ReflectJson {
    type Object = DynamicMessage;
    type Decoded<'w> = DynamicMessage;
    const DECODES: Decodes = Decodes::Owned;

    #[inline]
    fn encode(&mut self, object: &DynamicMessage, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        serde_json::to_writer(out, object).map_err(ConversionError::new)
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<DynamicMessage, ConversionError> {
        from_json(&self.0, wire)
    }

    fn equals(object: &DynamicMessage, decoded: &DynamicMessage) -> bool {
        object == decoded
    }
}

/// Parses one message from JSON.
pub(crate) fn from_json(
    descriptor: &MessageDescriptor,
    text: &[u8],
) -> Result<DynamicMessage, ConversionError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let message = DynamicMessage::deserialize(descriptor.clone(), &mut json).map_err(ConversionError::new)?;
    json.end().map_err(ConversionError::new)?;
    Ok(message)
}
