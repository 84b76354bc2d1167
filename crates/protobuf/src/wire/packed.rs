//! Packed varints.
//!
//! Each varint starts where the previous one ends, and a processor that could decode several at once waits for that.
//! So a long array is read from two positions at once: its start, and its middle, which is found by counting.

use super::error::WireError;
use super::reader::Reader;
use super::varint::{INVALID_VARINT, VARINT_LEN_MAX, join_at, join_short, join_word, varint_error};

/// Shorter arrays are read only from start to end.
const HALVED_LEN_MIN: usize = 48;

/// Number of varints in a packed array, split into two parts.
pub(crate) struct PackedVarints {
    /// Start of the second part, as an offset in the input.
    middle: usize,
    first: usize,
    second: usize,
}

impl PackedVarints {
    /// Returns the number of varints.
    pub(crate) fn count(&self) -> usize {
        self.first + self.second
    }
}

impl Reader<'_> {
    /// Counts the varints up to the end: the last byte of each has its high bit clear.
    pub(crate) fn count_varints(&self) -> PackedVarints {
        let rest = self.rest();
        let (_, half) = rest.split_at(rest.len() / 2);
        let end = half.iter().take(VARINT_LEN_MAX).position(|&byte| byte < 0x80);
        let len = match end {
            Some(end) if rest.len() >= HALVED_LEN_MIN => rest.len() - half.len() + end + 1,
            _ => 0,
        };
        let (first, second) = rest.split_at(len);
        PackedVarints {
            middle: self.at + len,
            first: count_last_bytes(first),
            second: count_last_bytes(second),
        }
    }

    /// Reads the counted varints.
    ///
    /// # Panics
    ///
    /// Panics if `into` does not have exactly that length.
    pub(crate) fn read_varints(&mut self, packed: &PackedVarints, into: &mut [u64]) -> Result<(), WireError> {
        assert_eq!(into.len(), packed.count(), "counted above");
        if packed.count() == self.remaining() {
            // One byte each, as for flags and small numbers.
            into.iter_mut().zip(self.rest()).for_each(|(word, &byte)| *word = u64::from(byte));
            self.at += packed.count();
            return Ok(());
        }
        let starts = (self.at, packed.middle);
        let (first, second) = into.split_at_mut(packed.first);
        // Mostly one or two bytes, for which there is a shorter algorithm.
        let is_short = self.remaining() <= 2 * packed.count();
        let end = if is_short {
            read_interleaved(self.bytes, starts, first, second, short_at)
        } else {
            read_interleaved(self.bytes, starts, first, second, long_at)
        };
        match end {
            Some(end) => {
                self.at = end;
                Ok(())
            }
            None => Err(first_error(self.bytes, self.at)),
        }
    }
}

/// Fills both slices in alternation, each from its offset. Returns the end of the second.
#[inline(always)]
fn read_interleaved(
    bytes: &[u8],
    (mut left, mut right): (usize, usize),
    first: &mut [u64],
    second: &mut [u64],
    varint_at: impl Fn(&[u8], usize) -> Option<(u64, usize)>,
) -> Option<usize> {
    let common = first.len().min(second.len());
    for (one, other) in first.iter_mut().zip(&mut *second) {
        (*one, left) = varint_at(bytes, left)?;
        (*other, right) = varint_at(bytes, right)?;
    }
    for one in &mut first[common..] {
        (*one, left) = varint_at(bytes, left)?;
    }
    for other in &mut second[common..] {
        (*other, right) = varint_at(bytes, right)?;
    }
    Some(right)
}

/// Reads the varint at `at`, usually of one or two bytes, and its end.
#[inline(always)]
fn short_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(&[low, high]) if low & high < 0x80 => {
            let (value, len) = join_short([low, high]);
            Some((value, at + len))
        }
        _ => any_at(bytes, at),
    }
}

/// Reads the varint at `at`, usually of up to eight bytes, and its end.
#[inline(always)]
fn long_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    match bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .and_then(|chunk| join_word(u64::from_le_bytes(*chunk)))
    {
        Some((value, len)) => Some((value, at + len)),
        None => any_at(bytes, at),
    }
}

#[inline(always)]
fn any_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, end) = join_at(bytes, at);
    (end != INVALID_VARINT).then_some((value, end))
}

/// Returns the error of the first invalid varint.
#[cold]
fn first_error(bytes: &[u8], mut at: usize) -> WireError {
    while let Some((_, end)) = any_at(bytes, at) {
        at = end;
    }
    varint_error(bytes, at)
}

/// Counts the bytes with a clear high bit. Byte sums vectorise, and a byte can count 255.
fn count_last_bytes(bytes: &[u8]) -> usize {
    let sum = |part: &[u8]| part.iter().fold(0, |sum: u8, byte| sum + (byte >> 7 ^ 1));
    bytes.chunks(255).map(|part| usize::from(sum(part))).sum()
}

#[cfg(test)]
mod tests {
    use super::super::error::WireErrorKind;
    use super::super::varint::put_varint;
    use super::*;

    /// Returns numbers whose varints have up to `len` bytes, unordered.
    fn numbers(count: usize, len: u32) -> Vec<u64> {
        let mixed = |index: usize| (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..count).map(|index| mixed(index) >> (64 - (7 * (1 + index as u32 * 7 % len)).min(64))).collect()
    }

    fn packed_bytes(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &number in numbers {
            put_varint(&mut bytes, number);
        }
        bytes
    }

    fn read(bytes: &[u8], start: usize) -> Result<(Vec<u64>, usize), WireError> {
        let mut reader = Reader::within(bytes, start, bytes.len()).unwrap();
        let packed = reader.count_varints();
        let mut numbers = vec![0; packed.count()];
        reader.read_varints(&packed, &mut numbers)?;
        Ok((numbers, reader.offset()))
    }

    #[test]
    fn packed_varints_of_all_lengths_round_trip() {
        for len in 1..=10 {
            for count in (0..70).chain([255, 256, 1000]) {
                let numbers = numbers(count, len);
                let mut bytes = vec![0xff; 3];
                bytes.extend(packed_bytes(&numbers));
                assert_eq!(read(&bytes, 3), Ok((numbers, bytes.len())), "{count} of up to {len} bytes");
            }
        }
    }

    #[test]
    fn incomplete_last_varint_is_not_counted() {
        let numbers = numbers(100, 4);
        let mut bytes = packed_bytes(&numbers);
        let complete_len = bytes.len();
        bytes.extend([0x80; 3]);
        assert_eq!(read(&bytes, 0), Ok((numbers, complete_len)));
    }

    #[test]
    fn first_invalid_varint_is_reported() {
        let overlong = [0xff; 11];
        let check = |before: usize, between: usize| {
            let mut bytes = packed_bytes(&numbers(before, 3));
            let at = bytes.len();
            for part in [&overlong[..], &packed_bytes(&numbers(between, 3)), &overlong, &[1; 64]] {
                bytes.extend(part);
            }
            assert_eq!(read(&bytes, 0), Err(WireError { offset: at, kind: WireErrorKind::VarintTooLong }));
        };
        for before in [0, 1, 10, 100] {
            for between in [0, 1, 10, 100] {
                check(before, between);
            }
        }
    }
}
