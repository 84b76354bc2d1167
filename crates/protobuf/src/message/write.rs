//! Building and changing messages.

use thiserror::Error;

use super::arena::Arena;
use super::decode;
use super::field_key::FieldKey;
use super::limits::{DecodeError, Limits};
use super::message_ref::MessageRef;
use super::value::Value;
use crate::schema::table::Entry;
use crate::schema::{Field, Kind, MessageType, Schema};

/// A message that is being changed: the root of a [`Message`](super::Message), or one in it.
///
/// What is replaced leaves its memory behind in the arena until the whole message is cleared.
#[derive(Debug)]
pub struct MessageMut<'a> {
    pub(super) schema: &'a Schema,
    pub(super) arena: &'a mut Arena,
    pub(super) input: &'a [u8],
    pub(super) type_index: u32,
    pub(super) at: usize,
}

/// A value that could not be set.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The message has no such field.
    #[error("{message} has no field {field}")]
    NoField {
        /// The full name of the message.
        message: String,
        /// What was asked for.
        field: String,
    },
    /// The field holds other values.
    #[error("{field} holds {expected}, not {given}")]
    Type {
        /// The full name of the field.
        field: String,
        /// What it holds.
        expected: String,
        /// What was given.
        given: &'static str,
    },
    /// Addresses in a message have 31 bits.
    #[error("the message has become larger than 2 GiB")]
    TooLarge,
}

impl<'a> MessageMut<'a> {
    /// Its type.
    pub fn message_type(&self) -> MessageType<'a> {
        MessageType::new(self.schema, self.type_index)
    }

    /// To read it.
    pub fn as_ref(&self) -> MessageRef<'_> {
        let MessageMut { schema, arena, input, type_index, at } = self;
        MessageRef { schema, arena, input, type_index: *type_index, at: *at as u32 }
    }

    /// The same, for as long as this is not used.
    pub fn reborrow(&mut self) -> MessageMut<'_> {
        let MessageMut { schema, arena, input, type_index, at } = self;
        MessageMut { schema, arena, input, type_index: *type_index, at: *at }
    }

    /// Sets a field to a copy of `value`: of a list, a map or a message a deep one. Another member of its oneof is
    /// cleared.
    ///
    /// # Errors
    ///
    /// If there is no such field, or it holds another type.
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

    /// Clears a field; that there is none such is no error.
    pub fn clear(&mut self, key: impl FieldKey) {
        if let Some(index) = key.find(self.schema, self.type_index) {
            let entry = self.entry(index);
            self.clear_entry(index, entry);
        }
    }

    /// The message in a singular field, to be changed; it is made if it is not set.
    ///
    /// # Errors
    ///
    /// If there is no such field, or it holds another type.
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
    /// If there is no such field, or it is no list, or one of another type.
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

    /// Appends an empty message to a list, to be changed.
    ///
    /// # Errors
    ///
    /// If there is no such field, or it is no list of messages.
    pub fn push_message(&mut self, key: impl FieldKey) -> Result<MessageMut<'_>, SetError> {
        let (index, entry) = self.find(key)?;
        if !entry.is_repeated() || entry.is_map() || !entry.kind.is_message() {
            return Err(self.wrong_message(entry));
        }
        self.check_size()?;
        Ok(self.push_record(index, entry))
    }

    /// Enters copies of a key and a value in a map; a value that the key had is replaced. It looks at one entry after
    /// the other: for many, whose keys are known to differ, there is [`MessageMut::append`].
    ///
    /// # Errors
    ///
    /// If there is no such field, or it is no map, or one of other types.
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
        self.arena.unite_last(self.input, slot, strings);
        Ok(())
    }

    /// As [`MessageMut::insert`], for a key that the map does not have yet. If it does have it, it is twice on the
    /// wire, and readers take the last.
    ///
    /// # Errors
    ///
    /// As for [`MessageMut::insert`].
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

    /// Enters a key with an empty message, to be changed, in a map that does not have the key yet.
    ///
    /// # Errors
    ///
    /// If there is no such field, or it is no map of messages.
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

    /// Decodes `bytes` into it, which are copied: singular values are replaced, messages merged, lists continued.
    ///
    /// # Errors
    ///
    /// For bytes that are not a message of the type, and for more than `limits` allow; it may then have a part
    /// of them.
    pub fn merge(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), DecodeError> {
        let offset = self.arena.bytes.len();
        self.arena.bytes.extend_from_slice(bytes);
        let address = (self.type_index, self.at);
        let merged = decode::merge(self.schema.pool(), self.arena, address, bytes, Some(offset), limits);
        self.arena.unite_keys(self.input);
        merged
    }

    /// Removes the unknown fields of this message, but not of those in it.
    pub fn clear_unknown_fields(&mut self) {
        self.arena.words[self.at] = 0;
    }

    /// Takes over all fields of `other`, which has the same type.
    pub(super) fn copy_from(&mut self, other: MessageRef<'_>) {
        let bytes = other.encode_to_vec();
        let limits = Limits {
            depth_max: usize::MAX,
            memory_free_bytes: usize::MAX,
            memory_max_bytes: usize::MAX,
            ..Limits::default()
        };
        // What was a message is one again: only text that need not be UTF-8 when it is set could fail, and is checked
        // there.
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
            self.arena.choose(self.at, index, entry);
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

    /// A record that belongs to nothing yet.
    pub(crate) fn new_record(&mut self, type_index: u32) -> MessageMut<'_> {
        let at = self.arena.new_record(&self.schema.pool().tables[type_index as usize]);
        self.at_record(type_index, at)
    }

    fn at_record(&mut self, type_index: u32, at: usize) -> MessageMut<'_> {
        MessageMut { schema: self.schema, arena: self.arena, input: self.input, type_index, at }
    }

    /// The message of a singular field, which is made if it is not set.
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
