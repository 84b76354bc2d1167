//! Packed varints.
//!
//! Each varint starts where the previous one ends, and a processor that could decode several at once waits for that.
//! So a long array is read from two positions at once: its start, and its middle, which is found by counting.

use super::error::WireError;
use super::reader::Reader;
use super::varint::{NO_VARINT, VARINT_LEN_MAX, join_at, join_short, join_word, no_varint};

/// Shorter arrays are read only from start to end.
const HALVED_LEN_MIN: usize = 48;

/// Number of varints in a packed array, split into two parts.
pub(crate) struct Varints {
    /// Start of the second part, as an offset in the input.
    middle: usize,
    first: usize,
    second: usize,
}

impl Varints {
    /// Returns the number of varints.
    pub(crate) fn count(&self) -> usize {
        self.first + self.second
    }
}

impl Reader<'_> {
    /// Counts the varints up to the end: the last byte of each has its high bit clear.
    pub(crate) fn varints(&self) -> Varints {
        let rest = self.rest();
        let (_, half) = rest.split_at(rest.len() / 2);
        let end = half.iter().take(VARINT_LEN_MAX).position(|&byte| byte < 0x80);
        let len = match end {
            Some(end) if rest.len() >= HALVED_LEN_MIN => rest.len() - half.len() + end + 1,
            _ => 0,
        };
        let (first, second) = rest.split_at(len);
        Varints { middle: self.at + len, first: last_bytes(first), second: last_bytes(second) }
    }

    /// Reads the counted varints.
    ///
    /// # Panics
    ///
    /// Panics if `into` does not have exactly that length.
    pub(crate) fn read_varints(&mut self, row: &Varints, into: &mut [u64]) -> Result<(), WireError> {
        assert_eq!(into.len(), row.count(), "the row was counted");
        if row.count() == self.remaining() {
            // One byte each, as for flags and small numbers.
            into.iter_mut().zip(self.rest()).for_each(|(word, &byte)| *word = u64::from(byte));
            self.at += row.count();
            return Ok(());
        }
        let starts = (self.at, row.middle);
        let (first, second) = into.split_at_mut(row.first);
        // Mostly one or two bytes, for which there is a shorter algorithm.
        let is_short = self.remaining() <= 2 * row.count();
        let end = if is_short {
            both(self.bytes, starts, first, second, short_at)
        } else {
            both(self.bytes, starts, first, second, long_at)
        };
        match end {
            Some(end) => {
                self.at = end;
                Ok(())
            }
            None => Err(first_fault(self.bytes, self.at)),
        }
    }
}

/// Fills both slices in alternation, each from its offset. Returns the end of the second.
#[inline(always)]
fn both(
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
    (end != NO_VARINT).then_some((value, end))
}

/// Returns the error of the first invalid varint.
#[cold]
fn first_fault(bytes: &[u8], mut at: usize) -> WireError {
    while let Some((_, end)) = any_at(bytes, at) {
        at = end;
    }
    no_varint(bytes, at)
}

/// Counts the bytes with a clear high bit. Byte sums vectorise, and a byte can count 255.
fn last_bytes(bytes: &[u8]) -> usize {
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

    fn row_of(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &number in numbers {
            put_varint(&mut bytes, number);
        }
        bytes
    }

    fn read(bytes: &[u8], start: usize) -> Result<(Vec<u64>, usize), WireError> {
        let mut reader = Reader::within(bytes, start, bytes.len()).unwrap();
        let row = reader.varints();
        let mut numbers = vec![0; row.count()];
        reader.read_varints(&row, &mut numbers)?;
        Ok((numbers, reader.offset()))
    }

    #[test]
    fn rows_of_all_lengths_come_back() {
        for len in 1..=10 {
            for count in (0..70).chain([255, 256, 1000]) {
                let numbers = numbers(count, len);
                let mut bytes = vec![0xff; 3];
                bytes.extend(row_of(&numbers));
                assert_eq!(read(&bytes, 3), Ok((numbers, bytes.len())), "{count} of up to {len} bytes");
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_left() {
        let numbers = numbers(100, 4);
        let mut bytes = row_of(&numbers);
        let whole = bytes.len();
        bytes.extend([0x80; 3]);
        assert_eq!(read(&bytes, 0), Ok((numbers, whole)));
    }

    #[test]
    fn the_first_fault_is_the_one_that_is_told() {
        let overlong = [0xff; 11];
        let fault = |before: usize, between: usize| {
            let mut bytes = row_of(&numbers(before, 3));
            let at = bytes.len();
            for part in [&overlong[..], &row_of(&numbers(between, 3)), &overlong, &[1; 64]] {
                bytes.extend(part);
            }
            assert_eq!(read(&bytes, 0), Err(WireError { offset: at, kind: WireErrorKind::VarintTooLong }));
        };
        for before in [0, 1, 10, 100] {
            for between in [0, 1, 10, 100] {
                fault(before, between);
            }
        }
    }
}
