//! Our own engine: messages whose type is known at run time only, by tables.

use bytes::Bytes;
use thalweg_protobuf::{Decoder, Message, MessageRef, MessageType, Schema};

use crate::converter::{Codec, NotConverted};

/// Decodes into memory that is used again; strings stay in the bytes that they came in.
pub(crate) struct Engine {
    of: MessageType<'static>,
    decoder: Decoder,
}

impl Engine {
    /// The codec of one type of a descriptor set, and these messages of it as objects.
    pub(crate) fn new(
        set: &[u8],
        name: &str,
        wires: &[Vec<u8>],
    ) -> Result<(Self, Vec<Message>), NotConverted> {
        // A schema for each kind of message, as long as the program runs: types borrow from it.
        let schema: &'static Schema =
            Box::leak(Box::new(Schema::from_descriptor_set(set).map_err(NotConverted::new)?));
        let of = schema.message(name).ok_or_else(|| NotConverted::new(format!("there is no {name}")))?;
        let message = |wire: &Vec<u8>| Message::decode(of, Bytes::copy_from_slice(wire));
        let objects = wires.iter().map(message).collect::<Result<_, _>>().map_err(NotConverted::new)?;
        Ok((Self { of, decoder: Decoder::default() }, objects))
    }
}

impl Codec for Engine {
    type Object = Message;
    type Decoded<'w> = MessageRef<'w>;

    #[inline]
    fn encode(&mut self, object: &Message, out: &mut Vec<u8>) -> Result<(), NotConverted> {
        object.as_ref().encode(out);
        Ok(())
    }

    #[inline]
    fn decode<'w>(&'w mut self, wire: &'w [u8]) -> Result<MessageRef<'w>, NotConverted> {
        self.decoder.decode(self.of, wire).map_err(NotConverted::new)
    }

    fn same(object: &Message, decoded: &MessageRef<'_>) -> bool {
        object.as_ref() == *decoded
    }
}
