//! Packed numbers: arrays without tags.

use super::decoding::Decoding;
use crate::message::limits::{BoxedDecodeError, wire};
use crate::schema::number::{convert_packed, read_number};
use crate::schema::table::{Entry, Op};
use crate::wire::{Reader, WireErrorKind};

impl Decoding<'_> {
    /// Appends the numbers of a packed array to a list.
    pub(super) fn packed(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &Entry,
        at: usize,
    ) -> Result<(), BoxedDecodeError> {
        let mut packed = reader.nested()?;
        let slot = at + entry.slot as usize;
        let count = match entry.element {
            Op::ClosedEnum => return self.packed_closed_enums(&mut packed, entry, at),
            Op::Fixed32 => {
                let (chunks, _) = packed.rest().as_chunks();
                let free = self.free(&packed, slot, chunks.len())?;
                let values = chunks.iter().map(|chunk| u64::from(u32::from_le_bytes(*chunk)));
                free.iter_mut().zip(values).for_each(|(word, value)| *word = value);
                packed.skip_bytes(4 * chunks.len());
                chunks.len()
            }
            Op::Fixed64 => {
                let (chunks, _) = packed.rest().as_chunks();
                let free = self.free(&packed, slot, chunks.len())?;
                let values = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
                free.iter_mut().zip(values).for_each(|(word, value)| *word = value);
                packed.skip_bytes(8 * chunks.len());
                chunks.len()
            }
            op => {
                let varints = packed.count_varints();
                let free = self.free(&packed, slot, varints.count())?;
                packed.read_varints(&varints, free)?;
                convert_packed(op, free);
                varints.count()
            }
        };
        if !packed.is_empty() {
            return Err(wire(packed.offset(), WireErrorKind::Truncated));
        }
        self.arena.words[slot] += count as u64;
        Ok(())
    }

    /// Handles closed enums; values without a name are kept as unknown fields.
    fn packed_closed_enums(
        &mut self,
        packed: &mut Reader<'_>,
        entry: &Entry,
        at: usize,
    ) -> Result<(), BoxedDecodeError> {
        while !packed.is_empty() {
            let word = read_number(Op::ClosedEnum, packed)?;
            if self.values.pool.enums[entry.type_index as usize].value(word as i32).is_some() {
                self.push(packed, at + entry.slot as usize, word)?;
            } else {
                self.arena.add_unknown(at, word, entry.number);
                self.check_memory(packed, 0)?;
            }
        }
        Ok(())
    }

    /// Returns `count` free words at the end of a list.
    fn free(
        &mut self,
        packed: &Reader<'_>,
        slot: usize,
        count: usize,
    ) -> Result<&mut [u64], BoxedDecodeError> {
        let (_, len) = self.arena.list(slot);
        let capacity = self.arena.capacity(slot);
        if len + count > capacity {
            self.check_memory(packed, (len + count).max(capacity * 2))?;
            self.arena.grow(slot, len + count);
        }
        let (start, len) = self.arena.list(slot);
        Ok(&mut self.arena.words[start + len..start + len + count])
    }
}
