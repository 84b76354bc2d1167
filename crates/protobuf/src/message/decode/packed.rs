//! Packed numbers: arrays without tags.

use super::decoding::Decoding;
use crate::message::limits::{Fault, wire};
use crate::schema::number::{convert_row, read_number};
use crate::schema::table::{Entry, Op};
use crate::wire::{Reader, WireErrorKind};

impl Decoding<'_> {
    /// Appends the numbers of a packed array to a list.
    pub(super) fn packed(&mut self, reader: &mut Reader<'_>, entry: &Entry, at: usize) -> Result<(), Fault> {
        let mut row = reader.nested()?;
        let slot = at + entry.slot as usize;
        let count = match entry.element {
            Op::ClosedEnum => return self.packed_closed_enums(&mut row, entry, at),
            Op::Fixed32 => {
                let (chunks, _) = row.rest().as_chunks();
                let free = self.free(&row, slot, chunks.len())?;
                let values = chunks.iter().map(|chunk| u64::from(u32::from_le_bytes(*chunk)));
                free.iter_mut().zip(values).for_each(|(word, value)| *word = value);
                row.skip_bytes(4 * chunks.len());
                chunks.len()
            }
            Op::Fixed64 => {
                let (chunks, _) = row.rest().as_chunks();
                let free = self.free(&row, slot, chunks.len())?;
                let values = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
                free.iter_mut().zip(values).for_each(|(word, value)| *word = value);
                row.skip_bytes(8 * chunks.len());
                chunks.len()
            }
            op => {
                let varints = row.varints();
                let free = self.free(&row, slot, varints.count())?;
                row.read_varints(&varints, free)?;
                convert_row(op, free);
                varints.count()
            }
        };
        if !row.is_empty() {
            return Err(wire(row.offset(), WireErrorKind::Truncated));
        }
        self.arena.words[slot] += count as u64;
        Ok(())
    }

    /// Handles closed enums; values without a name are kept as unknown fields.
    fn packed_closed_enums(&mut self, row: &mut Reader<'_>, entry: &Entry, at: usize) -> Result<(), Fault> {
        while !row.is_empty() {
            let word = read_number(Op::ClosedEnum, row)?;
            if self.values.pool.enums[entry.type_index as usize].value(word as i32).is_some() {
                self.push(row, at + entry.slot as usize, word)?;
            } else {
                self.arena.add_unknown(at, word, entry.number);
                self.check_memory(row, 0)?;
            }
        }
        Ok(())
    }

    /// Returns `count` free words at the end of a list.
    fn free(&mut self, row: &Reader<'_>, slot: usize, count: usize) -> Result<&mut [u64], Fault> {
        let (_, len) = self.arena.list(slot);
        let capacity = self.arena.capacity(slot);
        if len + count > capacity {
            self.check_memory(row, (len + count).max(capacity * 2))?;
            self.arena.grow(slot, len + count);
        }
        let (start, len) = self.arena.list(slot);
        Ok(&mut self.arena.words[start + len..start + len + count])
    }
}
