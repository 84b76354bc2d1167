//! Building and modifying messages.

use thiserror::Error;

use super::arena::Arena;
use super::decode;
use super::field_key::FieldKey;
use super::limits::{DecodeError, Limits};
use super::message_ref::MessageRef;
use super::value::Value;
use crate::schema::table::Entry;
use crate::schema::{Field, Kind, MessageType, Schema};

/// A mutable message: the root of a [`Message`](super::Message), or a message nested in one.
///
/// The memory of a replaced value stays in the arena until the whole message is cleared.
#[derive(Debug)]
pub struct MessageMut<'a> {
    pub(super) schema: &'a Schema,
    pub(super) arena: &'a mut Arena,
    pub(super) input: &'a [u8],
    pub(super) type_index: u32,
    pub(super) at: usize,
}

/// Error from setting a value.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The message has no such field.
    #[error("{message} has no field {field}")]
    NoField {
        /// The full name of the message.
        message: String,
        /// The key that was given.
        field: String,
    },
    /// The type of the value differs from that of the field.
    #[error("{field} holds {expected}, not {given}")]
    Type {
        /// The full name of the field.
        field: String,
        /// The type of the field.
        expected: String,
        /// The type of the value.
        given: &'static str,
    },
    /// The message exceeds 2 GiB: addresses have 31 bits.
    #[error("the message exceeds 2 GiB")]
    TooLarge,
}

