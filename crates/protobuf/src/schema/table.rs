//! The flat table of a message: from a field's number to all that decoding and encoding need to know of it.
//!
//! A message in memory is a *record* of 64-bit words:
//!
//! | words | hold |
//! | --- | --- |
//! | 0 | the unknown fields |
//! | from 1, one for each 64 fields | presence: bit *i* says that the field of entry *i* is there |
//! | then | slots |
//!
//! Entries are sorted by number, so walking over the bits is walking in the order of numbers. A singular field has one slot,
//! a repeated one two; the members of a oneof share one, with another behind it that says which member it is.

use super::kind::{Cardinality, Kind, WellKnown};
use super::pool::{NONE, Pool};
use crate::wire::{NUMBER_MAX, Tag, WireType};

/// Numbers up to this are looked up by index, whatever they are; larger ones if they lie close enough.
const DENSE_MIN: usize = 32;

/// What there is to know of one message.
#[derive(Debug)]
pub(crate) struct Table {
    /// From a number to its entry's index plus one; 0 is none.
    dense: Box<[u16]>,
    /// Sorted by number.
    entries: Box<[Entry]>,
    /// Words of a record.
    pub(crate) record_words: u32,
    /// Words of presence.
    pub(crate) presence_words: u32,
    /// Whether it, or a message that it can hold, has required fields.
    pub(crate) has_required: bool,
    pub(crate) message_set: bool,
    #[allow(dead_code, reason = "for the JSON mapping")]
    pub(crate) well_known: Option<WellKnown>,
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) number: u32,
    /// The tag of one value, or of a packed row of them: what is expected, and written.
    pub(crate) tag: u32,
    /// What to do with a record that has this tag, and with what is in its slot when encoding.
    pub(crate) op: Op,
    /// What to do with one value, whether repeated or packed.
    pub(crate) element: Op,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    /// Where its slot is in the record.
    pub(crate) slot: u32,
    /// Where the slot is that says which member of its oneof is set; 0 for all others.
    pub(crate) case: u32,
    /// Of the message, the map entry or the enum.
    pub(crate) type_index: u32,
    /// In [`Pool::fields`].
    pub(crate) field: u32,
    /// The tag as it is on the wire, at the end of a word.
    pub(crate) tag_ending: [u8; 8],
    pub(crate) tag_len: u8,
}

/// What a field is, in bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    pub(crate) const REPEATED: Flags = Flags(1);
    pub(crate) const MAP: Flags = Flags(2);
    pub(crate) const PACKED: Flags = Flags(4);
    /// It knows that it was set, even to its default.
    pub(crate) const EXPLICIT: Flags = Flags(8);
    pub(crate) const UTF8: Flags = Flags(16);
    pub(crate) const CLOSED_ENUM: Flags = Flags(32);
    pub(crate) const REQUIRED: Flags = Flags(64);
    pub(crate) const EXTENSION: Flags = Flags(128);

    #[inline(always)]
    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

/// What is done with a field. Up to `String` one value is one word, whatever the message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Op {
    Varint,
    Int32,
    Uint32,
    Bool,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Bytes,
    String,
    Message,
    /// Anything that is repeated, and is not one of those below.
    Repeated,
    RepeatedMessage,
    RepeatedBytes,
    Packed,
    Map,
    Group,
    ClosedEnum,
}

impl Entry {
    pub(crate) fn is_repeated(&self) -> bool {
        self.flags.has(Flags::REPEATED)
    }

    pub(crate) fn is_map(&self) -> bool {
        self.flags.has(Flags::MAP)
    }

    fn element_op(&self) -> Op {
        match self.kind {
            Kind::Int64 | Kind::Uint64 => Op::Varint,
            Kind::Enum if self.flags.has(Flags::CLOSED_ENUM) => Op::ClosedEnum,
            Kind::Int32 | Kind::Enum => Op::Int32,
            Kind::Uint32 => Op::Uint32,
            Kind::Bool => Op::Bool,
            Kind::Sint32 => Op::Sint32,
            Kind::Sint64 => Op::Sint64,
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => Op::Fixed32,
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => Op::Fixed64,
            Kind::String if self.flags.has(Flags::UTF8) => Op::String,
            Kind::String | Kind::Bytes => Op::Bytes,
            Kind::Message => Op::Message,
            Kind::Group => Op::Group,
        }
    }
}

