//! TLS handshakes in progress, with a limit on their number.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;

use crate::connection::Connection;

/// Handshakes in progress. Beyond the limit the oldest is dropped. Honest handshakes finish quickly, so stalled ones do
/// not block others.
#[derive(Debug)]
pub(super) struct Handshakes {
    max: usize,
    list: Mutex<HandshakeList>,
}

#[derive(Debug, Default)]
struct HandshakeList {
    next_id: u64,
    /// In the order of their start.
    underway: BTreeMap<u64, Arc<Notify>>,
}

impl Handshakes {
    pub(super) fn new(max: usize) -> Self {
        Self { max, list: Mutex::default() }
    }

    /// Registers a handshake, which counts until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Handshake {
        let cancelled = Arc::new(Notify::new());
        let mut list = self.lock();
        let id = list.next_id;
        list.next_id += 1;
        list.underway.insert(id, Arc::clone(&cancelled));
        if list.underway.len() > self.max
            && let Some((_, oldest)) = list.underway.pop_first()
        {
            oldest.notify_one();
        }
        Handshake { all: Arc::clone(self), id, cancelled }
    }

    fn lock(&self) -> MutexGuard<'_, HandshakeList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handshake in progress.
pub(super) struct Handshake {
    all: Arc<Handshakes>,
    id: u64,
    cancelled: Arc<Notify>,
}

impl Handshake {
    /// Runs `handshake`, or returns `None` if it is dropped for another or the connection is closed. Closing is checked
    /// here, because no driver runs yet.
    pub(super) async fn run<F: Future>(self, connection: &Connection, handshake: F) -> Option<F::Output> {
        let mut handshake = pin!(handshake);
        let mut cancelled = pin!(self.cancelled.notified());
        poll_fn(|cx| {
            if cancelled.as_mut().poll(cx).is_ready() || connection.poll_command(true, cx).is_ready() {
                return Poll::Ready(None);
            }
            handshake.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.lock().underway.remove(&self.id);
    }
}
