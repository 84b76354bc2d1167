//! Per-thread buffer pools. The buffers stay warm in the cache, and waiting tasks hold none.

use std::cell::Cell;
use std::thread::LocalKey;

/// A thread's pool: one buffer for elements of one type.
pub(crate) type BufferPool<T> = LocalKey<Cell<Vec<T>>>;

/// Takes the thread's buffer, empty. Returns an unallocated vector if the buffer is in use or the thread is shutting
/// down.
#[inline]
pub(crate) fn take<T>(pool: &'static BufferPool<T>) -> Vec<T> {
    pool.try_with(Cell::take).unwrap_or_default()
}

/// Stores a buffer for the next [`take`], unless its capacity exceeds `capacity_max` elements.
#[inline]
pub(crate) fn put<T>(pool: &'static BufferPool<T>, mut buffer: Vec<T>, capacity_max: usize) {
    buffer.clear();
    if (1..=capacity_max).contains(&buffer.capacity()) {
        // During a thread's shutdown the thread-local may be gone. Then the buffer is freed.
        let _ = pool.try_with(|pooled| pooled.set(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    #[test]
    fn buffer_is_reused_up_to_maximum_capacity() {
        let mut buffer = take(&BYTES);
        buffer.extend_from_slice(b"some bytes");
        let (address, capacity) = (buffer.as_ptr(), buffer.capacity());
        put(&BYTES, buffer, 100);
        put(&BYTES, Vec::new(), 100);
        let again = take(&BYTES);
        assert!(again.is_empty());
        assert_eq!((again.as_ptr(), again.capacity()), (address, capacity));
        assert_eq!(take(&BYTES).capacity(), 0, "in use");
        put(&BYTES, again, capacity - 1);
        assert_eq!(take(&BYTES).capacity(), 0, "above the maximum");
    }
}
