//! Decodes wire bytes into records.
//!
//! One loop handles all fields of a message. The tag's number selects the [`Entry`]; if the tag is the expected one,
//! `Entry::op` selects the action. [`Decoding::unexpected_tag`] handles the rare cases: unknown fields, numbers that
//! are packed or unpacked against expectation, and ends of groups.

// Both arms of a match on a closed enum's value (known, unknown) are equally important.
#![allow(clippy::single_match_else)]

mod decoding;
mod packed;

use decoding::{Decoding, Values};

use super::arena::{Arena, IN_ARENA, IN_UNSORTED, select_member, set_present};
use super::limits::{BoxedDecodeError, DecodeError, INPUT_LEN_MAX, Limits, wire};
use crate::schema::Kind;
use crate::schema::pool::Pool;
use crate::schema::table::{Entry, Flags, Op, Table};
use crate::wire::{Reader, Tag, WireErrorKind, WireType, message_set};

/// Decodes `input` into the record at `at` by Protobuf's merge rules; existing content is kept.
///
/// If `copy` is set, the input was appended to the arena's own bytes at that offset, and texts refer to that copy.
pub(super) fn merge(
    pool: &Pool,
    arena: &mut Arena,
    (type_index, at): (u32, usize),
    input: &[u8],
    copy: Option<usize>,
    limits: &Limits,
) -> Result<(), DecodeError> {
    if input.len() > INPUT_LEN_MAX || copy.is_some_and(|offset| offset + input.len() > INPUT_LEN_MAX) {
        return Err(DecodeError::TooLong { len: input.len() });
    }
    let base = copy.map_or(0, |offset| (offset as u64) << 32 | IN_ARENA);
    // When merging, the existing content does not count towards the limit.
    arena.reserve_for_input(input.len());
    let allowed = limits.words_max(input.len());
    let words_max = arena.top.saturating_add(allowed).min(u32::MAX as usize);
    let mut decoding = Decoding { values: Values { pool, base }, arena, words_max, allowed };
    let table = &pool.tables[type_index as usize];
    decoding.records(&mut Reader::new(input), table, at, limits.depth_max, 0).map_err(|error| *error)
}

impl<'d> Decoding<'d> {
    /// Decodes all fields of a message, or of a group up to its end tag with number `group`.
    fn records(
        &mut self,
        reader: &mut Reader<'_>,
        table: &Table,
        at: usize,
        depth: usize,
        group: u32,
    ) -> Result<(), BoxedDecodeError> {
        loop {
            // Most values change only the record, so reader and record stay in registers in this inner loop.
            let (values, mut here) = (self.values, *reader);
            let record = &mut self.arena.words[at..at + table.record_words as usize];
            let (start, bits, found) = loop {
                if here.is_empty() {
                    return if group == 0 {
                        Ok(())
                    } else {
                        Err(wire(here.offset(), WireErrorKind::GroupOpen))
                    };
                }
                let start = here.offset();
                let bits = here.tag_bits()?;
                let found = table.find(bits >> 3).filter(|(_, entry)| entry.tag == bits);
                match found {
                    Some((index, entry)) if entry.op <= Op::String => {
                        let word = values.read(&mut here, entry.op, entry)?;
                        if entry.case != 0 {
                            select_member(record, index, entry);
                        }
                        record[entry.slot as usize] = word;
                        set_present(record, index);
                    }
                    _ => break (start, bits, found),
                }
            };
            *reader = here;
            let Some((index, entry)) = found else {
                if self.unexpected_tag(reader, table, at, depth, (start, bits, group))? {
                    return Ok(());
                }
                continue;
            };
            let slot = at + entry.slot as usize;
            match entry.op {
                Op::Message => {
                    let nested = &mut reader.nested()?;
                    let (address, inner) = self.sub_message(nested, entry, at, index)?;
                    self.records(nested, inner, address, enter_nested(reader, depth)?, 0)?;
                }
                Op::RepeatedMessage => self.repeated_message(reader, entry, slot, depth)?,
                Op::RepeatedBytes => self.repeated_bytes(reader, entry, slot)?,
                Op::Packed => self.packed(reader, entry, at)?,
                Op::Map => self.map_entry(reader, entry, at, start, depth)?,
                Op::Group => {
                    let (address, inner) = self.sub_message(reader, entry, at, index)?;
                    self.records(reader, inner, address, enter_nested(reader, depth)?, entry.number)?;
                }
                Op::ClosedEnum => match self.closed_enum(reader, entry)? {
                    Some(word) => {
                        if entry.case != 0 {
                            self.arena.select_member(at, index, entry);
                        }
                        self.arena.words[slot] = word;
                    }
                    None => {
                        self.unknown(reader, at, start);
                        self.check_memory(reader, 0)?;
                        continue;
                    }
                },
                _ => self.repeated(reader, entry, at, start, depth)?,
            }
            self.arena.set_present(at, index);
        }
    }

