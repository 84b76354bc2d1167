//! Packed numbers, from words to bytes.
//!
//! Varints of mixed lengths make a branch on each length unpredictable. So a block of numbers is scanned first: its
//! largest number determines how many varints fit in a word of eight bytes, which is stored at once.

use super::{Output, end_varint, spread_halves, varint_word};
use crate::schema::table::Op;
use crate::wire::zigzag;

/// Numbers per block.
const BLOCK: usize = 64;

impl Output {
    /// Writes the packed numbers, without a tag and a length.
    #[must_use]
    pub(in crate::message) fn packed(&mut self, head: usize, element: Op, words: &[u64]) -> usize {
        match element {
            Op::Fixed32 => self.fixed(head, words, |word| (word as u32).to_le_bytes()),
            Op::Fixed64 => self.fixed(head, words, u64::to_le_bytes),
            Op::Sint32 | Op::Sint64 => self.varints(head, words, |word| zigzag(word as i64)),
            _ => self.varints(head, words, |word| word),
        }
    }

    /// Writes numbers of `N` bytes each.
    #[inline(always)]
    fn fixed<const N: usize>(&mut self, head: usize, words: &[u64], bytes: impl Fn(u64) -> [u8; N]) -> usize {
        let len = words.len() * N;
        let (free, head) = self.free(head, len);
        let chunks = free[head - len..].as_chunks_mut::<N>().0;
        chunks.iter_mut().zip(words).for_each(|(chunk, &word)| *chunk = bytes(word));
        head - len
    }

    #[inline(always)]
    fn varints(&mut self, mut head: usize, words: &[u64], convert: impl Fn(u64) -> u64) -> usize {
        for block in words.rchunks(BLOCK) {
            let bits = block.iter().fold(0, |bits, &word| bits | convert(word));
            head = if bits < 1 << 7 {
                self.fixed(head, block, |word| [convert(word) as u8])
            } else if bits < 1 << 14 {
                self.groups::<4>(head, block, &convert, |value| {
                    let more = u32::from(value > 0x7f);
                    (value & 0x7f | (value & 0x3f80) << 1 | u64::from(more << 7), 8 + 8 * more)
                })
            } else if bits < 1 << 28 {
                self.groups::<2>(head, block, &convert, |value| end_varint(spread_halves(value)))
            } else if bits < 1 << 56 {
                self.groups::<1>(head, block, &convert, varint_word)
            } else {
                block.iter().rev().fold(head, |head, &word| self.varint(head, convert(word)))
            };
        }
        head
    }

    /// Writes varints of which `N` fit in a word. `encode` returns a varint and its length in bits.
    #[inline(always)]
    fn groups<const N: usize>(
        &mut self,
        head: usize,
        words: &[u64],
        convert: impl Fn(u64) -> u64,
        encode: impl Fn(u64) -> (u64, u32),
    ) -> usize {
        let (free, head) = self.free(head, words.len() * 8 / N + 8);
        let mut put = |head: usize, group: &[u64]| {
            let (mut word, mut bits) = (0, 0);
            for &value in group {
                let (varint, len) = encode(convert(value));
                word |= varint << bits;
                bits += len;
            }
            if let Some(chunk) = free[..head].last_chunk_mut() {
                *chunk = (word << (64 - bits)).to_le_bytes();
            }
            head - bits as usize / 8
        };
        let (rest, groups) = words.as_rchunks::<N>();
        let head = groups.iter().rev().fold(head, |head, group| put(head, group));
        if rest.is_empty() { head } else { put(head, rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::put_varint;

    /// Packs numbers of up to `bits` bits, and compares with encoding one varint after the other.
    fn check(bits: u32, count: usize) {
        let mut number = u64::from(bits) << 32 | count as u64;
        let words: Vec<u64> = (0..count)
            .map(|_| {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (number.rotate_left(32) | 1 << 63) >> (64 - bits)
            })
            .collect();
        for element in [Op::Varint, Op::Sint64] {
            let (mut out, mut expected) = (Output::default(), Vec::new());
            for &word in &words {
                put_varint(&mut expected, if element == Op::Sint64 { zigzag(word as i64) } else { word });
            }
            let head = out.clear();
            let head = out.packed(head, element, &words);
            out.finish(head);
            assert_eq!(out.written(), expected, "{count} numbers of {bits} bits");
        }
    }

    #[test]
    fn packed_varints_of_all_lengths_are_encoded() {
        for bits in 1..=64 {
            for count in [1, 2, 3, 4, 5, 63, 64, 65, 200] {
                check(bits, count);
            }
        }
    }
}
