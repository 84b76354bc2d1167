//! Memory that belongs to a thread and is lent to whatever runs on it: it stays warm in the cache, and nothing that
//! waits holds any.

use std::cell::Cell;
use std::thread::LocalKey;

/// A thread's spare memory for elements of one kind.
pub(crate) type Spare<T> = LocalKey<Cell<Vec<T>>>;

/// The thread's memory, empty. Whoever asks while another has it gets a vector that has allocated nothing; so does who
/// asks during the thread's end.
#[inline]
pub(crate) fn take<T>(spare: &'static Spare<T>) -> Vec<T> {
    spare.try_with(Cell::take).unwrap_or_default()
}

/// For the next [`take`], unless it has room for more than `capacity_max` elements.
#[inline]
pub(crate) fn keep<T>(spare: &'static Spare<T>, mut memory: Vec<T>, capacity_max: usize) {
    memory.clear();
    if (1..=capacity_max).contains(&memory.capacity()) {
        // During a thread's end the thread-local may be gone: then the memory is simply freed.
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