    /// Returns the record of a singular message, creating it if absent.
    #[inline(always)]
    fn sub_message(
        &mut self,
        reader: &Reader<'_>,
        entry: &Entry,
        at: usize,
        index: usize,
    ) -> Result<(usize, &'d Table), BoxedDecodeError> {
        let slot = at + entry.slot as usize;
        let table = &self.values.pool.tables[entry.type_index as usize];
        if entry.case != 0 {
            self.arena.select_member(at, index, entry);
        }
        let address = if self.arena.is_present(at, index) {
            self.arena.words[slot] as usize
        } else {
            let address = self.new_record(reader, table)?;
            self.arena.words[slot] = address as u64;
            address
        };
        Ok((address, table))
    }

    /// Decodes messages of a list while the same tag follows.
    fn repeated_message(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &Entry,
        slot: usize,
        depth: usize,
    ) -> Result<(), BoxedDecodeError> {
        let table = &self.values.pool.tables[entry.type_index as usize];
        let depth = enter_nested(reader, depth)?;
        loop {
            let mut nested = reader.nested()?;
            // The list grows only occasionally, so its memory rarely separates a record from its content.
            let address = self.new_record(reader, table)?;
            self.push(reader, slot, address as u64)?;
            self.records(&mut nested, table, address, depth, 0)?;
            if !eat_same_tag(reader, entry) {
                return Ok(());
            }
        }
    }

    /// Decodes strings or bytes of a list while the same tag follows.
    fn repeated_bytes(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &Entry,
        slot: usize,
    ) -> Result<(), BoxedDecodeError> {
        loop {
            let word = self.values.read(reader, entry.element, entry)?;
            self.push(reader, slot, word)?;
            if !eat_same_tag(reader, entry) {
                return Ok(());
            }
        }
    }

    /// Decodes one value of an unpacked list.
    fn repeated(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &Entry,
        at: usize,
        start: usize,
        depth: usize,
    ) -> Result<(), BoxedDecodeError> {
        let slot = at + entry.slot as usize;
        let word = match entry.element {
            Op::ClosedEnum => match self.closed_enum(reader, entry)? {
                Some(word) => word,
                None => {
                    self.unknown(reader, at, start);
                    return Ok(());
                }
            },
            Op::Group => {
                let table = &self.values.pool.tables[entry.type_index as usize];
                let address = self.new_record(reader, table)?;
                self.records(reader, table, address, enter_nested(reader, depth)?, entry.number)?;
                address as u64
            }
            op => self.values.read(reader, op, entry)?,
        };
        self.push(reader, slot, word)
    }

    /// Decodes one map entry: a message with a key and a value.
    fn map_entry(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &Entry,
        at: usize,
        start: usize,
        depth: usize,
    ) -> Result<(), BoxedDecodeError> {
        let depth = enter_nested(reader, depth)?;
        let mut nested = reader.nested()?;
        let pool = self.values.pool;
        let [key, value] = pool.tables[entry.type_index as usize].entries() else {
            return Ok(());
        };
        let (mut key_word, mut value_word) = (0, None);
        while !nested.is_empty() {
            let bits = nested.tag_bits()?;
            if bits == key.tag {
                key_word = self.values.read(&mut nested, key.element, key)?;
            } else if bits == value.tag {
                value_word = Some(match value.element {
                    Op::Message => {
                        let table = &pool.tables[value.type_index as usize];
                        let address = match value_word {
                            Some(address) => address as usize,
                            None => self.new_record(reader, table)?,
                        };
                        self.records(&mut nested.nested()?, table, address, enter_nested(reader, depth)?, 0)?;
                        address as u64
                    }
                    Op::ClosedEnum => match self.closed_enum(&mut nested, value)? {
                        Some(word) => word,
                        None => {
                            self.unknown(reader, at, start);
                            return self.check_memory(reader, 0);
                        }
                    },
                    op => self.values.read(&mut nested, op, value)?,
                });
            } else {
                let tag = Tag::from_bits(bits).map_err(|kind| nested.error(kind))?;
                nested.skip(tag, depth)?;
            }
        }
        let value_word = match (value_word, value.kind.is_message()) {
            (Some(word), _) => word,
            (None, true) => self.new_record(reader, &pool.tables[value.type_index as usize])? as u64,
            // An enum's default is its first value; in a closed enum that can be any number.
            (None, false) => pool.default_word(value),
        };
        let slot = at + entry.slot as usize;
        self.arena.push_pair(slot, key_word, value_word);
        if self.arena.words[slot] as u32 > 1 && self.arena.words[slot + 1] & IN_UNSORTED == 0 {
            self.arena.words[slot + 1] |= IN_UNSORTED;
            self.arena.unsorted.push((slot as u32, key.kind == Kind::String));
        }
        self.check_memory(reader, 0)
    }

