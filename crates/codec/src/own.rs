//! The user's own messages, with the codecs that support types known at run time.

use std::marker::PhantomData;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::Value;
use thalweg_messages::OwnMessages;

use crate::codecs::engine::{Engine, Json, MessagePack, Transcoded};
use crate::codecs::{engine, reflect, serde as serde_codec};
use crate::converter::{ConversionError, Entry};

/// Creates the converters.
pub(crate) fn entries(own: &OwnMessages) -> Result<Vec<Entry>, ConversionError> {
    let pool = DescriptorPool::decode(own.set.as_slice()).map_err(ConversionError::new)?;
    let descriptor = pool
        .get_message_by_name(&own.type_name)
        .ok_or_else(|| ConversionError::new(format!("unknown message `{}`", own.type_name)))?;
    let message = |wire: &Vec<u8>| DynamicMessage::decode(descriptor.clone(), wire.as_slice());
    let messages: Vec<DynamicMessage> =
        own.wires.iter().map(message).collect::<Result<_, _>>().map_err(ConversionError::new)?;
    // Encodes in one field order, whatever the file's order.
    let wires: Vec<Vec<u8>> = messages.iter().map(Message::encode_to_vec).collect();
    let message_type = engine::message_type(&own.set, &own.type_name)?;
    let engine_messages = || engine::messages(message_type, &wires);
    let value = |message: &DynamicMessage| serde_json::to_value(message).map_err(ConversionError::new);
    let values = || messages.iter().map(value).collect::<Result<Vec<Value>, _>>();
    Ok(vec![
        Entry::new("thalweg", Engine::new(message_type), engine_messages()?)?,
        Entry::new("prost-reflect", reflect::Reflect(descriptor.clone()), messages.clone())?,
        Entry::new("serde_json-value", serde_codec::SerdeJson(PhantomData), values()?)?,
        Entry::new("prost-reflect-json", reflect::ReflectJson(descriptor.clone()), messages.clone())?,
        Entry::new("thalweg-json", Transcoded::<Json>::new(message_type), engine_messages()?)?,
        Entry::new("rmp-serde-value", serde_codec::RmpSerde(PhantomData), values()?)?,
        Entry::new("thalweg-msgpack", Transcoded::<MessagePack>::new(message_type), engine_messages()?)?,
    ])
}
