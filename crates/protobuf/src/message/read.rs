//! Reading messages.

use std::fmt;

use super::field_key::FieldKey;
use super::message_ref::{ABSENT, MessageRef};
use super::value::{List, Map, Value};
use crate::schema::pool::DefaultValue;
use crate::schema::table::{Entry, Flags};
use crate::schema::{Field, Kind, Oneof};

impl<'a> MessageRef<'a> {
    /// Returns the value of a field, by its name, number or [`Field`], or its default if it is not set. An unset
    /// message field returns an empty message; [`MessageRef::has`] tells the two apart.
    ///
    /// Returns `None` if the message has no such field.
    #[inline]
    pub fn get(&self, key: impl FieldKey) -> Option<Value<'a>> {
        let index = key.find(self.schema, self.type_index)?;
        Some(self.value(index, &self.table().entries()[index]))
    }

    /// Whether a field is set: present if the field tracks presence, otherwise not 0 and not empty.
    pub fn has(&self, key: impl FieldKey) -> bool {
        key.find(self.schema, self.type_index)
            .is_some_and(|index| self.is_set(index, &self.table().entries()[index]))
    }

    /// Iterates over the fields that are set, extensions included, in the order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = (Field<'a>, Value<'a>)> + use<'a> {
        let message = *self;
        let entries = message.table().entries().iter().enumerate();
        entries
            .filter(move |(index, entry)| message.is_set(*index, entry))
            .map(move |(index, entry)| (Field::new(message.schema, entry.field), message.value(index, entry)))
    }

    /// Returns the member of a oneof that is set.
    pub fn which(&self, oneof: Oneof<'_>) -> Option<Field<'a>> {
        let field = oneof.fields().find(|field| self.has(*field))?;
        Some(Field::new(self.schema, field.index()))
    }

    /// Whether it has unknown fields.
    pub fn has_unknown_fields(&self) -> bool {
        self.at != ABSENT && self.arena.unknown(self.at as usize).is_some()
    }

    /// Returns the full path of the first required field that is not set, here or in a nested message.
    pub fn missing_required(&self) -> Option<String> {
        let table = self.table();
        if !table.has_required {
            return None;
        }
        for (index, entry) in table.entries().iter().enumerate() {
            let name = || Field::new(self.schema, entry.field).name().to_owned();
            if !self.is_set(index, entry) {
                if entry.flags.has(Flags::REQUIRED) {
                    return Some(name());
                }
                continue;
            }
            let missing = match self.value(index, entry) {
                Value::Message(message) => message.missing_required(),
                Value::List(list) if entry.kind.is_message() => {
                    list.iter().enumerate().find_map(|(at, value)| {
                        Some(format!("[{at}].{}", value.as_message()?.missing_required()?))
                    })
                }
                Value::Map(map) if map.value.kind.is_message() => map.iter().find_map(|(key, value)| {
                    Some(format!("[{key:?}].{}", value.as_message()?.missing_required()?))
                }),
                _ => None,
            };
            if let Some(missing) = missing {
                let dot = if missing.starts_with('[') { "" } else { "." };
                return Some(format!("{}{dot}{missing}", name()));
            }
        }
        None
    }

    /// Returns the value of the field of entry `index`, set or not.
    #[inline]
    pub(crate) fn value(&self, index: usize, entry: &'a Entry) -> Value<'a> {
        let present = self.at != ABSENT && self.arena.is_present(self.at as usize, index);
        if entry.is_repeated() {
            let word = if present { self.word(entry) } else { 0 };
            let (start, len) = ((word >> 32) as usize, word as u32 as usize);
            if entry.is_map() {
                let pairs = self.arena.words[start..start + 2 * len].as_chunks().0;
                let [key, value] = self.schema.pool().tables[entry.type_index as usize].entries() else {
                    // Unreachable: checked when the schema was compiled.
                    return Value::List(List { message: *self, entry, words: &[] });
                };
                return Value::Map(Map { message: *self, key, value, pairs });
            }
            return Value::List(List { message: *self, entry, words: &self.arena.words[start..start + len] });
        }
        if present {
            return Value::of(*self, entry, self.word(entry));
        }
        if entry.kind.is_message() {
            return Value::Message(self.inner(entry.type_index, ABSENT as usize));
        }
        match &self.schema.pool().field(entry).default {
            DefaultValue::Word(word) if !matches!(entry.kind, Kind::String | Kind::Bytes) => {
                Value::of(*self, entry, *word)
            }
            DefaultValue::Word(_) if entry.kind == Kind::String => Value::String(""),
            DefaultValue::Word(_) => Value::Bytes(&[]),
            DefaultValue::Bytes(bytes) if entry.kind == Kind::String => {
                Value::String(std::str::from_utf8(bytes).unwrap_or_default())
            }
            DefaultValue::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

impl PartialEq for MessageRef<'_> {
    /// Whether both have the same type and the same fields with the same values. Unknown fields are compared byte for
    /// byte. The order of a map does not matter. Numbers compare as numbers, so NaN is not equal to itself.
    fn eq(&self, other: &Self) -> bool {
        self.message_type() == other.message_type()
            && self.unknown_fields() == other.unknown_fields()
            && self.table().entries().iter().enumerate().all(|(index, entry)| {
                match (self.is_set(index, entry), other.is_set(index, entry)) {
                    (true, true) => self.value(index, entry) == other.value(index, entry),
                    (left, right) => left == right,
                }
            })
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = out.debug_struct(self.message_type().full_name());
        for (field, value) in self.fields() {
            debug.field(field.name(), &value);
        }
        if self.has_unknown_fields() {
            debug.field("unknown fields", &self.unknown_fields());
        }
        debug.finish()
    }
}
