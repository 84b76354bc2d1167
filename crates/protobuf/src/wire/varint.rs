//! Varints: seven bits per byte, lowest first; the eighth bit is set if more bytes follow.

use super::error::{WireError, WireErrorKind};
use super::tag::Tag;

/// Maximum length of a varint, which holds 64 bits, in bytes.
pub const VARINT_LEN_MAX: usize = 10;

/// Returns the length of the varint of `value`, from 1 to 10 bytes.
#[inline(always)]
pub const fn varint_len(value: u64) -> usize {
    // Seven bits per byte: 9/64 is slightly less than 1/7, and exact for all of 1..=64 bits.
    ((64 - (value | 1).leading_zeros() as usize) * 9 + 64) / 64
}

/// Appends `value` as a varint.
#[inline(always)]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        put_varint_long(out, value);
    }
}

#[inline]
fn put_varint_long(out: &mut Vec<u8>, mut value: u64) {
    let (mut bytes, mut len) = ([0; VARINT_LEN_MAX], 0);
    while value >= 0x80 && len < VARINT_LEN_MAX - 1 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    // A copy of known length allocates at most once.
    let end = out.len() + len + 1;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// Appends a tag.
#[inline]
pub fn put_tag(out: &mut Vec<u8>, tag: Tag) {
    put_varint(out, u64::from(tag.bits()));
}

/// Encodes `sint32` and `sint64` for the wire: 0, -1, 1, -2, … become 0, 1, 2, 3, …
#[inline(always)]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline(always)]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// End offset that indicates an invalid varint.
pub(super) const INVALID_VARINT: usize = usize::MAX;

/// Returns the varint at `at` and its end, or [`INVALID_VARINT`]. Passes words by value, so that the reader need not be
/// in memory.
#[inline(never)]
pub(super) fn join_at(bytes: &[u8], at: usize) -> (u64, usize) {
    let rest = &bytes[at..];
    let word = match (rest.first_chunk(), bytes.last_chunk()) {
        (Some(chunk), _) => u64::from_le_bytes(*chunk),
        // Near the end of the input: use its last word, without the bytes already read.
        (None, Some(chunk)) => {
            u64::from_le_bytes(*chunk).checked_shr(64 - 8 * rest.len() as u32).unwrap_or(0)
        }
        (None, None) => u64::MAX,
    };
    match join_word(word) {
        Some((value, len)) if len <= rest.len() => (value, at + len),
        // Nine or ten bytes, usually a negative number.
        _ => join(rest).map_or((0, INVALID_VARINT), |(value, len)| (value, at + len)),
    }
}

/// Returns the error of an invalid varint.
#[cold]
pub(super) fn varint_error(bytes: &[u8], at: usize) -> WireError {
    let kind = join(&bytes[at..]).err().unwrap_or(WireErrorKind::Truncated);
    WireError { offset: at, kind }
}

/// Returns the varint in the low bytes of `word` and its length, or `None` if it is longer.
#[inline(always)]
pub(super) fn join_word(word: u64) -> Option<(u64, usize)> {
    // The high bit of each byte that ends a varint.
    let stops = !word & 0x8080_8080_8080_8080;
    if stops == 0 {
        return None;
    }
    let len = (stops.trailing_zeros() as usize + 1) / 8;
    // Keep the bytes up to the lowest such bit, then join their 7-bit groups in steps of two, four and eight bytes.
    let bits = word & (stops ^ (stops - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let bits = bits & 0x007f_007f_007f_007f | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x3fff_0000_3fff_0000) >> 2;
    Some((bits & 0x0fff_ffff | (bits & 0x0fff_ffff_0000_0000) >> 4, len))
}

/// Returns the varint of one or two bytes at the start of `bytes`, and its length. Branchless, because mixed lengths
/// are mispredicted.
#[inline(always)]
pub(crate) fn join_short([low, high]: [u8; 2]) -> (u64, usize) {
    let more = low >> 7;
    let high = high & 0u8.wrapping_sub(more);
    (u64::from(low & 0x7f) | u64::from(high) << 7, 1 + usize::from(more))
}

/// Returns the varint at the start of `bytes`, and its length.
#[cold]
fn join(bytes: &[u8]) -> Result<(u64, usize), WireErrorKind> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(VARINT_LEN_MAX) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            // Nine bytes hold 63 bits; the tenth adds one.
            return if index == VARINT_LEN_MAX - 1 && byte > 1 {
                Err(WireErrorKind::VarintTooLong)
            } else {
                Ok((value, index + 1))
            };
        }
    }
    Err(if bytes.len() < VARINT_LEN_MAX { WireErrorKind::Truncated } else { WireErrorKind::VarintTooLong })
}
