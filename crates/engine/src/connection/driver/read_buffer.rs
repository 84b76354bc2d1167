//! The read buffer: one per thread, lent to the connection that is being polled.
//!
//! An idle connection thus holds no read buffer, and the one in use stays warm in the cache.
//!
//! The buffer's start matters to the kernel's copy, on AMD processors with fast short `rep movsb` (Zen 3, Zen 4). The
//! copy takes three times as long if the destination is up to 31 bytes after its source, modulo the page. Received data
//! mostly starts near the beginning of a page. So does a large allocation, at offset 16. Therefore the buffer starts in
//! the middle of a page.

use std::cell::Cell;

/// The thread's buffer; returned to it on drop.
pub(super) struct ReadBuffer {
    block: Box<[u8]>,
    start: usize,
}

impl ReadBuffer {
    /// Large enough for a frame of the largest size that we advertise by default, and for some hundred small calls.
    const LEN: usize = 128 * 1024;
    const PAGE_LEN: usize = 4096;

    /// Returns a buffer with space for `kept` bytes, followed by a read. Its size depends on the bytes that have
    /// arrived, never on the length that a frame declares.
    pub(super) fn take(kept: usize) -> Self {
        let len_min = Self::LEN.max(2 * kept);
        let block = READ_BUFFER.take().filter(|block| block.len() >= len_min + Self::PAGE_LEN);
        let block = block.unwrap_or_else(|| vec![0; len_min + Self::PAGE_LEN].into_boxed_slice());
        let offset_in_page = block.as_ptr() as usize % Self::PAGE_LEN;
        let start = (Self::PAGE_LEN + Self::PAGE_LEN / 2 - offset_in_page) % Self::PAGE_LEN;
        Self { block, start }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.block[self.start..]
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        // During a thread's shutdown the thread-local may be gone. Then the buffer is freed.
        let _ = READ_BUFFER.try_with(|kept| kept.set(Some(std::mem::take(&mut self.block))));
    }
}

thread_local! {
    static READ_BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}
