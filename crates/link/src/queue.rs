//! Bytes in transit in one direction of a connection, in order, with their release times.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::time::Instant;

/// Size of a block: the unit of storage, and the minimum size of a read.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Maximum blocks filled by one read: 256 KiB fit in the L2 cache.
const READ_BLOCKS_MAX: usize = 4;
/// Maximum blocks emptied by one write: 1 MiB.
const WRITE_BLOCKS_MAX: usize = 16;
/// Maximum free blocks kept in the pool: 16 MiB per link.
const FREE_BLOCKS_MAX: usize = 256;
/// Cost of a chunk besides its bytes, so that many tiny chunks are bounded, too.
const CHUNK_COST: usize = std::mem::size_of::<Chunk>();

/// Pool of free blocks, for all queues of a link. The last one used is reused first, because it is cached.
#[derive(Debug, Default)]
pub(crate) struct BlockPool(Vec<Box<[u8]>>);

impl BlockPool {
    fn take(&mut self) -> Block {
        let bytes = self.0.pop().unwrap_or_else(|| vec![0; BLOCK_BYTES].into_boxed_slice());
        Block { bytes, start: 0, end: 0 }
    }

    fn give_back(&mut self, block: Block) {
        if self.0.len() < FREE_BLOCKS_MAX {
            self.0.push(block.bytes);
        }
    }
}