    /// Handles a tag that no field of the table expects. Returns whether it ended the group.
    #[inline(never)]
    fn unexpected_tag(
        &mut self,
        reader: &mut Reader<'_>,
        table: &Table,
        at: usize,
        depth: usize,
        (start, bits, group): (usize, u32, u32),
    ) -> Result<bool, BoxedDecodeError> {
        let tag = Tag::from_bits(bits).map_err(|kind| wire(start, kind))?;
        if tag.wire_type == WireType::EndGroup {
            return if tag.number == group { Ok(true) } else { Err(wire(start, WireErrorKind::EndGroup)) };
        }
        if table.message_set && bits == message_set::ITEM {
            self.message_set_item(reader, table, at, start, depth)?;
            return Ok(false);
        }
        if let Some((index, entry)) = table.find(tag.number)
            && entry.is_repeated()
            && entry.kind.is_packable()
        {
            if entry.flags.has(Flags::PACKED) && tag.wire_type == entry.kind.wire_type() {
                self.repeated(reader, entry, at, start, depth)?;
            } else if !entry.flags.has(Flags::PACKED) && tag.wire_type == WireType::Len {
                self.packed(reader, entry, at)?;
            } else {
                reader.skip(tag, depth)?;
                self.unknown(reader, at, start);
                self.check_memory(reader, 0)?;
            }
            self.arena.set_present(at, index);
            return Ok(false);
        }
        reader.skip(tag, depth)?;
        self.unknown(reader, at, start);
        self.check_memory(reader, 0)?;
        Ok(false)
    }

    /// Decodes a message set item: a group with an extension number and its message, in either order.
    fn message_set_item(
        &mut self,
        reader: &mut Reader<'_>,
        table: &Table,
        at: usize,
        start: usize,
        depth: usize,
    ) -> Result<(), BoxedDecodeError> {
        let depth = enter_nested(reader, depth)?;
        let (mut number, mut message) = (0, None);
        loop {
            if reader.is_empty() {
                return Err(wire(start, WireErrorKind::GroupOpen));
            }
            match reader.tag_bits()? {
                message_set::ITEM_END => break,
                message_set::TYPE_ID if number == 0 => number = reader.varint()? as u32,
                message_set::MESSAGE if message.is_none() => message = Some(reader.nested()?),
                bits => {
                    let tag = Tag::from_bits(bits).map_err(|kind| reader.error(kind))?;
                    reader.skip(tag, depth)?;
                }
            }
        }
        let Some(mut message) = message.filter(|_| number != 0) else { return Ok(()) };
        match table.find(number).filter(|(_, entry)| entry.element == Op::Message) {
            Some((index, entry)) => {
                let (address, inner) = self.sub_message(reader, entry, at, index)?;
                self.arena.set_present(at, index);
                self.records(&mut message, inner, address, depth, 0)
            }
            None => {
                self.unknown(reader, at, start);
                self.check_memory(reader, 0)
            }
        }
    }
}

#[inline(always)]
fn enter_nested(reader: &Reader<'_>, depth: usize) -> Result<usize, BoxedDecodeError> {
    match depth.checked_sub(1) {
        Some(depth) => Ok(depth),
        None => Err(wire(reader.offset(), WireErrorKind::TooDeep)),
    }
}

/// Consumes the next tag if it is the same, and returns whether it did.
#[inline(always)]
fn eat_same_tag(reader: &mut Reader<'_>, entry: &Entry) -> bool {
    reader.eat(entry.tag_bytes())
}
