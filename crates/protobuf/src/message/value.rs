//! Values as read and set.

use std::fmt;

use super::arena::Arena;
use super::message_ref::MessageRef;
use crate::schema::Kind;
use crate::schema::table::Entry;

/// The value of a field, borrowed from its message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// `bool`
    Bool(bool),
    /// `int32`, `sint32`, `sfixed32`
    I32(i32),
    /// `int64`, `sint64`, `sfixed64`
    I64(i64),
    /// `uint32`, `fixed32`
    U32(u32),
    /// `uint64`, `fixed64`
    U64(u64),
    /// `float`
    F32(f32),
    /// `double`
    F64(f64),
    /// `string`. If the field allows bytes that are not UTF-8, such a value is [`Value::Bytes`].
    String(&'a str),
    /// `bytes`
    Bytes(&'a [u8]),
    /// The number of an enum value, with or without a name.
    Enum(i32),
    /// A message.
    Message(MessageRef<'a>),
    /// A repeated field.
    List(List<'a>),
    /// A map.
    Map(Map<'a>),
}

impl<'a> Value<'a> {
    /// Converts a slot's `word` to a value of the entry's type.
    #[inline]
    pub(super) fn of(message: MessageRef<'a>, entry: &Entry, word: u64) -> Value<'a> {
        match entry.kind {
            Kind::Bool => Value::Bool(word != 0),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(word as i32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(word as i64),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(word as u32),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(word),
            Kind::Float => Value::F32(f32::from_bits(word as u32)),
            Kind::Double => Value::F64(f64::from_bits(word)),
            Kind::Enum => Value::Enum(word as i32),
            Kind::String => text(message.arena.text(message.input, word)),
            Kind::Bytes => Value::Bytes(message.arena.text(message.input, word)),
            Kind::Message | Kind::Group => Value::Message(message.inner(entry.type_index, word as usize)),
        }
    }

    /// Describes the type of the value, for errors.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a bool",
            Value::I32(_) => "an i32",
            Value::I64(_) => "an i64",
            Value::U32(_) => "a u32",
            Value::U64(_) => "a u64",
            Value::F32(_) => "an f32",
            Value::F64(_) => "an f64",
            Value::String(_) => "a string",
            Value::Bytes(_) => "bytes",
            Value::Enum(_) => "an enum",
            Value::Message(_) => "a message",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Converts a number, `bool`, string or bytes to the word for a field of this kind. Returns `None` for a value of
    /// another type.
    pub(super) fn word(&self, kind: Kind, arena: &mut Arena) -> Option<u64> {
        Some(match (self, kind) {
            (Value::Bool(value), Kind::Bool) => u64::from(*value),
            (Value::I32(value), Kind::Int32 | Kind::Sint32)
            | (Value::Enum(value) | Value::I32(value), Kind::Enum) => i64::from(*value) as u64,
            (Value::I32(value), Kind::Sfixed32) => u64::from(*value as u32),
            (Value::I64(value), Kind::Int64 | Kind::Sint64 | Kind::Sfixed64) => *value as u64,
            (Value::U32(value), Kind::Uint32 | Kind::Fixed32) => u64::from(*value),
            (Value::U64(value), Kind::Uint64 | Kind::Fixed64) => *value,
            (Value::F32(value), Kind::Float) => u64::from(value.to_bits()),
            (Value::F64(value), Kind::Double) => value.to_bits(),
            (Value::String(value), Kind::String) => arena.store(value.as_bytes()),
            (Value::Bytes(value), Kind::Bytes) => arena.store(value),
            _ => return None,
        })
    }

    /// Returns the value if it is a `bool`.
    pub fn as_bool(self) -> Option<bool> {
        if let Value::Bool(value) = self { Some(value) } else { None }
    }

    /// Returns the value if it is an integer or enum number that fits.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::I32(value) | Value::Enum(value) => Some(i64::from(value)),
            Value::I64(value) => Some(value),
            Value::U32(value) => Some(i64::from(value)),
            Value::U64(value) => i64::try_from(value).ok(),
            _ => None,
        }
    }

    /// Returns the value if it is an integer or enum number that fits.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Value::U64(value) => Some(value),
            other => u64::try_from(other.as_i64()?).ok(),
        }
    }

    /// Returns the value if it is a `float` or `double`.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::F32(value) => Some(f64::from(value)),
            Value::F64(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value if it is a string.
    pub fn as_str(self) -> Option<&'a str> {
        if let Value::String(value) = self { Some(value) } else { None }
    }

    /// Returns the bytes of a bytes or string value.
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(value) => Some(value),
            Value::String(value) => Some(value.as_bytes()),
            _ => None,
        }
    }

    /// Returns the value if it is a message.
    pub fn as_message(self) -> Option<MessageRef<'a>> {
        if let Value::Message(value) = self { Some(value) } else { None }
    }

    /// Returns the value if it is a list.
    pub fn as_list(self) -> Option<List<'a>> {
        if let Value::List(value) = self { Some(value) } else { None }
    }

    /// Returns the value if it is a map.
    pub fn as_map(self) -> Option<Map<'a>> {
        if let Value::Map(value) = self { Some(value) } else { None }
    }
}

fn text(bytes: &[u8]) -> Value<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::String(text),
        Err(_) => Value::Bytes(bytes),
    }
}

/// The values of a repeated field, in order.
#[derive(Clone, Copy)]
pub struct List<'a> {
    pub(super) message: MessageRef<'a>,
    pub(super) entry: &'a Entry,
    pub(super) words: &'a [u64],
}

impl<'a> List<'a> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the value at `index`.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        self.words.get(index).map(|&word| Value::of(self.message, self.entry, word))
    }

    /// Iterates over the values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'a>> + DoubleEndedIterator + use<'a> {
        let List { message, entry, words } = *self;
        words.iter().map(move |&word| Value::of(message, entry, word))
    }
}

impl PartialEq for List<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

/// The entries of a map: each key once, in order of arrival.
#[derive(Clone, Copy)]
pub struct Map<'a> {
    pub(super) message: MessageRef<'a>,
    pub(super) key: &'a Entry,
    pub(super) value: &'a Entry,
    pub(super) pairs: &'a [[u64; 2]],
}

impl<'a> Map<'a> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the value of `key`, by a linear search.
    pub fn get(&self, key: Value<'_>) -> Option<Value<'a>> {
        self.iter().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    /// Iterates over keys and values.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (Value<'a>, Value<'a>)> + DoubleEndedIterator + use<'a> {
        let Map { message, key, value, pairs } = *self;
        pairs.iter().map(move |pair| (Value::of(message, key, pair[0]), Value::of(message, value, pair[1])))
    }

    fn sorted(&self) -> Vec<&'a [u64; 2]> {
        let mut pairs: Vec<&'a [u64; 2]> = self.pairs.iter().collect();
        let MessageRef { arena, input, .. } = self.message;
        if self.key.kind == Kind::String {
            pairs.sort_by_key(|pair| arena.text(input, pair[0]));
        } else {
            pairs.sort_by_key(|pair| pair[0]);
        }
        pairs
    }
}

impl PartialEq for Map<'_> {
    /// Compares entries regardless of their order.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.sorted().into_iter().zip(other.sorted()).all(|(left, right)| {
                Value::of(self.message, self.key, left[0]) == Value::of(other.message, other.key, right[0])
                    && Value::of(self.message, self.value, left[1])
                        == Value::of(other.message, other.value, right[1])
            })
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}
