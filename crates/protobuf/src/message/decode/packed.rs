//! Rows of numbers without tags.

use super::{Decoding, Entry, Fault, Op, Reader, WireErrorKind, unzigzag, wire};

impl Decoding<'_> {
    /// A row, whose numbers are appended to a list.
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
                convert(op, free);
                varints.count()
            }
        };
        if !row.is_empty() {
            return Err(wire(row.offset(), WireErrorKind::Truncated));
        }
        self.arena.words[slot] += count as u64;
        Ok(())
    }

    /// Of a closed enum; what has no name is kept as unknown.
    fn packed_closed_enums(&mut self, row: &mut Reader<'_>, entry: &Entry, at: usize) -> Result<(), Fault> {
        while !row.is_empty() {
            let value = i64::from(row.varint()? as i32);
            if self.values.pool.enums[entry.type_index as usize].value(value as i32).is_some() {
                self.push(row, at + entry.slot as usize, value as u64)?;
            } else {
                self.arena.add_unknown(at, value as u64, entry.number);
                self.room(row, 0)?;
            }
        }
        Ok(())
    }

    /// Room for `count` more words behind those that a list has.
    fn free(&mut self, row: &Reader<'_>, slot: usize, count: usize) -> Result<&mut [u64], Fault> {
        let (_, len) = self.arena.list(slot);
        let capacity = self.arena.capacity(slot);
        if len + count > capacity {
            self.room(row, (len + count).max(capacity * 2))?;
            self.arena.grow(slot, len + count);
        }
        let (start, len) = self.arena.list(slot);
        Ok(&mut self.arena.words[start + len..start + len + count])
    }
}

/// From varints to what slots hold.
fn convert(op: Op, words: &mut [u64]) {
    #[inline(always)]
    fn each(words: &mut [u64], change: impl Fn(u64) -> u64) {
        for word in words {
            *word = change(*word);
        }
    }
    match op {
        Op::Int32 => each(words, |value| i64::from(value as i32) as u64),
        Op::Uint32 => each(words, |value| u64::from(value as u32)),
        Op::Bool => each(words, |value| u64::from(value != 0)),
        Op::Sint32 => each(words, |value| unzigzag(u64::from(value as u32)) as u64),
        Op::Sint64 => each(words, |value| unzigzag(value) as u64),
        _ => {}
    }
}
