//! The open connections of a server: how many there may be, which has to go for another, and all that is done to each
//! of them.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use slab::Slab;
use thalweg_http2::ErrorCode;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::connection::Connection;

/// How many connections a server has, and how long one without calls stays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionLimits {
    pub(super) max: Option<usize>,
    /// Of one IP address.
    pub(super) max_per_address: Option<usize>,
    pub(super) max_idle: Option<Duration>,
}

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    list: Mutex<List>,
    emptied: Notify,
    draining: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct List {
    open: Slab<Entry>,
    by_address: HashMap<IpAddr, usize>,
    /// When room was last made.
    room_made_at: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    address: Option<IpAddr>,
}

/// How often idle connections are looked for, to give their memory back and to end them.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Room is not made more often: a look at all connections takes 200 µs where there are 10,000.
const ROOM_INTERVAL: Duration = Duration::from_millis(10);

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, list: Mutex::default(), emptied: Notify::new(), draining: watch::Sender::new(false) }
    }

    /// Whether one more of this address is welcome. If not because all places are taken, one is made free for the next.
    pub(super) fn has_room_for(&self, address: Option<IpAddr>) -> bool {
        let list = self.lock();
        let of_address = address.and_then(|address| list.by_address.get(&address).copied()).unwrap_or(0);
        if self.limits.max_per_address.is_some_and(|max| of_address >= max) {
            return false;
        }
        let is_full = self.limits.max.is_some_and(|max| list.open.len() >= max);
        drop(list);
        if is_full {
            self.make_room();
        }
        !is_full
    }

    /// Ends the connection that has had no call for the longest time, if there is one without.
    pub(super) fn make_room(&self) {
        let now = Instant::now();
        let mut list = self.lock();
        if list.room_made_at.is_some_and(|at| now < at + ROOM_INTERVAL) {
            return;
        }
        list.room_made_at = Some(now);
        drop(list);
        let idle_since = |connection: &Arc<Connection>| {
            let state = connection.lock();
            state.idle_since().filter(|_| !state.http2.is_closed())
        };
        let all = self.all();
        let idle = all.iter().filter_map(|connection| Some((idle_since(connection)?, connection)));
        if let Some((_, connection)) = idle.min_by_key(|(since, _)| *since) {
            tracing::debug!(peer = connection.peer, "an idle connection is ended to make room");
            close(connection, b"an idle connection had to make room");
        }
    }

    pub(super) fn register(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        address: Option<IpAddr>,
    ) -> Registered {
        let mut list = self.lock();
        let index = list.open.insert(Entry { connection: Arc::clone(connection), address });
        if let Some(address) = address {
            *list.by_address.entry(address).or_default() += 1;
        }
        drop(list);
        if *self.draining.borrow() {
            drain(connection);
        }
        Registered { connections: Arc::clone(self), index }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All there are. Whoever waits for one of them must not have the others wait for the list.
    fn all(&self) -> Vec<Arc<Connection>> {
        self.lock().open.iter().map(|(_, entry)| Arc::clone(&entry.connection)).collect()
    }

    /// Connections on which nothing has moved since the last look give their spare memory back; those that have had no
    /// call for too long are ended.
    pub(super) async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let now = Instant::now();
            for connection in self.all() {
                let idle_since = connection.lock().sweep(now);
                if self.limits.max_idle.is_some_and(|max| idle_since + max <= now) {
                    drain(&connection);
                }
            }
        }
    }

    /// Tells every client to go, waits for their calls, and cuts off what is left after `grace`.
    pub(super) async fn drain(&self, grace: Duration) {
        self.draining.send_replace(true);
        self.all().iter().for_each(|connection| drain(connection));
        if tokio::time::timeout(grace, self.emptied()).await.is_ok() {
            return;
        }
        self.all().iter().for_each(|connection| close(connection, b"the server's shutdown grace is over"));
        // The drivers flush that, and linger a moment at most.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.emptied()).await;
    }

    pub(super) async fn emptied(&self) {
        let mut emptied = Box::pin(self.emptied.notified());
        poll_fn(|cx| {
            loop {
                let notified = emptied.as_mut().poll(cx);
                if self.lock().open.is_empty() {
                    return Poll::Ready(());
                }
                if notified.is_pending() {
                    return Poll::Pending;
                }
                emptied = Box::pin(self.emptied.notified());
            }
        })
        .await;
    }
}

fn drain(connection: &Connection) {
    let mut state = connection.lock();
    state.http2.drain(Instant::now().into_std());
    state.notify_driver();
}

fn close(connection: &Connection, why: &[u8]) {
    let mut state = connection.lock();
    state.http2.close(ErrorCode::NoError, why);
    state.notify_driver();
}

/// A connection's entry in the list, given up when it is over.
pub(super) struct Registered {
    connections: Arc<Connections>,
    index: usize,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut list = self.connections.lock();
        let Entry { address, .. } = list.open.remove(self.index);
        if let Some(address) = address
            && let Some(count) = list.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                list.by_address.remove(&address);
            }
        }
        if list.open.is_empty() {
            self.connections.emptied.notify_waiters();
        }
    }
}
