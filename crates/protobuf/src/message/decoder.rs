//! Decoding many messages into the same memory.

use super::arena::Arena;
use super::decode;
use super::limits::{DecodeError, Limits};
use super::message_ref::MessageRef;
use crate::schema::MessageType;

/// Decodes messages of any types, one at a time, and reuses its memory. Once it has seen the largest message, it no
/// longer allocates. Strings and bytes are not copied.
///
/// ```
/// # use thalweg_protobuf::{Decoder, Schema, Value, sources};
/// # let source = "syntax = 'proto3'; message Person { string name = 1; int32 age = 2; }";
/// # let set = sources::compile(&["person.proto"], |_| Some(source.to_owned()))?;
/// # let schema = Schema::from_descriptor_set(&set)?;
/// let person = schema.message("Person").expect("declared in the file");
/// let mut decoder = Decoder::default();
/// for age in 1..100 {
///     let input = [0x10, age];
///     let message = decoder.decode(person, &input)?;
///     assert_eq!(message.get("age"), Some(Value::I32(age.into())));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    arena: Arena,
    limits: Limits,
}

impl Decoder {
    /// Creates a decoder with the given limits.
    pub fn new(limits: Limits) -> Decoder {
        Decoder { arena: Arena::default(), limits }
    }

    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// Returns an error if `input` is not a valid message of the type, or if it exceeds the limits.
    pub fn decode<'a>(
        &'a mut self,
        of: MessageType<'a>,
        input: &'a [u8],
    ) -> Result<MessageRef<'a>, DecodeError> {
        self.arena.reset(of.table());
        let schema = of.schema();
        decode::merge(schema.pool(), &mut self.arena, (of.index(), 0), input, None, &self.limits)?;
        self.arena.dedup_map_keys(input);
        Ok(MessageRef { schema, arena: &self.arena, input, type_index: of.index(), at: 0 })
    }
}
