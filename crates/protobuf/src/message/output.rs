//! What encoding writes to: a buffer that is filled from its end to its start.
//!
//! Whoever writes holds the place where what is written begins, the *head*, and gets the next one back: it stays in a
//! register.

mod packed;

use crate::schema::table::Entry;
use crate::wire::varint_len;

/// What is written: the end of a buffer, which grows at its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
    /// Where what is written begins.
    head: usize,
}

/// The first buffer, in bytes.
const BUFFER_LEN_MIN: usize = 256;

/// Bytes in front of the head. A field is put there in words and blocks, of which the last bytes count: what lies
/// before them is overwritten by what comes next.
const WINDOW: usize = 48;

/// Text up to this is copied as a block of so many bytes, however long it is: no length to be guessed, no call.
pub(super) const BLOCK: usize = 32;

impl Output {
    /// Empty, with the memory that it has; gives the head.
    pub(super) fn clear(&mut self) -> usize {
        self.head = self.buffer.len();
        self.head
    }

    /// All is written.
    pub(super) fn finish(&mut self, head: usize) {
        self.head = head;
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.buffer[self.head..]
    }

    /// What is written, in bytes.
    #[inline(always)]
    pub(super) fn len(&self, head: usize) -> usize {
        self.buffer.len() - head
    }

    /// Everything in front of the head, `len` bytes at least; and the head, which may be another.
    #[inline(always)]
    pub(super) fn free(&mut self, mut head: usize, len: usize) -> (&mut [u8], usize) {
        if head < len {
            head = self.grow(head, len);
        }
        (&mut self.buffer[..head], head)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, head: usize, len: usize) -> usize {
        let old_len = self.buffer.len();
        let more = old_len.max(len).max(BUFFER_LEN_MIN);
        self.buffer.resize(old_len + more, 0);
        self.buffer.copy_within(head..old_len, head + more);
        head + more
    }

    #[inline(always)]
    fn window(&mut self, head: usize) -> (&mut [u8; WINDOW], usize) {
        let (free, head) = self.free(head, WINDOW);
        (free.last_chunk_mut().expect("so many are free"), head)
    }

    #[must_use]
    pub(super) fn bytes(&mut self, head: usize, bytes: &[u8]) -> usize {
        let (free, head) = self.free(head, bytes.len());
        free[head - bytes.len()..].copy_from_slice(bytes);
        head - bytes.len()
    }

    #[must_use]
    pub(super) fn varint(&mut self, head: usize, value: u64) -> usize {
        let (window, head) = self.window(head);
        head - put_varint(window, value)
    }

    #[must_use]
    pub(super) fn tag(&mut self, head: usize, entry: &Entry) -> usize {
        let (window, head) = self.window(head);
        put_word(window, 0, entry.tag_ending);
        head - usize::from(entry.tag_len)
    }

    /// A tag, and a varint behind it.
    #[inline(always)]
    #[must_use]
    pub(super) fn varint_field(&mut self, head: usize, entry: &Entry, value: u64) -> usize {
        if value >= 0x80 {
            return self.varint_field_long(head, entry, value);
        }
        let (window, head) = self.window(head);
        window[WINDOW - 1] = value as u8;
        put_word(window, 1, entry.tag_ending);
        head - 1 - usize::from(entry.tag_len)
    }

    #[inline(never)]
    fn varint_field_long(&mut self, head: usize, entry: &Entry, value: u64) -> usize {
        let (window, head) = self.window(head);
        let len = if value < 1 << 14 {
            window[WINDOW - 2..].copy_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
            2
        } else {
            put_varint(window, value)
        };
        put_word(window, len, entry.tag_ending);
        head - len - usize::from(entry.tag_len)
    }

    #[inline(always)]
    #[must_use]
    pub(super) fn fixed32(&mut self, head: usize, entry: &Entry, value: u32) -> usize {
        let (window, head) = self.window(head);
        put_word(window, 0, (u64::from(value) << 32).to_le_bytes());
        put_word(window, 4, entry.tag_ending);
        head - 4 - usize::from(entry.tag_len)
    }

    #[inline(always)]
    #[must_use]
    pub(super) fn fixed64(&mut self, head: usize, entry: &Entry, value: u64) -> usize {
        let (window, head) = self.window(head);
        put_word(window, 0, value.to_le_bytes());
        put_word(window, 8, entry.tag_ending);
        head - 8 - usize::from(entry.tag_len)
    }

    /// A tag, a length, and text: the last `len` bytes of the block, which are not more than it has.
    #[inline(always)]
    #[must_use]
    pub(super) fn block(&mut self, head: usize, entry: &Entry, block: &[u8; BLOCK], len: usize) -> usize {
        let (window, head) = self.window(head);
        let len = len.min(BLOCK);
        window[WINDOW - BLOCK..].copy_from_slice(block);
        window[WINDOW - 1 - len] = len as u8;
        put_word(window, len + 1, entry.tag_ending);
        head - len - 1 - usize::from(entry.tag_len)
    }
}

/// A word that ends `behind` bytes before the window's end.
#[inline(always)]
fn put_word(window: &mut [u8; WINDOW], behind: usize, word: [u8; 8]) {
    let end = WINDOW - behind;
    window[end - 8..end].copy_from_slice(&word);
}

/// A varint at the window's end; gives its length.
#[inline(always)]
fn put_varint(window: &mut [u8; WINDOW], value: u64) -> usize {
    if value < 1 << 56 {
        let (word, bits) = varint_word(value);
        put_word(window, 0, (word << (64 - bits)).to_le_bytes());
        return bits as usize / 8;
    }
    // Nine or ten bytes: eight full ones, behind those the rest.
    let (full, rest) = (spread(value & ((1 << 56) - 1)) | HIGH_BITS, value >> 56);
    let len = varint_len(value).min(10);
    window[WINDOW - 2] = rest as u8 | 0x80;
    window[WINDOW - 1] = if len == 9 { rest as u8 } else { (rest >> 7) as u8 };
    put_word(window, len - 8, full.to_le_bytes());
    len
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The varint of a number below 2^56, and its length in bits.
#[inline(always)]
fn varint_word(value: u64) -> (u64, u32) {
    end_varint(spread(value))
}

/// Sets the bits that say that a varint goes on, in a word with seven bits in each byte; gives its length in bits
/// beside it.
#[inline(always)]
fn end_varint(word: u64) -> (u64, u32) {
    let last = (word | 1).ilog2() & 0x38;
    (word | HIGH_BITS & ((1 << last) - 1), last + 8)
}

/// Seven bits in each byte, of a number of 56.
#[inline(always)]
fn spread(bits: u64) -> u64 {
    spread_halves(bits & 0x0fff_ffff | (bits & 0x00ff_ffff_f000_0000) << 4)
}

/// The same of 28 bits in each half.
#[inline(always)]
fn spread_halves(bits: u64) -> u64 {
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x0fff_c000_0fff_c000) << 2;
    bits & 0x007f_007f_007f_007f | (bits & 0x3f80_3f80_3f80_3f80) << 1
}
