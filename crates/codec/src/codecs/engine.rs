//! Our own engine: messages of types only known at run time, by tables.

use std::marker::PhantomData;

use bytes::Bytes;
use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{Decoder, Encoder, Message, MessageRef, MessageType, Schema, msgpack};

use crate::contract::Decodes;
use crate::converter::{Codec, ConversionError};
use crate::read::Read;

/// Protobuf. Reuses memory for encoding and decoding; strings stay in the input bytes.
pub(crate) struct Engine {
    of: MessageType<'static>,
    encoder: Encoder,
    decoder: Decoder,
}

/// Another format, transcoded from and to Protobuf. A message is therefore encoded before it is printed, and decoded
/// after it is parsed.
pub(crate) struct Transcoded<F> {
    engine: Engine,
    /// Reused buffer for parsed messages to decode.
    wire: Vec<u8>,
    form: PhantomData<F>,
}

pub(crate) trait Form: Send + 'static {
    fn print(of: MessageType<'_>, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ConversionError>;
    fn parse(of: MessageType<'_>, bytes: &[u8], wire: &mut Vec<u8>) -> Result<(), ConversionError>;
}

pub(crate) struct Json;
pub(crate) struct MessagePack;

/// Returns a type of a descriptor set. Leaks the schema, because types borrow from it; there is one per kind of
/// message.
pub(crate) fn message_type(set: &[u8], name: &str) -> Result<MessageType<'static>, ConversionError> {
    let schema: &'static Schema =
        Box::leak(Box::new(Schema::from_descriptor_set(set).map_err(ConversionError::new)?));
    schema.message(name).ok_or_else(|| ConversionError::new(format!("unknown message `{name}`")))
}

/// Decodes messages to objects.
pub(crate) fn messages(of: MessageType<'static>, wires: &[Vec<u8>]) -> Result<Vec<Message>, ConversionError> {
    let message = |wire: &Vec<u8>| Message::decode(of, Bytes::copy_from_slice(wire));
    wires.iter().map(message).collect::<Result<_, _>>().map_err(ConversionError::new)
}

impl Engine {
    pub(crate) fn new(of: MessageType<'static>) -> Self {
        Self { of, encoder: Encoder::new(), decoder: Decoder::default() }
    }
}

impl<F> Transcoded<F> {
    pub(crate) fn new(of: MessageType<'static>) -> Self {
        Self { engine: Engine::new(of), wire: Vec::new(), form: PhantomData }
    }
}

impl Codec for Engine {
    type Object = Message;
    type Decoded<'w> = MessageRef<'w>;
    const DECODES: Decodes = Decodes::Borrowed;

    #[inline]
    fn encode(&mut self, object: &Message, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        out.extend_from_slice(self.encoder.encode(object.as_ref()));
        Ok(())
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<MessageRef<'w>, ConversionError> {
        self.decoder.decode(self.of, wire).map_err(ConversionError::new)
    }

    #[inline]
    fn read(decoded: &MessageRef<'_>) -> u64 {
        decoded.read()
    }

    fn equals(object: &Message, decoded: &MessageRef<'_>) -> bool {
        object.as_ref() == *decoded
    }
}

impl<F: Form> Codec for Transcoded<F> {
    type Object = Message;
    type Decoded<'w> = MessageRef<'w>;
    const DECODES: Decodes = Decodes::Borrowed;

    #[inline]
    fn encode(&mut self, object: &Message, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        F::print(self.engine.of, self.engine.encoder.encode(object.as_ref()), out)
    }

    #[inline]
    fn decode<'w>(&'w mut self, bytes: &'w [u8]) -> Result<MessageRef<'w>, ConversionError> {
        self.wire.clear();
        F::parse(self.engine.of, bytes, &mut self.wire)?;
        self.engine.decode(&self.wire)
    }

    #[inline]
    fn read(decoded: &MessageRef<'_>) -> u64 {
        decoded.read()
    }

    fn equals(object: &Message, decoded: &MessageRef<'_>) -> bool {
        Engine::equals(object, decoded)
    }
}

/// A user's messages may lack fields required by proto2; the other codecs accept that.
fn print_options() -> PrintOptions {
    PrintOptions::default().allow_partial(true)
}

fn parse_options() -> ParseOptions {
    ParseOptions::default().allow_partial(true)
}

impl Form for Json {
    #[inline]
    fn print(of: MessageType<'_>, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ConversionError> {
        json::print(of, wire, &print_options(), out).map_err(ConversionError::new)
    }

    #[inline]
    fn parse(of: MessageType<'_>, bytes: &[u8], wire: &mut Vec<u8>) -> Result<(), ConversionError> {
        json::parse(of, bytes, &parse_options(), wire).map_err(ConversionError::new)
    }
}

impl Form for MessagePack {
    #[inline]
    fn print(of: MessageType<'_>, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ConversionError> {
        msgpack::print(of, wire, &print_options(), out).map_err(ConversionError::new)
    }

    #[inline]
    fn parse(of: MessageType<'_>, bytes: &[u8], wire: &mut Vec<u8>) -> Result<(), ConversionError> {
        msgpack::parse(of, bytes, &parse_options(), wire).map_err(ConversionError::new)
    }
}
