//! Encodes records to bytes, from the end to the start.
//!
//! A length prefix precedes its content. Writing backwards, the length is known when it is needed. Each field is
//! visited once, and no sizes are precomputed.

use super::arena::{Arena, ByteRange};
use super::output::{BLOCK, Output};
use crate::schema::pool::Pool;
use crate::schema::table::{Entry, Flags, Op, Table};
use crate::wire::{Tag, WireType, message_set, put_varint, varint_len, zigzag};

/// Writes messages of one arena. Every method takes the output's head, writes in front of it and returns the new head.
pub(super) struct Encoding<'e> {
    pub(super) pool: &'e Pool,
    pub(super) arena: &'e Arena,
    pub(super) input: &'e [u8],
    /// Owned while encoding, so that the compiler knows that the buffer is not aliased.
    pub(super) out: Output,
}

impl<'e> Encoding<'e> {
    /// Writes the message in the record at `at`.
    #[must_use]
    pub(super) fn message(&mut self, mut head: usize, table: &Table, at: usize) -> usize {
        let record = &self.arena.words[at..at + table.record_words as usize];
        if record[0] != 0 {
            head = self.unknown(head, at);
        }
        for word in (0..table.presence_words as usize).rev() {
            head = self.fields(head, table, record, word);
        }
        head
    }

    /// Writes the fields of one presence word.
    #[inline(always)]
    fn fields(&mut self, mut head: usize, table: &Table, record: &[u64], word: usize) -> usize {
        let entries = &table.entries()[word * 64..];
        let mut bits = record[1 + word];
        while bits != 0 {
            let bit = bits.ilog2();
            bits ^= 1 << bit;
            let entry = &entries[bit as usize];
            head = self.field(head, table, entry, record[entry.slot as usize]);
        }
        head
    }

    #[inline(always)]
    fn field(&mut self, head: usize, table: &Table, entry: &Entry, word: u64) -> usize {
        match entry.op {
            Op::String | Op::Bytes => self.text(head, entry, word),
            Op::RepeatedBytes => self.texts(head, entry, word),
            Op::RepeatedMessage => self.messages(head, entry, word),
            Op::Repeated => self.repeated(head, entry, word),
            Op::Packed => self.packed(head, entry, word),
            Op::Map => self.map(head, entry, word),
            Op::Message if table.message_set => self.message_set_item(head, entry, word),
            Op::Message => self.nested(head, entry, word),
            // A field without presence is skipped if it has its default value.
            _ if word == 0 && !entry.flags.has(Flags::EXPLICIT) => head,
            op => self.number(head, entry, op, word),
        }
    }