/// `start..end` is in use.
#[derive(Debug)]
struct Block {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// Bytes that leave together.
#[derive(Debug)]
struct Chunk {
    release: Instant,
    bytes: usize,
}

/// Bytes in order, in chunks with ascending release times.
#[derive(Debug)]
pub(crate) struct Queue {
    blocks: VecDeque<Block>,
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// Number of blocks offered to the next read. Doubles while reads fill them.
    read_blocks: usize,
}

/// Result of a read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) bytes: usize,
    /// Less than offered: a read has emptied the socket, a write has filled it.
    pub(crate) is_short: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { blocks: VecDeque::new(), chunks: VecDeque::new(), bytes: 0, read_blocks: 1 }
    }

    /// Returns the bytes in transit.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns how many bytes fit within `limit`.
    pub(crate) fn free_space(&self, limit: usize) -> usize {
        limit.saturating_sub(self.bytes + self.chunks.len() * CHUNK_COST)
    }

    /// Lets `read` append up to `max` bytes. [`push`](Self::push) must then set their release time.
    pub(crate) fn fill(
        &mut self,
        blocks: &mut BlockPool,
        max: usize,
        read: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transfer> {
        let spare = self.blocks.back().map_or(0, |block| BLOCK_BYTES - block.end);
        // The rest of the last block, and as many new ones as `read_blocks` and `max` permit.
        let first = self.blocks.len() - usize::from(spare > 0);
        let new_blocks = max.saturating_sub(spare).div_ceil(BLOCK_BYTES).min(self.read_blocks);
        self.blocks.extend((0..new_blocks).map(|_| blocks.take()));

        let mut left = max;
        let mut tails = self.blocks.range_mut(first..).map(|block| {
            let tail = &mut block.bytes[block.end..];
            let offered = tail.len().min(left);
            left -= offered;
            IoSliceMut::new(&mut tail[..offered])
        });
        let mut slices: [IoSliceMut<'_>; READ_BLOCKS_MAX + 1] =
            std::array::from_fn(|_| tails.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        drop(tails);
        let offered = max - left;
        let slice_count = slices.iter().take_while(|slice| !slice.is_empty()).count();
        let outcome = read(&mut slices[..slice_count]);

        let bytes = *outcome.as_ref().unwrap_or(&0);
        let is_short = bytes < offered;
        let mut rest = bytes;
        for block in self.blocks.range_mut(first..) {
            let len = rest.min(BLOCK_BYTES - block.end);
            block.end += len;
            rest -= len;
        }
        while self.blocks.back().is_some_and(|block| block.end == 0) {
            blocks.give_back(self.blocks.pop_back().expect("present"));
        }
        self.read_blocks = if is_short { 1 } else { (2 * self.read_blocks).min(READ_BLOCKS_MAX) };
        outcome?;
        Ok(Transfer { bytes, is_short })
    }

    /// Sets the release time of the last `bytes` read.
    pub(crate) fn push(&mut self, bytes: usize, release: Instant) {
        debug_assert!(self.chunks.back().is_none_or(|chunk| chunk.release <= release), "out of order");
        self.bytes += bytes;
        self.chunks.push_back(Chunk { release, bytes });
    }

    /// Returns when the next byte may leave.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        self.chunks.front().map(|chunk| chunk.release)
    }

    /// Returns how many bytes may leave at `now`, in one write.
    pub(crate) fn due(&self, now: Instant) -> usize {
        let mut due = 0;
        for chunk in self.chunks.iter().take_while(|chunk| chunk.release <= now) {
            due += chunk.bytes;
            if due >= WRITE_BLOCKS_MAX * BLOCK_BYTES {
                break;
            }
        }
        due
    }

    /// Passes up to `max` bytes from the front to `write`, in at most `WRITE_BLOCKS_MAX` blocks. They stay until
    /// [`pop`](Self::pop).
    pub(crate) fn write_to(
        &self,
        max: usize,
        write: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transfer> {
        let mut left = max;
        let mut blocks = self.blocks.iter().map(|block| {
            let bytes = &block.bytes[block.start..block.end];
            let shown = bytes.len().min(left);
            left -= shown;
            IoSlice::new(&bytes[..shown])
        });
        let slices: [IoSlice<'_>; WRITE_BLOCKS_MAX] =
            std::array::from_fn(|_| blocks.next().unwrap_or_else(|| IoSlice::new(&[])));
        let slice_count = slices.iter().take_while(|slice| !slice.is_empty()).count();
        drop(blocks);
        let bytes = write(&slices[..slice_count])?;
        Ok(Transfer { bytes, is_short: bytes < max - left })
    }

    /// Removes bytes from the front. Calls `left` with the release time of each chunk that is completely removed.
    pub(crate) fn pop(&mut self, bytes: usize, blocks: &mut BlockPool, mut left: impl FnMut(Instant)) {
        self.bytes -= bytes;
        let mut rest = bytes;
        while let Some(chunk) = self.chunks.front_mut() {
            if chunk.bytes > rest {
                chunk.bytes -= rest;
                break;
            }
            rest -= chunk.bytes;
            left(chunk.release);
            self.chunks.pop_front();
        }
        let mut rest = bytes;
        while let Some(block) = self.blocks.front_mut() {
            let len = rest.min(block.end - block.start);
            block.start += len;
            rest -= len;
            // The last block is kept while it has space, so that small chunks share it.
            let is_spent = block.start == block.end && (self.bytes == 0 || block.end == BLOCK_BYTES);
            if !is_spent {
                break;
            }
            blocks.give_back(self.blocks.pop_front().expect("present"));
        }
    }

    /// Removes everything, and returns the number of bytes.
    pub(crate) fn clear(&mut self, blocks: &mut BlockPool) -> usize {
        self.blocks.drain(..).for_each(|block| blocks.give_back(block));
        self.chunks = VecDeque::new();
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Fills the queue with `bytes`, and returns the size of each read.
    fn fill(
        queue: &mut Queue,
        blocks: &mut BlockPool,
        mut bytes: &[u8],
        max: usize,
        at: Instant,
    ) -> Vec<usize> {
        let mut reads = Vec::new();
        while !bytes.is_empty() {
            let filled =
                queue.fill(blocks, max, |slices| io::Read::read_vectored(&mut bytes, slices)).unwrap();
            queue.push(filled.bytes, at);
            reads.push(filled.bytes);
        }
        reads
    }

    /// Removes everything that is due, `max` bytes at a time.
    fn drain(queue: &mut Queue, blocks: &mut BlockPool, max: usize, now: Instant) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let due = queue.due(now).min(max);
            if due == 0 {
                return out;
            }
            let written = queue.write_to(due, |slices| io::Write::write_vectored(&mut out, slices)).unwrap();
            assert!(!written.is_short && written.bytes <= due);
            queue.pop(written.bytes, blocks, |_| ());
        }
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 167 + index / 251) as u8).collect()
    }

    #[test]
    fn bytes_pass_unchanged() {
        let now = Instant::now();
        for len in [1, 1000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3_000_000] {
            for (read_max, write_max) in
                [(usize::MAX, usize::MAX), (1000, 777), (100_000, 33), (1, usize::MAX)]
            {
                if len / read_max.min(write_max) > 100_000 {
                    continue;
                }
                let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
                let bytes = noise(len);
                fill(&mut queue, &mut blocks, &bytes, read_max, now);
                assert_eq!(queue.len(), len);
                assert!(
                    drain(&mut queue, &mut blocks, write_max, now) == bytes,
                    "{len} {read_max} {write_max}"
                );
                assert!(queue.is_empty() && queue.blocks.is_empty() && queue.chunks.is_empty());
            }
        }
    }

    #[test]
    fn read_size_doubles_while_reads_are_full() {
        let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
        let reads = fill(&mut queue, &mut blocks, &noise(12 * BLOCK_BYTES), usize::MAX, Instant::now());
        assert_eq!(reads, [1, 2, 4, 4, 1].map(|count| count * BLOCK_BYTES));
    }

    #[test]
    fn write_of_all_offered_bytes_is_not_short() {
        let now = Instant::now();
        let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
        fill(&mut queue, &mut blocks, &noise(2 * WRITE_BLOCKS_MAX * BLOCK_BYTES), usize::MAX, now);
        queue.pop(1000, &mut blocks, |_| ());
        // The first block is not full, so the blocks of one write hold less than is due.
        let offered = WRITE_BLOCKS_MAX * BLOCK_BYTES - 1000;
        assert!(queue.due(now) > offered);
        let written = |share: usize| {
            let write =
                |slices: &[IoSlice<'_>]| Ok(slices.iter().map(|slice| slice.len()).sum::<usize>() / share);
            queue.write_to(queue.due(now), write).unwrap()
        };
        assert_eq!(written(1), Transfer { bytes: offered, is_short: false });
        assert_eq!(written(2), Transfer { bytes: offered / 2, is_short: true });
    }

    #[test]
    fn bytes_wait_for_their_release_time() {
        let now = Instant::now();
        let before = now + Duration::from_nanos(4_999_999);
        let later = now + Duration::from_millis(5);
        let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
        fill(&mut queue, &mut blocks, b"first", 100, now);
        fill(&mut queue, &mut blocks, b"second", 100, later);
        assert_eq!(drain(&mut queue, &mut blocks, 100, now), b"first");
        assert_eq!(queue.next_release(), Some(later));
        assert_eq!(drain(&mut queue, &mut blocks, 100, before), b"");
        assert_eq!(drain(&mut queue, &mut blocks, 100, later), b"second");
        assert_eq!(queue.next_release(), None);
    }

    #[test]
    fn chunk_is_reported_when_completely_removed() {
        let now = Instant::now();
        let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
        fill(&mut queue, &mut blocks, b"first", 100, now);
        fill(&mut queue, &mut blocks, b"second", 100, now);
        let mut chunks_completed = |bytes| {
            let mut count = 0;
            queue.pop(bytes, &mut blocks, |_| count += 1);
            count
        };
        assert_eq!(
            [chunks_completed(4), chunks_completed(1), chunks_completed(5), chunks_completed(1)],
            [0, 1, 0, 1]
        );
    }

    #[test]
    fn tiny_chunks_use_up_free_space() {
        let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
        fill(&mut queue, &mut blocks, &noise(1000), 1, Instant::now());
        assert_eq!(queue.free_space(1_000_000), 1_000_000 - 1000 * (1 + CHUNK_COST));
        assert_eq!(queue.free_space(1000), 0);
    }

    #[test]
    fn failed_read_leaves_queue_empty() {
        let (mut queue, mut blocks) = (Queue::new(), BlockPool::default());
        let failed = queue.fill(&mut blocks, 1000, |_| Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(queue.blocks.is_empty());
        fill(&mut queue, &mut blocks, b"more", 1000, Instant::now());
        assert_eq!(queue.clear(&mut blocks), 4);
        assert!(queue.is_empty() && queue.free_space(5) == 5);
    }
}
