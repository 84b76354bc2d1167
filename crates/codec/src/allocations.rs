//! How often a thread asks the allocator: a program that wants to know makes [`Counting`] its allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// The system's allocator with two counters of each thread before it. They are plain cells in the thread's own memory,
/// with nothing to initialise and nothing to drop: two additions for each block that is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counting;

/// Since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Blocks that were asked for; one that changes its size counts once more.
    pub(crate) blocks: u64,
    /// Bytes of them, each time as many as the block then has.
    pub(crate) bytes: u64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { blocks: 0, bytes: 0 }) };
}

/// What the calling thread has asked for. Zero for good unless [`Counting`] is the program's allocator.
pub(crate) fn of_this_thread() -> Counts {
    COUNTS.get()
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { blocks: self.blocks - earlier.blocks, bytes: self.bytes - earlier.bytes }
    }
}

fn count(bytes: usize) {
    let Counts { blocks, bytes: before } = COUNTS.get();
    COUNTS.set(Counts { blocks: blocks + 1, bytes: before + bytes as u64 });
}

// SAFETY: every call goes to the system's allocator as it came, and so does its answer. Counting allocates nothing: the
// cells are initialised when the program is compiled and have no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: what the caller promised of `layout` holds.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: what the caller promised of `layout` holds.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: what the caller promised of `block`, `layout` and `size` holds; the block is the system's.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: what the caller promised of `block` and `layout` holds; the block is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::of_this_thread;

    #[test]
    fn a_block_is_counted_with_its_bytes() {
        let before = of_this_thread();
        drop(Vec::<u8>::with_capacity(100));
        let since = of_this_thread() - before;
        assert_eq!((since.blocks, since.bytes), (1, 100));
    }
}
