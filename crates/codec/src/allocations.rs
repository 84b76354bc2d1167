//! Counts allocations per thread. A program that needs the counts uses [`Counting`] as its allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// The system's allocator with two counters per thread. These are plain thread-local cells, without initialisation or
/// destructor: two additions per allocation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counting;

/// Allocations since the thread started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Allocated blocks; each reallocation counts again.
    pub(crate) blocks: u64,
    /// Allocated bytes; each reallocation counts the new size.
    pub(crate) bytes: u64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { blocks: 0, bytes: 0 }) };
}

/// Returns the allocations of the calling thread. Always zero unless [`Counting`] is the program's allocator.
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

// SAFETY: every call is forwarded to the system's allocator unchanged, and so is its result. Counting does not
// allocate: the cells are const-initialised and have no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the requirements on `layout`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the requirements on `layout`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller upholds the requirements on `block`, `layout` and `size`; the block is from the system's
        // allocator.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the requirements on `block` and `layout`; the block is from the system's
        // allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::of_this_thread;

    #[test]
    fn allocation_counts_block_and_bytes() {
        let before = of_this_thread();
        drop(Vec::<u8>::with_capacity(100));
        let since = of_this_thread() - before;
        assert_eq!((since.blocks, since.bytes), (1, 100));
    }
}
