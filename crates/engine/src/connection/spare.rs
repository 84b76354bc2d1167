//! Per-thread memory pools. The memory stays warm in the cache, and waiting tasks hold none.

use std::cell::Cell;
use std::thread::LocalKey;

/// A thread's pool of memory for elements of one type.
pub(crate) type Spare<T> = LocalKey<Cell<Vec<T>>>;

/// Takes the thread's memory, empty. Returns an unallocated vector if the memory is in use or the thread is shutting
/// down.
#[inline]
pub(crate) fn take<T>(spare: &'static Spare<T>) -> Vec<T> {
    spare.try_with(Cell::take).unwrap_or_default()
}

/// Stores memory for the next [`take`], unless its capacity exceeds `capacity_max` elements.
#[inline]
pub(crate) fn keep<T>(spare: &'static Spare<T>, mut memory: Vec<T>, capacity_max: usize) {
    memory.clear();
    if (1..=capacity_max).contains(&memory.capacity()) {
        // During a thread's shutdown the thread-local may be gone. Then the memory is freed.
        let _ = spare.try_with(|kept| kept.set(memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    #[test]
    fn memory_is_used_again_within_a_bound() {
        let mut memory = take(&BYTES);
        memory.extend_from_slice(b"some bytes");
        let (place, capacity) = (memory.as_ptr(), memory.capacity());
        keep(&BYTES, memory, 100);
        keep(&BYTES, Vec::new(), 100);
        let again = take(&BYTES);
        assert!(again.is_empty());
        assert_eq!((again.as_ptr(), again.capacity()), (place, capacity));
        assert_eq!(take(&BYTES).capacity(), 0, "it is lent");
        keep(&BYTES, again, capacity - 1);
        assert_eq!(take(&BYTES).capacity(), 0, "it was too much to be kept");
    }
}
