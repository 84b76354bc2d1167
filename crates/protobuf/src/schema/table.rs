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
//! Entries are sorted by number, so walking over the bits is walking in the order of numbers. A singular field has one
//! slot, a repeated one two; the members of a oneof share one, with another behind it that says which member it is.

use super::kind::{Cardinality, Kind, WellKnown};
use crate::wire::{NUMBER_MAX, Tag, WireType, put_varint};

/// What there is to know of one message.
#[derive(Debug)]
pub(crate) struct Table {
    /// From a number to its entry's index plus one; 0 is none.
    pub(super) dense: Box<[u16]>,
    /// Sorted by number.
    pub(super) entries: Box<[Entry]>,
    /// Words of a record.
    pub(crate) record_words: u32,
    /// Words of presence.
    pub(crate) presence_words: u32,
    /// Whether it, or a message that it can hold, has required fields.
    pub(crate) has_required: bool,
    pub(crate) message_set: bool,
    /// The form of its own that it has in JSON, if its fields are those that its name promises.
    pub(crate) known: Option<WellKnown>,
    /// Indexes of its own required fields.
    pub(crate) required: Box<[u16]>,
    /// The message, in [`Pool::messages`](super::pool::Pool::messages).
    pub(crate) message: u32,
}

/// A field, as far as loops over records need it; the rest is its [`FieldData`](super::pool::FieldData).
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
    /// In [`Pool::fields`](super::pool::Pool::fields).
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

    /// Whether one of these bits is set.
    #[inline(always)]
    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn of(bits: &[(bool, Flags)]) -> Flags {
        Flags(bits.iter().filter(|(is_set, _)| *is_set).fold(0, |bits, (_, flag)| bits | flag.0))
    }
}

/// How many values a field has, and how they lie in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Singular,
    Repeated,
    Map,
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
    /// `slot`, `case` and `field` are yet to be set.
    pub(crate) fn new(number: u32, kind: Kind, flags: Flags, type_index: u32) -> Entry {
        let is_packed = flags.has(Flags::PACKED);
        let wire_type = if is_packed { WireType::Len } else { kind.wire_type() };
        // In a message set a number may have 31 bits, and no tag is made of it.
        let tag = Tag::new(number & NUMBER_MAX, wire_type).bits();
        let mut bytes = Vec::with_capacity(5);
        put_varint(&mut bytes, u64::from(tag));
        let mut tag_ending = [0; 8];
        tag_ending[8 - bytes.len()..].copy_from_slice(&bytes);
        let element = Op::of_one(kind, flags);
        let op = match element {
            _ if flags.has(Flags::MAP) => Op::Map,
            _ if is_packed => Op::Packed,
            Op::Message if flags.has(Flags::REPEATED) => Op::RepeatedMessage,
            Op::Bytes | Op::String if flags.has(Flags::REPEATED) => Op::RepeatedBytes,
            _ if flags.has(Flags::REPEATED) => Op::Repeated,
            op => op,
        };
        let tag_len = bytes.len() as u8;
        Entry {
            number,
            tag,
            op,
            element,
            kind,
            flags,
            slot: 0,
            case: 0,
            type_index,
            field: 0,
            tag_ending,
            tag_len,
        }
    }

    #[inline(always)]
    pub(crate) fn is_repeated(&self) -> bool {
        self.flags.has(Flags::REPEATED)
    }

    #[inline(always)]
    pub(crate) fn is_map(&self) -> bool {
        self.flags.has(Flags::MAP)
    }

    pub(crate) fn cardinality(&self) -> Cardinality {
        match (self.is_repeated(), self.flags.has(Flags::REQUIRED)) {
            (true, _) => Cardinality::Repeated,
            (_, true) => Cardinality::Required,
            _ => Cardinality::Optional,
        }
    }

    #[inline(always)]
    pub(crate) fn shape(&self) -> Shape {
        match self.flags.0 & (Flags::REPEATED.0 | Flags::MAP.0) {
            0 => Shape::Singular,
            1 => Shape::Repeated,
            _ => Shape::Map,
        }
    }

    /// Whether it is singular, and not there when it is zero or empty.
    #[inline(always)]
    pub(crate) fn is_implicit(&self) -> bool {
        !self.flags.has(Flags(Flags::REPEATED.0 | Flags::EXPLICIT.0))
    }

    /// Whether the numbers without a name are none of its values.
    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.flags.has(Flags::CLOSED_ENUM)
    }

    #[inline(always)]
    pub(crate) fn is_in_oneof(&self) -> bool {
        self.case != 0
    }

    /// The tag as it is on the wire.
    #[inline(always)]
    pub(crate) fn tag_bytes(&self) -> &[u8] {
        &self.tag_ending[8 - usize::from(self.tag_len)..]
    }

    /// Whether a record with this tag has values of it: as they are expected, or numbers that are packed or not packed
    /// against expectation.
    #[inline(always)]
    pub(crate) fn takes(&self, tag: u32) -> bool {
        // Two tags of one number differ in their three lowest bits.
        let difference = self.tag ^ tag;
        difference == 0 || difference < 8 && self.takes_unexpected(tag)
    }

    #[cold]
    fn takes_unexpected(&self, tag: u32) -> bool {
        let other = if self.flags.has(Flags::PACKED) { self.kind.wire_type() } else { WireType::Len };
        self.is_repeated() && self.kind.is_packable() && tag == Tag::new(self.number, other).bits()
    }
}

impl Op {
    /// For one value, whether it is repeated or not.
    fn of_one(kind: Kind, flags: Flags) -> Op {
        match kind {
            Kind::Int64 | Kind::Uint64 => Op::Varint,
            Kind::Enum if flags.has(Flags::CLOSED_ENUM) => Op::ClosedEnum,
            Kind::Int32 | Kind::Enum => Op::Int32,
            Kind::Uint32 => Op::Uint32,
            Kind::Bool => Op::Bool,
            Kind::Sint32 => Op::Sint32,
            Kind::Sint64 => Op::Sint64,
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => Op::Fixed32,
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => Op::Fixed64,
            Kind::String if flags.has(Flags::UTF8) => Op::String,
            Kind::String | Kind::Bytes => Op::Bytes,
            Kind::Message => Op::Message,
            Kind::Group => Op::Group,
        }
    }
}

impl Table {
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

    /// The entry of the field that a record with this tag is of.
    #[inline(always)]
    pub(crate) fn find_by_tag(&self, tag: u32) -> Option<&Entry> {
        self.find(tag >> 3).map(|(_, entry)| entry).filter(|entry| entry.takes(tag))
    }

    #[inline(never)]
    fn find_sparse(&self, number: u32) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}
