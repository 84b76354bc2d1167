//! From records to bytes, from the end to the start.
//!
//! A length stands before what it counts. Writing backwards it is known when it is needed, so each field is looked at once, and no
//! sizes are computed beforehand or kept.

use super::arena::{Arena, Text};
use super::decode::{SET_ITEM_END, SET_ITEM_START, SET_MESSAGE, SET_TYPE_ID};
use crate::schema::pool::Pool;
use crate::schema::table::{Entry, Flags, Op, Table};
use crate::wire::{Tag, WireType, put_varint, varint_len, zigzag};

/// What is written: the end of a buffer, which grows at its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
    /// Where what is written begins.
    at: usize,
}

/// The first buffer, in bytes.
const BUFFER_LEN_MIN: usize = 256;

impl Output {
    /// Empty, with the room that it has.
    pub(super) fn clear(&mut self) {
        self.at = self.buffer.len();
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    #[inline(always)]
    fn reserve(&mut self, len: usize) {
        if self.at < len {
            self.grow(len);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        let written = self.buffer.len() - self.at;
        let more = self.buffer.len().max(len).max(BUFFER_LEN_MIN);
        self.buffer.resize(self.buffer.len() + more, 0);
        let end = self.buffer.len();
        self.buffer.copy_within(self.at..self.at + written, end - written);
        self.at = end - written;
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.at -= bytes.len();
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        self.reserve(10);
        if value < 0x80 {
            self.at -= 1;
            self.buffer[self.at] = value as u8;
        } else {
            self.varint_long(value);
        }
    }

    #[inline(always)]
    fn varint_long(&mut self, mut value: u64) {
        let len = varint_len(value);
        self.at -= len;
        let Some(place) = self.buffer.get_mut(self.at..self.at + len) else { return };
        let Some((last, rest)) = place.split_last_mut() else { return };
        for byte in rest {
            *byte = value as u8 | 0x80;
            value >>= 7;
        }
        *last = value as u8;
    }

    #[inline(always)]
    fn tag(&mut self, entry: &Entry) {
        if entry.tag_len == 1 {
            self.reserve(1);
            self.at -= 1;
            self.buffer[self.at] = entry.tag_bytes[0];
        } else {
            self.bytes(&entry.tag_bytes[..usize::from(entry.tag_len)]);
        }
    }

    /// Bytes that have been written since the buffer had `end` before it.
    fn since(&self, left: usize) -> u64 {
        (self.left() - left) as u64
    }

    /// What is written, in bytes.
    #[inline(always)]
    fn left(&self) -> usize {
        self.buffer.len() - self.at
    }
}

/// Writes messages of one arena.
pub(super) struct Encoding<'e> {
    pub(super) pool: &'e Pool,
    pub(super) arena: &'e Arena,
    pub(super) input: &'e [u8],
    pub(super) out: &'e mut Output,
}

impl Encoding<'_> {
    /// The message in the record at `at`, in front of what is written.
    pub(super) fn message(&mut self, table: &Table, at: usize) {
        if self.arena.words[at] != 0 {
            self.unknown(at);
        }
        let presence = at + 1..at + 1 + table.presence_words as usize;
        for (word, mut bits) in self.arena.words[presence].iter().copied().enumerate().rev() {
            while bits != 0 {
                let bit = 63 - bits.leading_zeros() as usize;
                bits ^= 1 << bit;
                self.field(table, &table.entries()[word * 64 + bit], at);
            }
        }
    }

    #[inline(always)]
    fn field(&mut self, table: &Table, entry: &Entry, at: usize) {
        let slot = at + entry.slot as usize;
        let word = self.arena.words[slot];
        match entry.op {
            Op::RepeatedMessage | Op::RepeatedBytes | Op::Repeated => {
                let (start, len) = ((word >> 32) as usize, word as u32 as usize);
                let arena = self.arena;
                for &word in arena.words[start..start + len].iter().rev() {
                    self.value(entry, word);
                }
            }
            Op::Packed => self.packed(entry, word),
            Op::Map => self.map(entry, word),
            Op::Message if table.message_set => self.set_item(entry, word),
            // What has no presence is written if it is not its default, which is 0 and nothing.
            Op::String | Op::Bytes if Text(word).len() == 0 && !entry.flags.has(Flags::EXPLICIT) => {}
            _ if word == 0 && !entry.flags.has(Flags::EXPLICIT) => {}
            _ => self.value(entry, word),
        }
    }

    /// A tag and one value.
    #[inline(always)]
    fn value(&mut self, entry: &Entry, word: u64) {
        match entry.element {
            Op::String | Op::Bytes => {
                let bytes = self.arena.text(self.input, word);
                self.out.bytes(bytes);
                self.out.varint(bytes.len() as u64);
            }
            Op::Message => {
                let before = self.out.left();
                self.message(&self.pool.tables[entry.type_index as usize], word as usize);
                let len = self.out.since(before);
                self.out.varint(len);
            }
            Op::Group => {
                let end = Tag::new(entry.number, WireType::EndGroup);
                self.out.varint(u64::from(end.bits()));
                self.message(&self.pool.tables[entry.type_index as usize], word as usize);
            }
            Op::Fixed32 => self.out.bytes(&(word as u32).to_le_bytes()),
            Op::Fixed64 => self.out.bytes(&word.to_le_bytes()),
            Op::Sint32 | Op::Sint64 => self.out.varint(zigzag(word as i64)),
            _ => self.out.varint(word),
        }
        self.out.tag(entry);
    }