impl Table {
    /// The table of a message; its fields get their `entry`.
    pub(super) fn new(pool: &mut Pool, message: u32) -> Table {
        let data = &pool.messages[message as usize];
        let mut fields: Vec<u32> = data.fields.clone().chain(data.extensions.iter().copied()).collect();
        fields.sort_by_key(|&field| pool.fields[field as usize].number);
        let presence_words = fields.len().div_ceil(64) as u32;
        let mut next = 1 + presence_words;
        let mut shared = vec![NONE; data.oneofs.len()];
        let mut entries = Vec::with_capacity(fields.len());
        for &field in &fields {
            let found = &pool.fields[field as usize];
            let mut entry = Entry::new(pool, field);
            let oneof = data.oneofs.get(found.oneof as usize).filter(|oneof| !oneof.synthetic);
            if oneof.is_some() {
                let slot = &mut shared[found.oneof as usize];
                if *slot == NONE {
                    *slot = next;
                    next += 2;
                }
                (entry.slot, entry.case) = (*slot, *slot + 1);
            } else {
                entry.slot = next;
                next += if entry.is_repeated() { 2 } else { 1 };
            }
            entries.push(entry);
        }
        let (message_set, well_known) = (data.message_set, data.well_known);
        for (index, &field) in fields.iter().enumerate() {
            pool.fields[field as usize].entry = index as u16;
        }
        Table {
            dense: dense(&entries),
            record_words: next,
            presence_words,
            has_required: entries.iter().any(|entry| entry.flags.has(Flags::REQUIRED)),
            message_set,
            well_known,
            entries: entries.into(),
        }
    }

    #[inline(always)]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of the field with this number, and its index.
    #[inline(always)]
    pub(crate) fn find(&self, number: u32) -> Option<(usize, &Entry)> {
        let index = match self.dense.get(number as usize) {
            Some(&index) => usize::from(index).checked_sub(1)?,
            None => self.find_sparse(number)?,
        };
        Some((index, &self.entries[index]))
    }

    #[inline(never)]
    fn find_sparse(&self, number: u32) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

impl Entry {
    fn new(pool: &Pool, field: u32) -> Entry {
        let data = &pool.fields[field as usize];
        let repeated = data.cardinality == Cardinality::Repeated;
        let closed = data.kind == Kind::Enum && pool.enums[data.type_index as usize].closed;
        let flags = [
            (repeated, Flags::REPEATED),
            (data.map, Flags::MAP),
            (data.packed, Flags::PACKED),
            (data.explicit, Flags::EXPLICIT),
            (data.utf8, Flags::UTF8),
            (closed, Flags::CLOSED_ENUM),
            (data.cardinality == Cardinality::Required, Flags::REQUIRED),
            (data.extension, Flags::EXTENSION),
        ];
        let flags = flags.iter().filter(|(set, _)| *set).fold(0, |bits, (_, flag)| bits | flag.0);
        let wire_type = if data.packed { WireType::Len } else { data.kind.wire_type() };
        // In a message set a number may have 31 bits, and no tag is made of it.
        let tag = Tag::new(data.number & NUMBER_MAX, wire_type).bits();
        let mut bytes = Vec::with_capacity(5);
        crate::wire::put_varint(&mut bytes, u64::from(tag));
        let mut tag_ending = [0; 8];
        tag_ending[8 - bytes.len()..].copy_from_slice(&bytes);
        let mut entry = Entry {
            number: data.number,
            tag,
            op: Op::Varint,
            element: Op::Varint,
            kind: data.kind,
            flags: Flags(flags),
            slot: 0,
            case: 0,
            type_index: data.type_index,
            field,
            tag_ending,
            tag_len: bytes.len() as u8,
        };
        entry.element = entry.element_op();
        entry.op = match entry.element {
            _ if data.map => Op::Map,
            _ if data.packed => Op::Packed,
            Op::Message if repeated => Op::RepeatedMessage,
            Op::Bytes | Op::String if repeated => Op::RepeatedBytes,
            _ if repeated => Op::Repeated,
            op => op,
        };
        entry
    }

    /// The tag as it is on the wire.
    #[inline(always)]
    pub(crate) fn tag_bytes(&self) -> &[u8] {
        &self.tag_ending[8 - usize::from(self.tag_len)..]
    }
}

/// Tells the tables of messages that can hold one with required fields that they do.
pub(super) fn spread_required(tables: &mut [Table]) {
    let mut holders = vec![Vec::new(); tables.len()];
    for (index, table) in tables.iter().enumerate() {
        for entry in table.entries.iter().filter(|entry| entry.kind.is_message()) {
            holders[entry.type_index as usize].push(index);
        }
    }
    let mut reached: Vec<usize> = (0..tables.len()).filter(|&index| tables[index].has_required).collect();
    while let Some(index) = reached.pop() {
        for &holder in &holders[index] {
            if !std::mem::replace(&mut tables[holder].has_required, true) {
                reached.push(holder);
            }
        }
    }
}

/// Numbers that lie close together: a table that is at most four times as long as there are entries.
fn dense(entries: &[Entry]) -> Box<[u16]> {
    let reached = entries
        .iter()
        .enumerate()
        .rev()
        .find(|(index, entry)| (entry.number as usize) < DENSE_MIN.max((index + 1) * 4));
    let mut dense = vec![0; reached.map_or(0, |(_, entry)| entry.number as usize + 1)];
    for (index, entry) in entries.iter().enumerate() {
        if let Some(place) = dense.get_mut(entry.number as usize) {
            *place = index as u16 + 1;
        }
    }
    dense.into()
}
