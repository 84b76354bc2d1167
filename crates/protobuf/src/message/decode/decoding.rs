//! Decoder state: reads values that need no memory, and allocates memory for all others.

use crate::message::arena::Arena;
use crate::message::limits::{BoxedDecodeError, DecodeError};
use crate::schema::number::read_number;
use crate::schema::pool::Pool;
use crate::schema::table::{Entry, Op, Table};
use crate::wire::Reader;

/// Decoder state for one message.
pub(super) struct Decoding<'d> {
    pub(super) values: Values<'d>,
    pub(super) arena: &'d mut Arena,
    pub(super) words_max: usize,
    /// Words allowed for this input alone.
    pub(super) allowed: usize,
}

/// Reads values that need no memory.
#[derive(Clone, Copy)]
pub(super) struct Values<'d> {
    pub(super) pool: &'d Pool,
    /// Added to each text word: the offset of the input and the owner bit.
    pub(super) base: u64,
}

impl Values<'_> {
    /// Reads one value into slot form; not for messages and closed enums.
    #[inline(always)]
    pub(super) fn read(
        self,
        reader: &mut Reader<'_>,
        op: Op,
        entry: &Entry,
    ) -> Result<u64, BoxedDecodeError> {
        Ok(match op {
            _ if op < Op::Bytes => read_number(op, reader)?,
            Op::String => {
                let text = reader.nested()?;
                if !is_utf8(text.rest()) {
                    return Err(not_utf8(self.pool, text.offset(), entry));
                }
                self.text(&text)
            }
            _ => self.text(&reader.nested()?),
        })
    }

    /// Returns the text word for the remaining bytes of `reader`.
    #[inline(always)]
    pub(super) fn text(self, reader: &Reader<'_>) -> u64 {
        self.base + ((reader.offset() as u64) << 32) + reader.remaining() as u64
    }
}

#[cold]
#[expect(clippy::unnecessary_box_returns, reason = "the error is boxed from the start")]
fn not_utf8(pool: &Pool, offset: usize, entry: &Entry) -> BoxedDecodeError {
    let field = pool.full_name(pool.field(entry));
    Box::new(DecodeError::Utf8 { offset, field })
}

impl Decoding<'_> {
    #[inline(always)]
    pub(super) fn new_record(
        &mut self,
        reader: &Reader<'_>,
        table: &Table,
    ) -> Result<usize, BoxedDecodeError> {
        self.check_memory(reader, table.record_words as usize)?;
        Ok(self.arena.new_record(table))
    }

    /// Fails if `words` more words exceed the limit. Called before they are allocated.
    #[inline(always)]
    pub(super) fn check_memory(&self, reader: &Reader<'_>, words: usize) -> Result<(), BoxedDecodeError> {
        if self.arena.top + words > self.words_max { Err(self.memory_error(reader)) } else { Ok(()) }
    }

    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "the error is boxed from the start")]
    fn memory_error(&self, reader: &Reader<'_>) -> BoxedDecodeError {
        Box::new(DecodeError::Memory { offset: reader.offset(), max: self.allowed * 8 })
    }

    /// Appends to a list, whose memory grows with the input received.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        reader: &Reader<'_>,
        slot: usize,
        word: u64,
    ) -> Result<(), BoxedDecodeError> {
        self.arena.push(slot, word);
        // Checking afterwards is enough: the list grows by at most a constant factor.
        self.check_memory(reader, 0)
    }

    /// Reads a value of a closed enum. Returns `None` for an unknown number.
    pub(super) fn closed_enum(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &Entry,
    ) -> Result<Option<u64>, BoxedDecodeError> {
        let word = read_number(Op::ClosedEnum, reader)?;
        let known = self.values.pool.enums[entry.type_index as usize].value(word as i32).is_some();
        Ok(known.then_some(word))
    }

    /// Keeps the bytes from `start` to the reader's position as an unknown field.
    pub(super) fn unknown(&mut self, reader: &Reader<'_>, at: usize, start: usize) {
        let word = self.values.base + ((start as u64) << 32) + (reader.offset() - start) as u64;
        self.arena.add_unknown(at, word, 0);
    }
}

/// Most text is short ASCII: overlapping words are tested inline, without a call.
#[inline(always)]
fn is_utf8(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let high = if let Some((first, last)) = ends::<8>(bytes) {
        let ends = u64::from_le_bytes(*first) | u64::from_le_bytes(*last);
        let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        if bytes.len() <= 16 { ends } else { words.fold(ends, |bits, word| bits | word) }
    } else if let Some((first, last)) = ends::<4>(bytes) {
        u64::from(u32::from_le_bytes(*first) | u32::from_le_bytes(*last))
    } else if let Some(([first], [last])) = ends::<1>(bytes) {
        // At most three bytes.
        u64::from(first | bytes[bytes.len() / 2] | last)
    } else {
        0
    };
    high & HIGH == 0 || std::str::from_utf8(bytes).is_ok()
}

/// Returns the first and the last `N` bytes, which may overlap.
#[inline(always)]
fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    bytes.first_chunk().zip(bytes.last_chunk())
}

#[cfg(test)]
mod tests {
    use super::is_utf8;

    #[test]
    fn utf8_check_covers_every_byte() {
        for len in 0..100 {
            let plain = vec![b'a'; len];
            assert!(is_utf8(&plain));
            for at in 0..len {
                let mut bytes = plain.clone();
                bytes[at] = 0xe9;
                assert!(!is_utf8(&bytes), "{at} of {len}");
                if at + 1 < len {
                    bytes[at..at + 2].copy_from_slice("é".as_bytes());
                    assert!(is_utf8(&bytes), "{at} of {len}");
                }
            }
        }
    }
}