    /// Returns the words of a list.
    #[inline(always)]
    fn list(&self, word: u64) -> &'e [u64] {
        let (start, len) = ((word >> 32) as usize, word as u32 as usize);
        &self.arena.words[start..start + len]
    }

    /// Writes a tag and one value.
    #[inline(always)]
    fn value(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        match entry.element {
            Op::String | Op::Bytes if ByteRange(word).len() == 0 => self.out.varint_field(head, entry, 0),
            Op::String | Op::Bytes => self.text(head, entry, word),
            Op::Message => self.nested(head, entry, word),
            op => self.number(head, entry, op, word),
        }
    }

    /// Writes a tag and one value that is neither text nor a message.
    #[inline(always)]
    fn number(&mut self, head: usize, entry: &Entry, op: Op, word: u64) -> usize {
        match op {
            Op::Fixed32 => self.out.fixed32(head, entry, word as u32),
            Op::Fixed64 => self.out.fixed64(head, entry, word),
            Op::Sint32 | Op::Sint64 => self.out.varint_field(head, entry, zigzag(word as i64)),
            Op::Group => self.group(head, entry, word),
            _ => self.out.varint_field(head, entry, word),
        }
    }

    /// Writes a text. Short, non-empty text from the input, the usual case, is copied as a whole block that includes
    /// preceding bytes.
    #[inline(always)]
    fn text(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        let low = word as u32 as usize;
        let end = (word >> 32) as usize + low;
        if low.wrapping_sub(1) < BLOCK
            && let Some(block) = self.input.get(..end).and_then(<[u8]>::last_chunk)
        {
            return self.out.block(head, entry, block, low);
        }
        self.long_text(head, entry, word)
    }

    #[inline(never)]
    fn long_text(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        let text = self.arena.text(self.input, word);
        if text.is_empty() && !entry.flags.has(Flags::EXPLICIT) {
            return head;
        }
        let head = self.out.bytes(head, text);
        self.out.varint_field(head, entry, text.len() as u64)
    }

    #[inline(never)]
    fn texts(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        self.list(word).iter().rev().fold(head, |head, &word| match ByteRange(word).len() {
            0 => self.out.varint_field(head, entry, 0),
            _ => self.text(head, entry, word),
        })
    }

    #[inline(always)]
    fn nested(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        let before = self.out.len(head);
        let head = self.message(head, &self.pool.tables[entry.type_index as usize], word as usize);
        self.out.varint_field(head, entry, (self.out.len(head) - before) as u64)
    }

    #[inline(never)]
    fn messages(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        self.list(word).iter().rev().fold(head, |head, &word| self.nested(head, entry, word))
    }

    #[inline(never)]
    fn repeated(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        self.list(word).iter().rev().fold(head, |head, &word| self.value(head, entry, word))
    }

    #[inline(never)]
    fn group(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        let end = Tag::new(entry.number, WireType::EndGroup);
        let head = self.out.varint(head, u64::from(end.bits()));
        let head = self.message(head, &self.pool.tables[entry.type_index as usize], word as usize);
        self.out.tag(head, entry)
    }

    #[inline(never)]
    fn packed(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        let words = self.list(word);
        if words.is_empty() {
            return head;
        }
        let before = self.out.len(head);
        let head = self.out.packed(head, entry.element, words);
        self.out.varint_field(head, entry, (self.out.len(head) - before) as u64)
    }

    #[inline(never)]
    fn map(&mut self, mut head: usize, entry: &Entry, word: u64) -> usize {
        let (start, len) = ((word >> 32) as usize, word as u32 as usize);
        let [key, value] = self.pool.tables[entry.type_index as usize].entries() else { return head };
        for pair in self.arena.words[start..start + 2 * len].as_chunks::<2>().0.iter().rev() {
            let before = self.out.len(head);
            head = self.value(head, value, pair[1]);
            head = self.value(head, key, pair[0]);
            head = self.out.varint_field(head, entry, (self.out.len(head) - before) as u64);
        }
        head
    }

    #[inline(never)]
    fn message_set_item(&mut self, head: usize, entry: &Entry, word: u64) -> usize {
        let head = self.out.varint(head, u64::from(message_set::ITEM_END));
        let before = self.out.len(head);
        let mut head = self.message(head, &self.pool.tables[entry.type_index as usize], word as usize);
        let len = (self.out.len(head) - before) as u64;
        for number in [
            len,
            message_set::MESSAGE.into(),
            entry.number.into(),
            message_set::TYPE_ID.into(),
            message_set::ITEM.into(),
        ] {
            head = self.out.varint(head, number);
        }
        head
    }

    #[cold]
    #[inline(never)]
    fn unknown(&mut self, head: usize, at: usize) -> usize {
        self.out.bytes(head, &unknown_bytes(self.arena, self.input, at))
    }
}

/// Returns the unknown fields of a record, verbatim and in order.
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

/// Returns the encoded length of the message in the record at `at`, without encoding it.
pub(super) fn encoded_len(pool: &Pool, arena: &Arena, table: &Table, at: usize) -> usize {
    let unknown = arena.unknown_nodes(at).map(|(word, number)| match number {
        0 => ByteRange(word).len(),
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
            Op::String | Op::Bytes if ByteRange(word).len() == 0 && !entry.flags.has(Flags::EXPLICIT) => 0,
            _ if word == 0 && !entry.flags.has(Flags::EXPLICIT) => 0,
            _ => value(entry, word),
        };
    }
    len
}

/// Returns the length of one value with its length prefix, but without its tag.
fn value_len(pool: &Pool, arena: &Arena, entry: &Entry, word: u64) -> usize {
    match entry.element {
        Op::String | Op::Bytes => varint_len(ByteRange(word).len() as u64) + ByteRange(word).len(),
        Op::Message => {
            let len = encoded_len(pool, arena, &pool.tables[entry.type_index as usize], word as usize);
            varint_len(len as u64) + len
        }
        // The end tag is as long as the start tag.
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
