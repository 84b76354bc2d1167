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
        copy(&mut self.buffer[self.at..self.at + bytes.len()], bytes);
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

    /// All bytes at once: a word of which the last ones count, and that ends where what is written begins. What lies before
    /// them is overwritten by what comes next.
    #[inline(always)]
    fn varint_long(&mut self, value: u64) {
        let len = varint_len(value);
        let Some(place) = self.buffer[..self.at].last_chunk_mut::<8>() else { return };
        if len <= 8 {
            let more = 0x8080_8080_8080_8080 & ((1 << (8 * (len - 1))) - 1);
            *place = ((spread(value) | more) << (64 - 8 * len)).to_le_bytes();
        } else {
            // Nine or ten bytes: eight full ones, behind those the rest.
            let rest = value >> 56;
            let last = self.at - 1;
            if len == 9 {
                self.buffer[last] = rest as u8;
            } else {
                self.buffer[last] = (rest >> 7) as u8;
                self.buffer[last - 1] = rest as u8 | 0x80;
            }
            let full = spread(value & ((1 << 56) - 1)) | 0x8080_8080_8080_8080;
            let start = self.at - len;
            if let Some(place) = self.buffer[start..].first_chunk_mut::<8>() {
                *place = full.to_le_bytes();
            }
        }
        self.at -= len;
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

/// Seven bits in each byte, of a number of 56.
#[inline(always)]
fn spread(bits: u64) -> u64 {
    let bits = bits & 0x0fff_ffff | (bits & 0x00ff_ffff_f000_0000) << 4;
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x0fff_c000_0fff_c000) << 2;
    bits & 0x007f_007f_007f_007f | (bits & 0x3f80_3f80_3f80_3f80) << 1
}

/// Copies as many bytes as both have. Most texts are short: two chunks that may overlap are quicker than a call.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    fn chunks<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        *to.first_chunk_mut::<N>()? = *from.first_chunk::<N>()?;
        *to.last_chunk_mut::<N>()? = *from.last_chunk::<N>()?;
        Some(())
    }
    let copied = match from.len() {
        16..=32 => chunks::<16>(to, from),
        8..=15 => chunks::<8>(to, from),
        4..=7 => chunks::<4>(to, from),
        _ => None,
    };
    if copied.is_none() {
        to.copy_from_slice(from);
    }
}

/// Writes messages of one arena.
pub(super) struct Encoding<'e> {
    pub(super) pool: &'e Pool,
    pub(super) arena: &'e Arena,
    pub(super) input: &'e [u8],
    /// Owned while encoding: the compiler then knows that nothing but itself changes where the buffer is.
    pub(super) out: Output,
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
