//! The encoder's output: a buffer that is filled from its end to its start.
//!
//! Each write takes the *head*, the offset where the written bytes start, and returns the new one, so it stays in a
//! register.

mod packed;

use crate::schema::table::Entry;
use crate::wire::varint_len;

/// The written bytes: the end of a buffer that grows at its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
    /// Offset of the first written byte.
    head: usize,
}

/// Initial size of the buffer, in bytes.
const BUFFER_LEN_MIN: usize = 256;

/// Size of the window in front of the head. A field is stored there in whole words and blocks of which only the last
/// bytes count. The next write overwrites the bytes before them.
const WINDOW: usize = 48;

/// Text up to this length is copied as a block of this size: a fixed length needs no branch and no call.
pub(super) const BLOCK: usize = 32;

impl Output {
    /// Clears it, keeping its memory, and returns the head.
    pub(super) fn clear(&mut self) -> usize {
        self.head = self.buffer.len();
        self.head
    }

    /// Stores the head after the last write.
    pub(super) fn finish(&mut self, head: usize) {
        self.head = head;
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.buffer[self.head..]
    }

    /// Returns the number of bytes written.
    #[inline(always)]
    pub(super) fn len(&self, head: usize) -> usize {
        self.buffer.len() - head
    }

    /// Returns the free space in front of the head, at least `len` bytes, and the head, which may have moved.
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
        (free.last_chunk_mut().expect("enough space is reserved"), head)
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

    /// Writes a tag, and a varint after it.
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

    /// Writes a tag, a length and the last `len` bytes of the block, at most [`BLOCK`].
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

/// Stores a word that ends `behind` bytes before the window's end.
#[inline(always)]
fn put_word(window: &mut [u8; WINDOW], behind: usize, word: [u8; 8]) {
    let end = WINDOW - behind;
    window[end - 8..end].copy_from_slice(&word);
}

/// Stores a varint at the window's end and returns its length.
#[inline(always)]
fn put_varint(window: &mut [u8; WINDOW], value: u64) -> usize {
    if value < 1 << 56 {
        let (word, bits) = varint_word(value);
        put_word(window, 0, (word << (64 - bits)).to_le_bytes());
        return bits as usize / 8;
    }
    // Nine or ten bytes: eight full ones, then the rest.
    let (full, rest) = (spread(value & ((1 << 56) - 1)) | HIGH_BITS, value >> 56);
    let len = varint_len(value).min(10);
    window[WINDOW - 2] = rest as u8 | 0x80;
    window[WINDOW - 1] = if len == 9 { rest as u8 } else { (rest >> 7) as u8 };
    put_word(window, len - 8, full.to_le_bytes());
    len
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Returns the varint of a number below 2^56, and its length in bits.
#[inline(always)]
fn varint_word(value: u64) -> (u64, u32) {
    end_varint(spread(value))
}

/// Sets the continuation bits in a word of 7-bit groups. Returns the word and its length in bits.
#[inline(always)]
fn end_varint(word: u64) -> (u64, u32) {
    let last = (word | 1).ilog2() & 0x38;
    (word | HIGH_BITS & ((1 << last) - 1), last + 8)
}

/// Spreads a 56-bit number into seven bits per byte.
#[inline(always)]
fn spread(bits: u64) -> u64 {
    spread_halves(bits & 0x0fff_ffff | (bits & 0x00ff_ffff_f000_0000) << 4)
}

/// Spreads the 28 bits of each half into seven bits per byte.
#[inline(always)]
fn spread_halves(bits: u64) -> u64 {
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x0fff_c000_0fff_c000) << 2;
    bits & 0x007f_007f_007f_007f | (bits & 0x3f80_3f80_3f80_3f80) << 1
}
