//! Packed numbers, from bytes to words.
//!
//! They are read in blocks, so that each kind has a loop that only reads and the sink one that only writes. These
//! loops are separate functions: in a larger one their invariants do not stay in registers.

use crate::schema::number::convert_packed;
use crate::schema::table::Op;
use crate::wire::{Reader, WireError, WireErrorKind, join_short};

/// Numbers per block. A number has at least one byte, so this is also a look-ahead in bytes.
const BLOCK: usize = 64;

/// Passes packed numbers in slot form to `found`, in non-empty batches. On a read error, numbers before it may not
/// have been passed.
pub(super) fn read(op: Op, mut packed: Reader<'_>, mut found: impl FnMut(&[u64])) -> Result<(), WireError> {
    let mut words = [0; BLOCK];
    while !packed.is_empty() {
        let count = match op {
            Op::Fixed64 => fixed(&mut packed, &mut words, u64::from_le_bytes),
            Op::Fixed32 => fixed(&mut packed, &mut words, |bytes| u32::from_le_bytes(bytes).into()),
            _ => varints(&mut packed, &mut words),
        }?;
        convert_packed(op, &mut words[..count]);
        found(&words[..count]);
    }
    Ok(())
}

/// Reads numbers of `N` bytes each.
#[inline(never)]
fn fixed<const N: usize>(
    packed: &mut Reader<'_>,
    words: &mut [u64; BLOCK],
    convert: impl Fn([u8; N]) -> u64,
) -> Result<usize, WireError> {
    let places = packed.rest().as_chunks::<N>().0;
    let count = places.len().min(BLOCK);
    if count == 0 {
        return Err(packed.error(WireErrorKind::Truncated));
    }
    words.iter_mut().zip(places).for_each(|(word, place)| *word = convert(*place));
    packed.skip_bytes(count * N);
    Ok(count)
}

#[inline(never)]
fn varints(packed: &mut Reader<'_>, words: &mut [u64; BLOCK]) -> Result<usize, WireError> {
    let rest = packed.rest();
    let near = &rest[..rest.len().min(BLOCK)];
    if near.is_ascii() {
        // One byte each.
        words.iter_mut().zip(near).for_each(|(word, &byte)| *word = byte.into());
        packed.skip_bytes(near.len());
        return Ok(near.len());
    }
    let near = &rest[..rest.len().min(2 * BLOCK + 1)];
    let mut count = 0;
    if are_short(near) {
        let mut at = 0;
        while count < BLOCK
            && let Some(chunk) = near[at..].first_chunk()
        {
            let (value, len) = join_short(*chunk);
            words[count] = value;
            count += 1;
            at += len;
        }
        packed.skip_bytes(at);
    }
    // Copied, because through a reference each step would store to memory.
    let mut here = *packed;
    while count < BLOCK && !here.is_empty() {
        words[count] = here.varint_mixed()?;
        count += 1;
    }
    *packed = here;
    Ok(count)
}

/// Whether every varint that starts before the last byte has at most two bytes: of any two adjacent bytes one ends a
/// varint.
fn are_short(bytes: &[u8]) -> bool {
    let Some((_, next)) = bytes.split_first() else { return false };
    bytes.iter().zip(next).fold(0, |both, (byte, next)| both | byte & next) < 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Kind;
    use crate::schema::number::read_number;
    use crate::schema::table::{Entry, Flags};
    use crate::wire::{WireType, put_varint};

    fn kinds() -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| kind.is_packable())
    }

    fn op(kind: Kind) -> Op {
        Entry::new(1, kind, Flags(0), 0).element
    }

    fn one_by_one(kind: Kind, mut packed: Reader<'_>) -> Result<Vec<u64>, WireError> {
        let mut words = Vec::new();
        while !packed.is_empty() {
            words.push(read_number(op(kind), &mut packed)?);
        }
        Ok(words)
    }

    /// Checks that reading in blocks equals reading one by one, including errors and their offsets.
    fn check(kind: Kind, bytes: &[u8], start: usize, end: usize) {
        let packed = Reader::within(bytes, start, end).expect("a range of them");
        let mut words = Vec::new();
        let read = read(op(kind), packed, |block| {
            assert!(!block.is_empty());
            words.extend_from_slice(block);
        });
        let expected = one_by_one(kind, packed);
        assert_eq!(read.map(|()| words), expected, "{kind:?}, bytes {start} to {end}");
    }

    /// Returns `count` numbers of up to `bits` bits each, with some bytes before and after.
    fn packed(kind: Kind, count: usize, bits: u32) -> Vec<u8> {
        let (mut bytes, mut number) = (b"before".to_vec(), u64::from(bits) << 32 | count as u64);
        for _ in 0..count {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = number.rotate_left(32) >> (64 - bits) >> (number % u64::from(bits));
            match kind.wire_type() {
                WireType::Fixed64 => bytes.extend(word.to_le_bytes()),
                WireType::Fixed32 => bytes.extend((word as u32).to_le_bytes()),
                _ => put_varint(&mut bytes, word),
            }
        }
        bytes.extend(b"\x01\x80behind");
        bytes
    }

    #[test]
    fn packed_blocks_equal_single_reads_for_all_kinds_and_lengths() {
        for kind in kinds() {
            for count in [1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257] {
                for bits in [1, 7, 8, 14, 28, 32, 56, 64] {
                    let bytes = packed(kind, count, bits);
                    check(kind, &bytes, 6, bytes.len() - 8);
                }
            }
        }
    }

    #[test]
    fn packed_blocks_report_truncation_at_any_offset() {
        for kind in kinds() {
            let bytes = packed(kind, 70, 64);
            for end in 6..bytes.len() - 8 {
                check(kind, &bytes, 6, end);
            }
        }
    }

    #[test]
    fn packed_blocks_report_overlong_varints() {
        for before in [0, 1, 62, 63, 64, 65, 130] {
            let mut bytes = vec![5; before];
            bytes.extend([0xff; 11]);
            bytes.extend([5; 100]);
            for kind in kinds() {
                check(kind, &bytes, 0, bytes.len());
            }
        }
    }
}