    fn packed(&mut self, entry: &Entry, word: u64) {
        let (start, len) = ((word >> 32) as usize, word as u32 as usize);
        if len == 0 {
            return;
        }
        let arena = self.arena;
        let words = &arena.words[start..start + len];
        let before = self.out.left();
        match entry.element {
            Op::Fixed32 => {
                self.out.reserve(len * 4);
                self.out.at -= len * 4;
                let place = &mut self.out.buffer[self.out.at..self.out.at + len * 4];
                for (bytes, word) in place.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                    *bytes = (*word as u32).to_le_bytes();
                }
            }
            Op::Fixed64 => {
                self.out.reserve(len * 8);
                self.out.at -= len * 8;
                let place = &mut self.out.buffer[self.out.at..self.out.at + len * 8];
                for (bytes, word) in place.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *bytes = word.to_le_bytes();
                }
            }
            Op::Sint32 | Op::Sint64 => {
                for &word in words.iter().rev() {
                    self.out.varint(zigzag(word as i64));
                }
            }
            _ => {
                for &word in words.iter().rev() {
                    self.out.varint(word);
                }
            }
        }
        let len = self.out.since(before);
        self.out.varint(len);
        self.out.tag(entry);
    }

    fn map(&mut self, entry: &Entry, word: u64) {
        let (start, len) = ((word >> 32) as usize, word as u32 as usize);
        let [key, value] = self.pool.tables[entry.type_index as usize].entries() else { return };
        let arena = self.arena;
        for pair in arena.words[start..start + 2 * len].as_chunks::<2>().0.iter().rev() {
            let before = self.out.left();
            self.value(value, pair[1]);
            self.value(key, pair[0]);
            let len = self.out.since(before);
            self.out.varint(len);
            self.out.tag(entry);
        }
    }

    fn set_item(&mut self, entry: &Entry, word: u64) {
        self.out.varint(u64::from(SET_ITEM_END));
        let before = self.out.left();
        self.message(&self.pool.tables[entry.type_index as usize], word as usize);
        let len = self.out.since(before);
        self.out.varint(len);
        self.out.varint(u64::from(SET_MESSAGE));
        self.out.varint(u64::from(entry.number));
        self.out.varint(u64::from(SET_TYPE_ID));
        self.out.varint(u64::from(SET_ITEM_START));
    }

    #[cold]
    fn unknown(&mut self, at: usize) {
        self.out.bytes(&unknown_bytes(self.arena, self.input, at));
    }
}

/// The unknown fields of a record, as they were and in order.
pub(super) fn unknown_bytes(arena: &Arena, input: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (word, number) in arena.unknown_nodes(at) {
        if number == 0 {
            bytes.extend_from_slice(arena.text(input, word));
        } else {
            put_varint(&mut bytes, u64::from(Tag::new(number, WireType::Varint).bits()));
            put_varint(&mut bytes, word);
        }
    }
    bytes
}

/// The length of the message in the record at `at`, without writing it.
pub(super) fn encoded_len(pool: &Pool, arena: &Arena, table: &Table, at: usize) -> usize {
    let unknown = arena.unknown_nodes(at).map(|(word, number)| match number {
        0 => Text(word).len(),
        _ => varint_len(u64::from(number) << 3) + varint_len(word),
    });
    let mut len: usize = unknown.sum();
    for (index, entry) in table.entries().iter().enumerate() {
        if !arena.is_present(at, index) {
            continue;
        }
        let word = arena.words[at + entry.slot as usize];
        let (start, count) = ((word >> 32) as usize, word as u32 as usize);
        let tag_len = usize::from(entry.tag_len);
        let value = |entry: &Entry, word| usize::from(entry.tag_len) + value_len(pool, arena, entry, word);
        len += match entry.op {
            Op::RepeatedMessage | Op::RepeatedBytes | Op::Repeated => {
                arena.words[start..start + count].iter().map(|&word| value(entry, word)).sum()
            }
            Op::Packed if count == 0 => 0,
            Op::Packed => {
                let words = arena.words[start..start + count].iter();
                let body: usize = words.map(|&word| value_len(pool, arena, entry, word)).sum();
                tag_len + varint_len(body as u64) + body
            }
            Op::Map => {
                let [key, inner] = pool.tables[entry.type_index as usize].entries() else { continue };
                let pairs = arena.words[start..start + 2 * count].as_chunks::<2>().0.iter();
                let bodies = pairs.map(|pair| value(key, pair[0]) + value(inner, pair[1]));
                bodies.map(|body| tag_len + varint_len(body as u64) + body).sum()
            }
            Op::Message if table.message_set => {
                4 + varint_len(u64::from(entry.number)) + value_len(pool, arena, entry, word)
            }
            Op::String | Op::Bytes if Text(word).len() == 0 && !entry.flags.has(Flags::EXPLICIT) => 0,
            _ if word == 0 && !entry.flags.has(Flags::EXPLICIT) => 0,
            _ => value(entry, word),
        };
    }
    len
}

/// The length of one value with the length before it, but without its tag.
fn value_len(pool: &Pool, arena: &Arena, entry: &Entry, word: u64) -> usize {
    match entry.element {
        Op::String | Op::Bytes => varint_len(Text(word).len() as u64) + Text(word).len(),
        Op::Message => {
            let len = encoded_len(pool, arena, &pool.tables[entry.type_index as usize], word as usize);
            varint_len(len as u64) + len
        }
        // The tag of the end is as long as that of the start.
        Op::Group => {
            let table = &pool.tables[entry.type_index as usize];
            encoded_len(pool, arena, table, word as usize) + usize::from(entry.tag_len)
        }
        Op::Fixed32 => 4,
        Op::Fixed64 => 8,
        Op::Sint32 | Op::Sint64 => varint_len(zigzag(word as i64)),
        _ => varint_len(word),
    }
}
