//! The watchers of each room, and their notification.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Rooms that were watched or written to since the start.
///
/// Nothing is queued per watcher: the database is the queue. A watcher wakes when a room's last number has grown, and
/// reads from its own position.
pub(crate) struct Rooms {
    stopping: watch::Receiver<bool>,
    by_id: Mutex<HashMap<i64, Arc<Room>>>,
}

pub(crate) struct Room {
    /// Number of the last message.
    last: watch::Sender<u64>,
    /// Number of watches per name.
    present: watch::Sender<BTreeMap<String, usize>>,
}

/// Marks a user as present until it is dropped.
pub(crate) struct Presence {
    room: Arc<Room>,
    name: String,
}

impl Rooms {
    /// `stopping` becomes true when the server stops.
    pub(crate) fn new(stopping: watch::Receiver<bool>) -> Self {
        Self { stopping, by_id: Mutex::default() }
    }

    pub(crate) fn room(&self, id: i64) -> Arc<Room> {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        by_id.entry(id).or_default().clone()
    }

    /// Returns when the server stops.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stopping = self.stopping.clone();
        async move {
            // Fails if the sender is gone, and the server with it.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        }
    }
}

impl Default for Room {
    fn default() -> Self {
        Self { last: watch::Sender::new(0), present: watch::Sender::default() }
    }
}

impl Room {
    /// Records a stored message; numbers may arrive out of order.
    pub(crate) fn advance(&self, number: u64) {
        self.last.send_if_modified(|last| {
            let has_grown = number > *last;
            *last = number.max(*last);
            has_grown
        });
    }

    pub(crate) fn last(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    pub(crate) fn present(&self) -> watch::Receiver<BTreeMap<String, usize>> {
        self.present.subscribe()
    }

    pub(crate) fn count(&self) -> usize {
        self.present.borrow().len()
    }

    pub(crate) fn enter(self: &Arc<Self>, name: &str) -> Presence {
        self.present.send_modify(|present| *present.entry(name.to_owned()).or_default() += 1);
        Presence { room: self.clone(), name: name.to_owned() }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.room.present.send_modify(|present| {
            let Some(count) = present.get_mut(&self.name) else { return };
            *count -= 1;
            if *count == 0 {
                present.remove(&self.name);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_counts_each_user_once() {
        let room = Arc::<Room>::default();
        let check = |names: &[&str]| assert_eq!(room.present().borrow().keys().collect::<Vec<_>>(), names);
        check(&[]);
        let bob = room.enter("bob");
        let ada = room.enter("ada");
        check(&["ada", "bob"]);
        let again = room.enter("bob");
        drop(bob);
        check(&["ada", "bob"]);
        drop(again);
        check(&["ada"]);
        drop(ada);
        check(&[]);
    }

    #[test]
    fn last_number_never_decreases() {
        let room = Room::default();
        let mut last = room.last();
        room.advance(2);
        assert!(last.has_changed().unwrap());
        assert_eq!(*last.borrow_and_update(), 2);
        room.advance(1);
        assert!(!last.has_changed().unwrap());
        assert_eq!(*last.borrow(), 2);
    }
}