impl<'a> MessageMut<'a> {
    /// Returns its type.
    pub fn message_type(&self) -> MessageType<'a> {
        MessageType::new(self.schema, self.type_index)
    }

    /// Returns a reference to read it.
    pub fn as_ref(&self) -> MessageRef<'_> {
        let MessageMut { schema, arena, input, type_index, at } = self;
        MessageRef { schema, arena, input, type_index: *type_index, at: *at as u32 }
    }

    /// Reborrows it for a shorter lifetime.
    pub fn reborrow(&mut self) -> MessageMut<'_> {
        let MessageMut { schema, arena, input, type_index, at } = self;
        MessageMut { schema, arena, input, type_index: *type_index, at: *at }
    }

    /// Sets a field to a copy of `value`; lists, maps and messages are copied deeply. Clears the other members of its
    /// oneof.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no such field, or if the field has another type.
    pub fn set(&mut self, key: impl FieldKey, value: Value<'_>) -> Result<(), SetError> {
        let (index, entry) = self.find(key)?;
        match value {
            Value::List(list) if entry.is_repeated() && !entry.is_map() => {
                self.clear_entry(index, entry);
                list.iter().try_for_each(|value| self.push(self.field(entry), value))
            }
            Value::Map(map) if entry.is_map() => {
                self.clear_entry(index, entry);
                map.iter().try_for_each(|(key, value)| self.append(self.field(entry), key, value))
            }
            _ if entry.is_repeated() => Err(self.wrong(entry, value)),
            Value::Message(message) if entry.kind.is_message() => {
                self.check_type(entry, message)?;
                self.clear_entry(index, entry);
                self.sub_message(index, entry).copy_from(message);
                Ok(())
            }
            _ => {
                let word = self.word(entry, value)?;
                self.set_word(index, entry, word);
                Ok(())
            }
        }
    }

    /// Clears a field. Does nothing if the message has no such field.
    pub fn clear(&mut self, key: impl FieldKey) {
        if let Some(index) = key.find(self.schema, self.type_index) {
            let entry = self.entry(index);
            self.clear_entry(index, entry);
        }
    }

    /// Returns the message in a singular field, creating it if it is not set.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no such field, or if the field has another type.
    pub fn message(&mut self, key: impl FieldKey) -> Result<MessageMut<'_>, SetError> {
        let (index, entry) = self.find(key)?;
        if entry.is_repeated() || !entry.kind.is_message() {
            return Err(self.wrong_message(entry));
        }
        Ok(self.sub_message(index, entry))
    }

    /// Appends a copy of `value` to a list.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no such field, or if it is not a list of this type.
    pub fn push(&mut self, key: impl FieldKey, value: Value<'_>) -> Result<(), SetError> {
        let (index, entry) = self.find(key)?;
        if !entry.is_repeated() || entry.is_map() {
            return Err(self.wrong(entry, value));
        }
        if let Value::Message(message) = value
            && entry.kind.is_message()
        {
            self.check_type(entry, message)?;
            self.push_record(index, entry).copy_from(message);
            return Ok(());
        }
        let word = self.word(entry, value)?;
        self.push_word(index, entry, word);
        Ok(())
    }

    /// Appends an empty message to a list and returns it.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no such field, or if it is not a list of messages.
    pub fn push_message(&mut self, key: impl FieldKey) -> Result<MessageMut<'_>, SetError> {
        let (index, entry) = self.find(key)?;
        if !entry.is_repeated() || entry.is_map() || !entry.kind.is_message() {
            return Err(self.wrong_message(entry));
        }
        self.check_size()?;
        Ok(self.push_record(index, entry))
    }

    /// Inserts copies of a key and a value into a map, replacing the key's earlier value by a linear search. To insert
    /// many distinct keys, use [`MessageMut::append`].
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no such field, or if it is not a map of these types.
    pub fn insert(
        &mut self,
        key: impl FieldKey,
        map_key: Value<'_>,
        value: Value<'_>,
    ) -> Result<(), SetError> {
        let (index, entry) = self.find(key)?;
        self.append(key, map_key, value)?;
        let slot = self.at + entry.slot as usize;
        let strings = self.arena_is_string_keyed(entry);
        debug_assert!(self.arena.is_present(self.at, index));
        self.arena.dedup_last_key(self.input, slot, strings);
        Ok(())
    }

    /// Inserts like [`MessageMut::insert`], but does not search for the key. A duplicate key is written twice, and
    /// readers take the last.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`MessageMut::insert`].
    pub fn append(
        &mut self,
        key: impl FieldKey,
        map_key: Value<'_>,
        value: Value<'_>,
    ) -> Result<(), SetError> {
        let (index, entry) = self.find(key)?;
        let Some((key_entry, value_entry)) = self.map_entries(entry) else {
            return Err(self.wrong(entry, value));
        };
        let key_word = self.word(key_entry, map_key)?;
        let value_word = match value {
            Value::Message(message) if value_entry.kind.is_message() => {
                self.check_type(value_entry, message)?;
                let mut record = self.new_record(value_entry.type_index);
                record.copy_from(message);
                record.at as u64
            }
            _ => self.word(value_entry, value)?,
        };
        self.push_pair(index, entry, key_word, value_word);
        Ok(())
    }

    /// Inserts a key with an empty message, and returns the message. The map must not have the key yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no such field, or if it is not a map of messages.
    pub fn append_message(
        &mut self,
        key: impl FieldKey,
        map_key: Value<'_>,
    ) -> Result<MessageMut<'_>, SetError> {
        let (index, entry) = self.find(key)?;
        match self.map_entries(entry) {
            Some((key_entry, value_entry)) if value_entry.kind.is_message() => {
                let key_word = self.word(key_entry, map_key)?;
                let at = self.new_record(value_entry.type_index).at;
                self.push_pair(index, entry, key_word, at as u64);
                Ok(self.at_record(value_entry.type_index, at))
            }
            _ => Err(self.wrong_message(entry)),
        }
    }

    /// Decodes a copy of `bytes` into the message: singular values are replaced, messages merged, lists extended.
    ///
    /// # Errors
    ///
    /// Returns an error if `bytes` are not a valid message of the type, or if they exceed `limits`. The message may
    /// then contain part of them.
    pub fn merge(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), DecodeError> {
        let offset = self.arena.bytes.len();
        self.arena.bytes.extend_from_slice(bytes);
        let address = (self.type_index, self.at);
        let merged = decode::merge(self.schema.pool(), self.arena, address, bytes, Some(offset), limits);
        self.arena.dedup_map_keys(self.input);
        merged
    }

    /// Removes the unknown fields of this message, but not those of nested messages.
    pub fn clear_unknown_fields(&mut self) {
        self.arena.words[self.at] = 0;
    }

    /// Copies all fields of `other`, which has the same type.
    pub(super) fn copy_from(&mut self, other: MessageRef<'_>) {
        let bytes = other.encode_to_vec();
        let limits = Limits {
            depth_max: usize::MAX,
            memory_free_bytes: usize::MAX,
            memory_max_bytes: usize::MAX,
            ..Limits::default()
        };
        // The bytes come from a valid message. Only text that was set without being UTF-8 could fail, and setting
        // checks that.
        let _ = self.merge(&bytes, &limits);
    }

    fn find(&self, key: impl FieldKey) -> Result<(usize, &'a Entry), SetError> {
        match key.find(self.schema, self.type_index) {
            Some(index) => Ok((index, self.entry(index))),
            None => Err(SetError::NoField {
                message: self.message_type().full_name().to_owned(),
                field: key.describe(),
            }),
        }
    }

    fn entry(&self, index: usize) -> &'a Entry {
        &self.message_type().table().entries()[index]
    }

    fn field(&self, entry: &Entry) -> Field<'a> {
        Field::new(self.schema, entry.field)
    }

    fn map_entries(&self, entry: &Entry) -> Option<(&'a Entry, &'a Entry)> {
        match self.schema.pool().tables[entry.type_index as usize].entries() {
            [key, value] if entry.is_map() => Some((key, value)),
            _ => None,
        }
    }

    fn arena_is_string_keyed(&self, entry: &Entry) -> bool {
        self.map_entries(entry).is_some_and(|(key, _)| key.kind == Kind::String)
    }

    fn check_size(&self) -> Result<(), SetError> {
        if self.arena.has_capacity() { Ok(()) } else { Err(SetError::TooLarge) }
    }

    fn word(&mut self, entry: &Entry, value: Value<'_>) -> Result<u64, SetError> {
        self.check_size()?;
        value.word(entry.kind, self.arena).ok_or_else(|| self.wrong(entry, value))
    }

    pub(crate) fn set_word(&mut self, index: usize, entry: &Entry, word: u64) {
        if entry.case != 0 {
            self.arena.select_member(self.at, index, entry);
        }
        self.arena.words[self.at + entry.slot as usize] = word;
        self.arena.set_present(self.at, index);
    }

    pub(crate) fn push_word(&mut self, index: usize, entry: &Entry, word: u64) {
        self.arena.push(self.at + entry.slot as usize, word);
        self.arena.set_present(self.at, index);
    }

    pub(crate) fn push_pair(&mut self, index: usize, entry: &Entry, key: u64, value: u64) {
        self.arena.push_pair(self.at + entry.slot as usize, key, value);
        self.arena.set_present(self.at, index);
    }

    pub(crate) fn push_record(&mut self, index: usize, entry: &Entry) -> MessageMut<'_> {
        let at = self.new_record(entry.type_index).at;
        self.push_word(index, entry, at as u64);
        self.at_record(entry.type_index, at)
    }

    /// Creates a record that no field refers to yet.
    pub(crate) fn new_record(&mut self, type_index: u32) -> MessageMut<'_> {
        let at = self.arena.new_record(&self.schema.pool().tables[type_index as usize]);
        self.at_record(type_index, at)
    }

    fn at_record(&mut self, type_index: u32, at: usize) -> MessageMut<'_> {
        MessageMut { schema: self.schema, arena: self.arena, input: self.input, type_index, at }
    }

    /// Returns the message of a singular field, creating it if it is not set.
    pub(crate) fn sub_message(&mut self, index: usize, entry: &Entry) -> MessageMut<'_> {
        if !self.arena.is_present(self.at, index) {
            let at = self.new_record(entry.type_index).at;
            self.set_word(index, entry, at as u64);
        }
        let at = self.arena.words[self.at + entry.slot as usize] as usize;
        self.at_record(entry.type_index, at)
    }

    fn clear_entry(&mut self, index: usize, entry: &Entry) {
        if !self.arena.is_present(self.at, index) {
            return;
        }
        self.arena.set_absent(self.at, index);
        let slot = self.at + entry.slot as usize;
        self.arena.words[slot] = 0;
        if entry.is_repeated() {
            self.arena.words[slot + 1] = 0;
        }
        if entry.case != 0 {
            self.arena.words[self.at + entry.case as usize] = 0;
        }
    }

    fn check_type(&self, entry: &Entry, message: MessageRef<'_>) -> Result<(), SetError> {
        self.check_size()?;
        if MessageType::new(self.schema, entry.type_index) == message.message_type() {
            Ok(())
        } else {
            Err(self.wrong(entry, Value::Message(message)))
        }
    }

    fn wrong(&self, entry: &Entry, value: Value<'_>) -> SetError {
        self.wrong_type(entry, value.name())
    }

    fn wrong_message(&self, entry: &Entry) -> SetError {
        self.wrong_type(entry, "a message")
    }

    #[cold]
    fn wrong_type(&self, entry: &Entry, given: &'static str) -> SetError {
        let field = self.field(entry);
        let kind = match (field.message_type(), field.enum_type()) {
            (Some(message), _) => message.full_name().to_owned(),
            (_, Some(declared)) => declared.full_name().to_owned(),
            _ => entry.kind.to_string(),
        };
        let expected = match (entry.is_map(), entry.is_repeated()) {
            (true, _) => format!("a map of {kind}"),
            (_, true) => format!("a list of {kind}"),
            _ => kind,
        };
        SetError::Type { field: field.full_name(), expected, given }
    }
}
