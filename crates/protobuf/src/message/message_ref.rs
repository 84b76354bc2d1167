//! Borrowed messages: the address of the record, and which fields are set.

use super::arena::{Arena, ByteRange};
use crate::schema::pool::NONE;
use crate::schema::table::{Entry, Flags, Table};
use crate::schema::{Kind, MessageType, Schema};

/// A borrowed message: the root of a [`Message`](super::Message), the result of a [`Decoder`](super::Decoder), or a
/// message nested in one.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) arena: &'a Arena,
    pub(crate) input: &'a [u8],
    pub(crate) type_index: u32,
    /// Address of its record, or [`ABSENT`] for an unset message, whose fields all have their defaults.
    pub(crate) at: u32,
}

/// Address of a message without a record.
pub(super) const ABSENT: u32 = NONE;

impl<'a> MessageRef<'a> {
    /// Returns its type.
    #[inline]
    pub fn message_type(&self) -> MessageType<'a> {
        MessageType::new(self.schema, self.type_index)
    }

    #[inline]
    pub(crate) fn table(&self) -> &'a Table {
        &self.schema.pool().tables[self.type_index as usize]
    }

    /// Returns a nested message.
    #[inline]
    pub(super) fn inner(&self, type_index: u32, at: usize) -> MessageRef<'a> {
        MessageRef { type_index, at: at as u32, ..*self }
    }

    /// Whether the field of entry `index` is set.
    #[inline]
    pub(crate) fn is_set(&self, index: usize, entry: &Entry) -> bool {
        if self.at == ABSENT || !self.arena.is_present(self.at as usize, index) {
            return false;
        }
        let word = self.word(entry);
        if entry.is_repeated() {
            word as u32 != 0
        } else if entry.flags.has(Flags::EXPLICIT) {
            true
        } else if matches!(entry.kind, Kind::String | Kind::Bytes) {
            ByteRange(word).len() != 0
        } else {
            word != 0
        }
    }

    #[inline(always)]
    pub(crate) fn word(&self, entry: &Entry) -> u64 {
        self.arena.words[self.at as usize + entry.slot as usize]
    }
}
