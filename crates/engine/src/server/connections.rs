//! The open connections of a server: how many there may be, how much they may hold, which has to go for another, and
//! all that is done to each of them.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use slab::Slab;
use thalweg_http2::ErrorCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::draining::Draining;
use super::upkeep::{Times, Upkeep};
use crate::connection::Connection;
use crate::net::ListenAddress;
use crate::random::random_unit;
use crate::registry::{self, Registry};
use crate::snapshot::{Counts, ServerSnapshot, SocketSnapshot};
#[cfg(feature = "tls")]
use crate::tls::Held;

/// How many connections a server has, how much they hold, and how long they stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    pub(super) max: Option<usize>,
    /// Of one IP address.
    pub(super) max_per_address: Option<usize>,
    /// How many bytes peers may have all of them hold.
    pub(super) memory_max: usize,
    /// The same of one connection, beyond one message.
    pub(super) held_max: usize,
    pub(super) times: Times,
}

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    /// The server's number in the process.
    id: u64,
    /// What it listens on, by the numbers of the sockets.
    listening: OnceLock<Vec<(u64, ListenAddress)>>,
    limits: ConnectionLimits,
    list: Mutex<List>,
    emptied: Notify,
    draining: Draining,
}

#[derive(Debug, Default)]
struct List {
    open: Slab<Arc<Open>>,
    by_address: HashMap<IpAddr, usize>,
    /// When room was last made.
    room_made_at: Option<Instant>,
    /// What connections have done that are over, and when the last call on one of them was.
    calls: Counts,
    last_call: Option<SystemTime>,
}

#[derive(Debug)]
struct Open {
    connection: Arc<Connection>,
    address: Option<IpAddr>,
    upkeep: Mutex<Upkeep>,
    /// Where it was accepted.
    local: Option<Arc<ListenAddress>>,
    /// What TLS takes below it.
    #[cfg(feature = "tls")]
    tls: Held,
}

/// The servers of the process.
static SERVERS: Registry<Connections> = Registry::new();

/// The servers of the process, in the order of their numbers.
pub fn servers() -> Vec<ServerSnapshot> {
    SERVERS.all().iter().map(|server| server.snapshot()).collect()
}

/// The socket of this number, if a server has it.
pub(crate) fn socket(id: u64) -> Option<SocketSnapshot> {
    SERVERS.all().iter().find_map(|server| server.socket(id))
}

/// How often all connections are looked at.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Room is not made more often: a look at all connections takes 200 µs where there are 10,000.
const ROOM_INTERVAL: Duration = Duration::from_millis(10);
/// While all connections together hold three quarters of what they may, one has so much of a budget beyond one message,
/// in bytes.
const HELD_MAX_TIGHT: usize = 1 << 20;

impl Connections {
    pub(super) fn new(limits: ConnectionLimits, draining: Draining) -> Arc<Self> {
        let connections = Arc::new(Self {
            id: registry::next_id(),
            listening: OnceLock::new(),
            limits,
            list: Mutex::default(),
            emptied: Notify::new(),
            draining,
        });
        SERVERS.add(connections.id, &connections);
        connections
    }

    /// The server listens on these.
    pub(super) fn listen(&self, addresses: &[ListenAddress]) {
        let numbered = addresses.iter().map(|address| (registry::next_id(), address.clone())).collect();
        // A server is bound once.
        let _ = self.listening.set(numbered);
    }

    fn listening(&self) -> &[(u64, ListenAddress)] {
        self.listening.get().map_or(&[], Vec::as_slice)
    }

    fn snapshot(&self) -> ServerSnapshot {
        let list = self.lock();
        let (mut calls, mut last_call) = (list.calls, list.last_call);
        let open: Vec<_> = list.open.iter().map(|(_, entry)| Arc::clone(&entry.connection)).collect();
        drop(list);
        for connection in &open {
            let traffic = connection.lock().traffic();
            calls += traffic.calls;
            last_call = last_call.max(traffic.last_stream);
        }
        let mut sockets: Vec<_> = open.iter().map(|connection| connection.id).collect();
        sockets.sort_unstable();
        ServerSnapshot { id: self.id, listening: self.listening().to_vec(), calls, last_call, sockets }
    }

