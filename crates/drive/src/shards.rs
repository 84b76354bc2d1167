//! Where the threads of a run record, each at a place of its own: tasks move between threads, and what a task had to
//! itself would move with it, from one processor's cache to another's, with each call.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One `T` for each thread of a runtime.
#[derive(Debug)]
pub struct Shards<T>(Vec<Apart<Mutex<T>>>);

/// On lines of the cache of its own; processors fetch them by twos.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Shards<T> {
    /// For so many threads. Where more of them record some share a place.
    pub fn new(threads: usize, make: impl Fn() -> T) -> Self {
        Self((0..threads.max(1)).map(|_| Apart(Mutex::new(make()))).collect())
    }

    /// This thread's. A thread that panicked leaves its counts as they are.
    #[inline]
    pub fn own(&self) -> MutexGuard<'_, T> {
        self.0[thread_number() % self.0.len()].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each, in turn.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|place| place.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The threads that record are counted, in the order in which they begin to.
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
    fn threads_record_at_places_of_their_own_and_all_of_it_is_there() {
        let shards = Shards::new(4, || 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *shards.own() += 1));
            }
        });
        assert_eq!(shards.all().map(|count| *count).sum::<u32>(), 4000);
        assert_eq!(Shards::new(0, || 7).all().map(|count| *count).collect::<Vec<_>>(), [7]);
    }
}
