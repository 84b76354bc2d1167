//! TLS buffers, lent by the thread to the active connection, so that an idle one holds none.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory_budget::{self, MemoryBudget};

/// A range of bytes in a block: appended at the end, consumed at the front.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// Empty if the connection holds no block.
    block: Box<[u8]>,
    filled: Range<usize>,
}

/// Space for sixteen records of maximum size, small ones between them, and their overhead: a read or write of 256 KiB.
pub(super) const BLOCK_LEN: usize = 16 * (16 * 1024 + 64) + 3 * 1024;

/// Memory of one connection's buffers, in bytes, for enforcing a limit on the total.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferMemory {
    bytes: Arc<AtomicUsize>,
    /// The budget that the memory is charged to.
    budget: Option<Arc<MemoryBudget>>,
}

impl BufferMemory {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Charges the buffers of a connection to `budget`.
    pub(crate) fn charging(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Some(Arc::clone(budget)), ..Self::default() }
    }

    /// Sets the current memory, in bytes.
    pub(crate) fn note(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        let of = |requests| memory_budget::BufferedBytes { requests, responses: 0 }.charged();
        if let Some(budget) = &self.budget
            && of(before) != of(bytes)
            && let Some(waker) = budget.charge(&mut of(before), of(bytes))
        {
            waker.wake();
        }
    }
}

#[cfg(feature = "testing")]
impl From<Arc<AtomicUsize>> for BufferMemory {
    fn from(bytes: Arc<AtomicUsize>) -> Self {
        Self { bytes, budget: None }
    }
}

impl Buffer {
    pub(super) fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.filled.len()
    }

    /// Returns the memory of the block, in bytes.
    pub(super) fn block_len(&self) -> usize {
        self.block.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.block[self.filled.clone()]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block[self.filled.clone()]
    }

    /// Removes the first `n` bytes. When the last are removed, the block returns to the thread.
    pub(super) fn consume(&mut self, n: usize) {
        self.filled.start += n;
        debug_assert!(self.filled.start <= self.filled.end, "consumed more bytes than there were");
        if self.is_empty() {
            self.release_block();
        }
    }

    /// Returns space for at least `len_min` bytes after the existing ones.
    pub(super) fn space(&mut self, len_min: usize) -> &mut [u8] {
        if self.block.len() - self.filled.end < len_min {
            self.make_space(len_min);
        }
        &mut self.block[self.filled.end..]
    }

    /// Notes that `n` bytes of the [space](Self::space) have been filled.
    pub(super) fn extend(&mut self, n: usize) {
        self.filled.end += n;
        debug_assert!(self.filled.end <= self.block.len(), "filled more bytes than there was space");
    }

    fn make_space(&mut self, len_min: usize) {
        let kept = self.len();
        if self.block.len() >= kept + len_min {
            self.block.copy_within(self.filled.clone(), 0);
        } else {
            let block = take_block(kept + len_min);
            let former = std::mem::replace(&mut self.block, block);
            self.block[..kept].copy_from_slice(&former[self.filled.clone()]);
            keep_block(former);
        }
        self.filled = 0..kept;
    }

    /// Moves the remaining bytes to a block of their size: the rest may arrive much later.
    pub(super) fn shrink(&mut self) {
        if self.block.len() < BLOCK_LEN {
            return;
        }
        let kept: Box<[u8]> = self.bytes().into();
        self.filled = 0..kept.len();
        keep_block(std::mem::replace(&mut self.block, kept));
    }

    fn release_block(&mut self) {
        self.filled = 0..0;
        keep_block(std::mem::take(&mut self.block));
    }
}

/// Blocks that a thread keeps: one for reading and one for writing.
const KEPT_MAX: usize = 2;

thread_local! {
    static KEPT: Cell<[Option<Box<[u8]>>; KEPT_MAX]> = const { Cell::new([None, None]) };
    static RECORD_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

fn take_block(len_min: usize) -> Box<[u8]> {
    let kept = || {
        let mut kept = KEPT.try_with(Cell::take).ok()?;
        let block = kept.iter_mut().find_map(Option::take);
        KEPT.set(kept);
        block
    };
    match if len_min <= BLOCK_LEN { kept() } else { None } {
        Some(block) => block,
        None => vec![0; len_min.max(BLOCK_LEN)].into_boxed_slice(),
    }
}

/// Returns a block to the thread. Larger blocks, which a handshake may have needed, are freed.
fn keep_block(block: Box<[u8]>) {
    if block.len() != BLOCK_LEN {
        return;
    }
    // During a thread's shutdown the thread-local may be gone. Then the block is freed.
    let _ = KEPT.try_with(|cell| {
        let mut kept = cell.take();
        if let Some(slot) = kept.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(block);
        }
        cell.set(kept);
    });
}

/// Lends the thread's record buffer, which combines small parts into one record.
pub(super) fn with_record_buffer<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut record = RECORD_BUFFER.try_with(Cell::take).unwrap_or_default();
    record.clear();
    let outcome = work(&mut record);
    let _ = RECORD_BUFFER.try_with(|cell| cell.set(record));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bytes_are_consumed_in_order_for_any_space() {
        let check = |appended: &[usize], taken: &[usize]| {
            let mut buffer = Buffer::default();
            let (mut written, mut read) = (0_u8, 0_u8);
            for (append, take) in appended.iter().zip(taken) {
                for byte in &mut buffer.space(*append)[..*append] {
                    *byte = written;
                    written = written.wrapping_add(1);
                }
                buffer.extend(*append);
                for byte in &buffer.bytes()[..*take] {
                    assert_eq!(*byte, read);
                    read = read.wrapping_add(1);
                }
                buffer.consume(*take);
                buffer.shrink();
            }
            assert_eq!(buffer.len(), appended.iter().sum::<usize>() - taken.iter().sum::<usize>());
        };
        check(&[5, 10, 3], &[0, 14, 4]);
        check(&[BLOCK_LEN, 1000, 1], &[1000, 17, 0]);
        check(&[10, 3 * BLOCK_LEN, 1], &[1, 2 * BLOCK_LEN, 5]);
    }

    #[test]
    fn shrunk_buffer_holds_only_its_bytes() {
        let mut buffer = Buffer::default();
        buffer.space(1)[..3].copy_from_slice(b"abc");
        buffer.extend(3);
        buffer.consume(1);
        buffer.shrink();
        assert_eq!((buffer.bytes(), buffer.block.len()), (&b"bc"[..], 2));
        buffer.consume(2);
        buffer.shrink();
        assert_eq!(buffer.block.len(), 0);
    }
}
