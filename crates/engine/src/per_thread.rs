//! Per-thread values, which avoid contention between threads.
//!
//! A write to a word shared by many processors costs each of them at least 0.1 µs. A read lock is no cheaper, because
//! it counts its readers.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the thread's number in the process, counted from 1 in the order of first use.
#[inline]
pub(crate) fn thread_number() -> u32 {
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    match NUMBER.get() {
        0 => {
            static LAST: AtomicU32 = AtomicU32::new(0);
            let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
            NUMBER.set(number);
            number
        }
        number => number,
    }
}

/// One `T` per thread. With many more threads than processors, some threads share one.
pub(crate) struct PerThread<T> {
    slots: Box<[CacheAligned<T>]>,
}

/// Padded to cache lines of its own. Processors fetch them in pairs.
#[repr(align(128))]
struct CacheAligned<T>(T);

const SLOTS_MAX: usize = 64;

/// Returns the machine's online processors where the system reports them, since this thread alone may be pinned to one.
fn processors() -> usize {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: it takes and returns numbers; -1 is an error.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        if let Some(online) = usize::try_from(online).ok().filter(|&online| online > 0) {
            return online;
        }
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl<T> PerThread<T> {
    pub(crate) fn new(make: impl Fn() -> T) -> Self {
        // Cached, because the query reads files.
        static SLOTS: OnceLock<usize> = OnceLock::new();
        let slots = *SLOTS.get_or_init(|| processors().next_power_of_two().min(SLOTS_MAX));
        Self { slots: (0..slots).map(|_| CacheAligned(make())).collect() }
    }

    /// Returns this thread's value.
    #[inline]
    pub(crate) fn current(&self) -> &T {
        &self.slots[thread_number() as usize & (self.slots.len() - 1)].0
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_keeps_its_number_and_slot() {
        let counts = PerThread::<AtomicU32>::default();
        let count = || {
            counts.current().fetch_add(1, Ordering::Relaxed);
            assert!(std::ptr::eq(counts.current(), counts.current()));
            assert_eq!(thread_number(), thread_number());
            thread_number()
        };
        let numbers = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<std::collections::HashSet<_>>()
        });
        assert_eq!(numbers.len(), 8);
        assert_eq!(counts.all().map(|count| count.load(Ordering::Relaxed)).sum::<u32>(), 8);
    }
}
