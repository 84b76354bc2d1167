//! A message that owns its memory.

use bytes::Bytes;

use super::arena::Arena;
use super::decode;
use super::limits::{DecodeError, Limits};
use super::message_ref::MessageRef;
use super::write::MessageMut;
use crate::schema::{MessageType, Schema};

/// A message that owns its memory.
///
/// ```
/// use thalweg_protobuf::{Message, Schema, Value, sources};
///
/// let source = "syntax = 'proto3'; message Person { string name = 1; int32 age = 2; }";
/// let set = sources::compile(&["person.proto"], |_| Some(source.to_owned()))?;
/// let schema = Schema::from_descriptor_set(&set)?;
/// let person = schema.message("Person").expect("declared in the file");
///
/// let mut message = Message::new(person);
/// message.as_mut().set("name", Value::String("polar penguin"))?;
/// message.as_mut().set("age", Value::I32(20))?;
/// let bytes = message.as_ref().encode_to_vec();
/// assert_eq!(bytes, b"\x0a\x0dpolar penguin\x10\x14");
///
/// let message = Message::decode(person, bytes)?;
/// assert_eq!(message.as_ref().get("name"), Some(Value::String("polar penguin")));
/// assert_eq!(message.as_ref().get(2), Some(Value::I32(20)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Message {
    schema: Schema,
    type_index: u32,
    arena: Arena,
    /// The input decoded first; inputs merged later are copied.
    input: Bytes,
}

impl Message {
    /// Creates an empty message.
    pub fn new(of: MessageType<'_>) -> Message {
        let mut arena = Arena::default();
        arena.reset(of.table());
        Message { schema: of.schema().clone(), type_index: of.index(), arena, input: Bytes::new() }
    }

    /// Decodes a message with the default [`Limits`]. Keeps `input`, in which strings and bytes stay.
    ///
    /// # Errors
    ///
    /// Returns an error if `input` is not a valid message of the type, or if it exceeds the limits.
    pub fn decode(of: MessageType<'_>, input: impl Into<Bytes>) -> Result<Message, DecodeError> {
        Message::decode_within(of, input, &Limits::default())
    }

    /// Decodes a message like [`Message::decode`], with the given limits.
    pub fn decode_within(
        of: MessageType<'_>,
        input: impl Into<Bytes>,
        limits: &Limits,
    ) -> Result<Message, DecodeError> {
        let mut message = Message::new(of);
        message.decode_again(input, limits)?;
        Ok(message)
    }

    /// Replaces this message by another of the same type, reusing its memory.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Message::decode`]; the message is then empty.
    pub fn decode_again(&mut self, input: impl Into<Bytes>, limits: &Limits) -> Result<(), DecodeError> {
        self.clear();
        self.input = input.into();
        let pool = self.schema.pool();
        let decoded = decode::merge(pool, &mut self.arena, (self.type_index, 0), &self.input, None, limits);
        match decoded {
            Ok(()) => self.arena.dedup_map_keys(&self.input),
            Err(_) => self.clear(),
        }
        decoded
    }

    /// Clears the message, keeping its memory.
    pub fn clear(&mut self) {
        self.arena.reset(&self.schema.pool().tables[self.type_index as usize]);
        self.input = Bytes::new();
    }

    /// Returns its type.
    pub fn message_type(&self) -> MessageType<'_> {
        MessageType::new(&self.schema, self.type_index)
    }

    /// Returns a reference to read it.
    pub fn as_ref(&self) -> MessageRef<'_> {
        MessageRef {
            schema: &self.schema,
            arena: &self.arena,
            input: &self.input,
            type_index: self.type_index,
            at: 0,
        }
    }

    /// Returns a mutable reference.
    pub fn as_mut(&mut self) -> MessageMut<'_> {
        MessageMut {
            schema: &self.schema,
            arena: &mut self.arena,
            input: &self.input,
            type_index: self.type_index,
            at: 0,
        }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_ref().fmt(out)
    }
}

impl MessageRef<'_> {
    /// Returns an owned copy.
    pub fn to_message(&self) -> Message {
        let mut message = Message::new(self.message_type());
        message.as_mut().copy_from(*self);
        message
    }
}
