//! Flat table of a message: maps a field's number to all that decoding and encoding need.
//!
//! A message in memory is a *record* of 64-bit words:
//!
//! | words | content |
//! | --- | --- |
//! | 0 | the unknown fields |
//! | from 1, one for each 64 fields | presence: bit *i* is set if the field of entry *i* is present |
//! | then | slots |
//!
//! Entries are sorted by number, so iterating over the bits follows the order of numbers. A singular field has one
//! slot, a repeated one two. The members of a oneof share a slot, followed by another that identifies the member that
//! is set.

use super::kind::{Cardinality, Kind, WellKnown};
use crate::wire::{NUMBER_MAX, Tag, WireType, put_varint};

/// The table of one message.
#[derive(Debug)]
pub(crate) struct Table {
    /// Maps a number to its entry's index plus one; 0 is no entry.
    pub(super) dense: Box<[u16]>,
    /// Sorted by number.
    pub(super) entries: Box<[Entry]>,
    /// Number of words of a record.
    pub(crate) record_words: u32,
    /// Number of presence words.
    pub(crate) presence_words: u32,
    /// Whether it, or a message that it can contain, has required fields.
    pub(crate) has_required: bool,
    pub(crate) message_set: bool,
    /// Its well-known type with its own JSON form, if it has the fields that its name promises.
    pub(crate) known: Option<WellKnown>,
    /// Indexes of its own required fields.
    pub(crate) required: Box<[u16]>,
    /// Index of the message in [`Pool::messages`](super::pool::Pool::messages).
    pub(crate) message: u32,
}

/// The half of a field that loops over records need; the rest is its [`FieldData`](super::pool::FieldData).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) number: u32,
    /// Tag of one value, or of packed values: expected when decoding, written when encoding.
    pub(crate) tag: u32,
    /// Decoder action for this tag, and encoder action for its slot.
    pub(crate) op: Op,
    /// Action for one value, whether repeated or packed.
    pub(crate) element: Op,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    /// Offset of its slot in the record.
    pub(crate) slot: u32,
    /// Offset of the slot that identifies the set member of its oneof; 0 outside oneofs.
    pub(crate) case: u32,
    /// Index of the message, map entry or enum.
    pub(crate) type_index: u32,
    /// Index in [`Pool::fields`](super::pool::Pool::fields).
    pub(crate) field: u32,
    /// The wire bytes of the tag, at the end of a word.
    pub(crate) tag_ending: [u8; 8],
    pub(crate) tag_len: u8,
}

/// Field properties as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    pub(crate) const REPEATED: Flags = Flags(1);
    pub(crate) const MAP: Flags = Flags(2);
    pub(crate) const PACKED: Flags = Flags(4);
    /// It tracks presence: it can be set to its default.
    pub(crate) const EXPLICIT: Flags = Flags(8);
    pub(crate) const UTF8: Flags = Flags(16);
    pub(crate) const CLOSED_ENUM: Flags = Flags(32);
    pub(crate) const REQUIRED: Flags = Flags(64);
    pub(crate) const EXTENSION: Flags = Flags(128);

    /// Whether any of these bits is set.
    #[inline(always)]
    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn of(bits: &[(bool, Flags)]) -> Flags {
        Flags(bits.iter().filter(|(is_set, _)| *is_set).fold(0, |bits, (_, flag)| bits | flag.0))
    }
}

/// The cardinality of a field, which determines its JSON form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FieldShape {
    Singular,
    Repeated,
    Map,
}

/// Action for a field. Up to `String`, one value is one word and needs nothing else of the message.
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
    /// Any other repeated field.
    Repeated,
    RepeatedMessage,
    RepeatedBytes,
    Packed,
    Map,
    Group,
    ClosedEnum,
}

impl Entry {
    /// Creates an entry. `slot`, `case` and `field` must be set later.
    pub(crate) fn new(number: u32, kind: Kind, flags: Flags, type_index: u32) -> Entry {
        let is_packed = flags.has(Flags::PACKED);
        let wire_type = if is_packed { WireType::Len } else { kind.wire_type() };
        // In a message set a number may have 31 bits, but no tag is built from it.
        let tag = Tag::new(number & NUMBER_MAX, wire_type).bits();
        let mut bytes = Vec::with_capacity(5);
        put_varint(&mut bytes, u64::from(tag));
        let mut tag_ending = [0; 8];
        tag_ending[8 - bytes.len()..].copy_from_slice(&bytes);
        let element = Op::of_element(kind, flags);
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
    pub(crate) fn shape(&self) -> FieldShape {
        match self.flags.0 & (Flags::REPEATED.0 | Flags::MAP.0) {
            0 => FieldShape::Singular,
            1 => FieldShape::Repeated,
            _ => FieldShape::Map,
        }
    }

    /// Whether it is singular and absent when it is zero or empty.
    #[inline(always)]
    pub(crate) fn is_implicit(&self) -> bool {
        !self.flags.has(Flags(Flags::REPEATED.0 | Flags::EXPLICIT.0))
    }

    /// Whether unknown numbers are not values of the enum.
    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.flags.has(Flags::CLOSED_ENUM)
    }

    #[inline(always)]
    pub(crate) fn is_in_oneof(&self) -> bool {
        self.case != 0
    }

    /// Returns the wire bytes of the tag.
    #[inline(always)]
    pub(crate) fn tag_bytes(&self) -> &[u8] {
        &self.tag_ending[8 - usize::from(self.tag_len)..]
    }

    /// Whether a wire record with this tag has values of the field, including numbers that are packed or unpacked
    /// against expectation.
    #[inline(always)]
    pub(crate) fn matches_tag(&self, tag: u32) -> bool {
        // Tags of the same number differ only in their three lowest bits.
        let difference = self.tag ^ tag;
        difference == 0 || difference < 8 && self.matches_unexpected_tag(tag)
    }

    #[cold]
    fn matches_unexpected_tag(&self, tag: u32) -> bool {
        let other = if self.flags.has(Flags::PACKED) { self.kind.wire_type() } else { WireType::Len };
        self.is_repeated() && self.kind.is_packable() && tag == Tag::new(self.number, other).bits()
    }
}

impl Op {
    /// Returns the action for one value, repeated or not.
    fn of_element(kind: Kind, flags: Flags) -> Op {
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

    /// Returns the index and entry of the field with this number.
    #[inline(always)]
    pub(crate) fn find(&self, number: u32) -> Option<(usize, &Entry)> {
        let index = match self.dense.get(number as usize) {
            Some(&index) => usize::from(index).checked_sub(1)?,
            None => self.find_sparse(number)?,
        };
        Some((index, &self.entries[index]))
    }

    /// Returns the entry of the field that accepts this tag.
    #[inline(always)]
    pub(crate) fn find_by_tag(&self, tag: u32) -> Option<&Entry> {
        self.find(tag >> 3).map(|(_, entry)| entry).filter(|entry| entry.matches_tag(tag))
    }

    #[inline(never)]
    fn find_sparse(&self, number: u32) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}
