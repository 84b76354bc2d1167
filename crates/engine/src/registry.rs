//! The servers and channels of the process, for inspection from outside their calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Returns a process-wide identifier, unique among servers, channels, lanes and sockets. Never 0.
pub(crate) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Live objects of one type. Each removes itself when dropped.
#[derive(Debug)]
pub(crate) struct Registry<T>(Mutex<BTreeMap<u64, Weak<T>>>);

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn add(&self, id: u64, entry: &Arc<T>) {
        self.lock().insert(id, Arc::downgrade(entry));
    }

    pub(crate) fn remove(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// Returns all entries in the order of their identifiers.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        // Upgraded under the lock but dropped without it, since dropping the last reference removes the entry.
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
