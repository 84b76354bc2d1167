//! Per-thread recording.
//!
//! Tasks move between threads. A recorder per task would move with it between CPU caches, so there is one per thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One `T` per thread of a runtime.
#[derive(Debug)]
pub struct Shards<T>(Vec<CachePadded<Mutex<T>>>);

/// A value on separate cache lines. The alignment is 128 bytes because CPUs prefetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> Shards<T> {
    /// Creates shards for `threads` threads, at least one. If more threads record, some share a shard.
    pub fn new(threads: usize, make: impl Fn() -> T) -> Self {
        Self((0..threads.max(1)).map(|_| CachePadded(Mutex::new(make()))).collect())
    }

    /// Locks the calling thread's shard. Ignores poisoning, so the counts of a panicked thread remain.
    #[inline]
    pub fn lock_own(&self) -> MutexGuard<'_, T> {
        self.0[thread_number() % self.0.len()].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks each shard in turn.
    pub fn lock_each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|shard| shard.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the calling thread's number. Threads are numbered in the order of their first recording.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let number = NUMBER.get();
    if number != usize::MAX {
        return number;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_keep_counts_of_all_threads() {
        let shards = Shards::new(4, || 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *shards.lock_own() += 1));
            }
        });
        assert_eq!(shards.lock_each().map(|count| *count).sum::<u32>(), 4000);
        assert_eq!(Shards::new(0, || 7).lock_each().map(|count| *count).collect::<Vec<_>>(), [7]);
    }
}