    fn socket(&self, id: u64) -> Option<SocketSnapshot> {
        if let Some((_, address)) = self.listening().iter().find(|(listening, _)| *listening == id) {
            return Some(SocketSnapshot { id, local: Some(address.clone()), peer: None, traffic: None });
        }
        let list = self.lock();
        let (_, entry) = list.open.iter().find(|(_, entry)| entry.connection.id == id)?;
        let (connection, local) = (Arc::clone(&entry.connection), entry.local.clone());
        drop(list);
        let traffic = Some(connection.lock().traffic());
        let local = local.map(|local| (*local).clone());
        Some(SocketSnapshot { id, local, peer: Some(connection.peer.clone()), traffic })
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
        let idle_since = |open: &Arc<Open>| {
            let state = open.connection.lock();
            state.idle_since(now).filter(|_| !state.http2.is_closed())
        };
        let all = self.all();
        let idle = all.iter().filter_map(|open| Some((idle_since(open)?, open)));
        if let Some((_, open)) = idle.min_by_key(|(since, _)| *since) {
            tracing::debug!(peer = open.connection.peer, "an idle connection is ended to make room");
            open.close(ErrorCode::NoError, "an idle connection had to make room");
        }
    }

    pub(super) fn register(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        address: Option<IpAddr>,
        local: Option<Arc<ListenAddress>>,
    ) -> Registered {
        let upkeep = Upkeep::new(&self.limits.times, random_unit(), Instant::now());
        let connection = Arc::clone(connection);
        let open = Arc::new(Open {
            connection,
            address,
            upkeep: Mutex::new(upkeep),
            local,
            #[cfg(feature = "tls")]
            tls: Held::default(),
        });
        let mut list = self.lock();
        let index = list.open.insert(Arc::clone(&open));
        if let Some(address) = address {
            *list.by_address.entry(address).or_default() += 1;
        }
        drop(list);
        if self.draining.has_begun() {
            open.drain();
        }
        Registered { connections: Arc::clone(self), open, index }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All there are. Whoever waits for one of them must not have the others wait for the list.
    fn all(&self) -> Vec<Arc<Open>> {
        self.lock().open.iter().map(|(_, open)| Arc::clone(open)).collect()
    }

    /// Looks after all connections, once a second.
    pub(super) async fn sweep(self: Arc<Self>) {
        let mut is_tight = false;
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            is_tight = self.look(Instant::now(), is_tight);
        }
    }

    /// Looks at each connection, and sees to it that all together hold no more than they may. `is_tight`: their budgets
    /// are small. Returns whether they are now.
    fn look(&self, now: Instant, is_tight: bool) -> bool {
        let memory_max = self.limits.memory_max;
        let mut total: usize = 0;
        let mut holding = Vec::new();
        for open in self.all() {
            let mut upkeep = open.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
            let held = upkeep.look(&open.connection, &self.limits.times, now);
            drop(upkeep);
            #[cfg(feature = "tls")]
            let held = held + open.tls.bytes();
            total += held;
            if held > 0 {
                holding.push((held, open));
            }
        }
        let becomes_tight = total > memory_max / 4 * if is_tight { 2 } else { 3 };
        if becomes_tight || is_tight {
            let held_max = self.limits.held_max;
            let held_max = if becomes_tight { held_max.min(HELD_MAX_TIGHT) } else { held_max };
            for open in self.all() {
                let mut state = open.connection.lock();
                state.http2.set_held_max(held_max);
                state.notify_driver();
            }
        }
        if total > memory_max {
            holding.sort_unstable_by_key(|(held, _)| std::cmp::Reverse(*held));
            for (held, open) in holding {
                if total <= memory_max {
                    break;
                }
                tracing::warn!(
                    peer = open.connection.peer,
                    held,
                    "a connection is ended: peers hold too much memory"
                );
                open.close(ErrorCode::EnhanceYourCalm, "peers have the server hold too much memory");
                total -= held;
            }
        }
        becomes_tight
    }

    pub(super) fn draining(&self) -> &Draining {
        &self.draining
    }

    /// Tells every client to go, waits for their calls, and cuts off what is left after `grace`.
    pub(super) async fn drain(&self, grace: Duration) {
        self.draining.begin();
        self.all().iter().for_each(|open| open.drain());
        if tokio::time::timeout(grace, self.emptied()).await.is_ok() {
            return;
        }
        let why = "the server's shutdown grace is over";
        self.all().iter().for_each(|open| open.close(ErrorCode::NoError, why));
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

impl Drop for Connections {
    fn drop(&mut self) {
        SERVERS.remove(self.id);
    }
}

impl Open {
    fn drain(&self) {
        self.connection.lock().drain();
    }

    fn close(&self, code: ErrorCode, why: &str) {
        self.connection.lock().close(code, why);
    }
}

/// A connection's entry in the list, given up when it is over.
pub(super) struct Registered {
    connections: Arc<Connections>,
    open: Arc<Open>,
    index: usize,
}

#[cfg(feature = "tls")]
impl Registered {
    /// Where TLS says what it takes.
    pub(super) fn tls(&self) -> Held {
        self.open.tls.clone()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let traffic = self.open.connection.lock().traffic();
        let mut list = self.connections.lock();
        list.open.remove(self.index);
        list.calls += traffic.calls;
        list.last_call = list.last_call.max(traffic.last_stream);
        if let Some(address) = self.open.address
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
