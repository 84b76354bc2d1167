//! The buffer that drivers read into: one per thread, lent to the connection that is being polled.
//!
//! An idle connection so holds no read buffer at all, and the one in use stays warm in the cache.
//!
//! Where it begins matters to the kernel's copy: on AMD's processors with fast short `rep movsb` (Zen 3, Zen 4) it
//! takes three times as long to a destination that lies up to 31 bytes behind its source, modulo the page. What arrives
//! mostly begins near the begin of a page, and so does a large block of an allocator, 16 bytes behind it: so the buffer
//! begins in the middle of one.

use std::cell::Cell;

/// The thread's buffer, which goes back when it is dropped.
pub(super) struct ReadBuffer {
    block: Box<[u8]>,
    start: usize,
}

impl ReadBuffer {
    /// Large enough for a frame of the largest size that we advertise by default, and for some hundred small calls.
    const LEN: usize = 128 * 1024;
    const PAGE_LEN: usize = 4096;

    /// A buffer with space for `kept` bytes and a good read behind them. Its length follows what has arrived, never
    /// what a frame declares.
    pub(super) fn take(kept: usize) -> Self {
        let wanted = Self::LEN.max(2 * kept);
        let block = READ_BUFFER.take().filter(|block| block.len() >= wanted + Self::PAGE_LEN);
        let block = block.unwrap_or_else(|| vec![0; wanted + Self::PAGE_LEN].into_boxed_slice());
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
        // During a thread's end the thread-local may be gone: then the buffer is simply freed.
        let _ = READ_BUFFER.try_with(|kept| kept.set(Some(std::mem::take(&mut self.block))));
    }
}

thread_local! {
    static READ_BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}
