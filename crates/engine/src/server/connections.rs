//! Open connections of a server: limits, memory, admission, maintenance and draining.

use std::cmp::Reverse;
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
use super::maintenance::{CheckResult, Maintenance, Times};
use crate::connection::Connection;
use crate::memory_budget::{BufferedBytes, MemoryBudget};
use crate::net::ListenAddress;
use crate::random::random_unit;
use crate::registry::{self, Registry};
use crate::snapshot::{Counts, ServerSnapshot, SocketSnapshot};
#[cfg(feature = "tls")]
use crate::tls;

/// Limits on the number, memory and age of a server's connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    pub(super) max: Option<usize>,
    /// Per IP address.
    pub(super) max_per_address: Option<usize>,
    /// Memory budget for all peers, in bytes.
    pub(super) memory_max: usize,
    /// Buffer budget of one connection beyond one message, in bytes.
    pub(super) buffer_budget: usize,
    pub(super) times: Times,
}

/// Open connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    /// Identifier of the server in the process.
    id: u64,
    /// Listening sockets with their identifiers.
    listening: OnceLock<Vec<(u64, ListenAddress)>>,
    limits: ConnectionLimits,
    memory: Arc<MemoryBudget>,
    list: Mutex<ConnectionList>,
    emptied: Notify,
    draining: Draining,
}

#[derive(Debug, Default)]
struct ConnectionList {
    open: Slab<Arc<OpenConnection>>,
    by_address: HashMap<IpAddr, usize>,
    /// Time at which room was last made.
    room_made_at: Option<Instant>,
    /// Calls of closed connections, and the time of their last call.
    calls: Counts,
    last_call: Option<SystemTime>,
}

#[derive(Debug)]
struct OpenConnection {
    connection: Arc<Connection>,
    address: Option<IpAddr>,
    maintenance: Mutex<Maintenance>,
    /// The listening address.
    local: Option<Arc<ListenAddress>>,
    /// Memory used by TLS.
    #[cfg(feature = "tls")]
    tls: tls::BufferMemory,
}

/// The servers of the process.
static SERVERS: Registry<Connections> = Registry::new();

/// Returns the servers of the process, in the order of their identifiers.
pub fn servers() -> Vec<ServerSnapshot> {
    SERVERS.all().iter().map(|server| server.snapshot()).collect()
}

/// Returns the socket with this identifier, if a server has it.
pub(crate) fn socket(id: u64) -> Option<SocketSnapshot> {
    SERVERS.all().iter().find_map(|server| server.socket(id))
}

/// Interval of maintenance.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Interval while connections wait for memory, so that stalled ones are found sooner.
const MEMORY_PRESSURE_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum interval: a pass over 10,000 connections takes some milliseconds.
const MEMORY_PRESSURE_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Minimum interval of making room: a pass over 10,000 connections takes 200 µs.
const ROOM_INTERVAL: Duration = Duration::from_millis(10);
/// Buffer budget of one connection beyond one message, in bytes, while connections use three quarters of the memory
/// budget.
const BUFFER_BUDGET_TIGHT: usize = 1 << 20;
/// Inverse of the fraction of memory freed at once when connections wait for it.
const ROOM_MADE: usize = 8;

impl Connections {
    pub(super) fn new(limits: ConnectionLimits, draining: Draining) -> Arc<Self> {
        let connections = Arc::new(Self {
            id: registry::next_id(),
            listening: OnceLock::new(),
            limits,
            memory: MemoryBudget::new(limits.memory_max),
            list: Mutex::default(),
            emptied: Notify::new(),
            draining,
        });
        SERVERS.add(connections.id, &connections);
        connections
    }

    /// Sets the addresses that the server listens on.
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
        Some(SocketSnapshot { id, local, peer: Some(connection.peer.to_string()), traffic })
    }

    /// Returns whether another connection from this address is allowed. If the server is full, it makes room for the
    /// next.
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

    /// Closes the connection that has been idle for longest, if any is idle.
    pub(super) fn make_room(&self) {
        let now = Instant::now();
        let mut list = self.lock();
        if list.room_made_at.is_some_and(|at| now < at + ROOM_INTERVAL) {
            return;
        }
        list.room_made_at = Some(now);
        drop(list);
        let idle_since = |open: &Arc<OpenConnection>| {
            let state = open.connection.lock();
            state.idle_since(now).filter(|_| !state.http2.is_closed())
        };
        let all = self.all();
        let idle = all.iter().filter_map(|open| Some((idle_since(open)?, open)));
        if let Some((_, open)) = idle.min_by_key(|(since, _)| *since) {
            tracing::debug!(
                peer = &*open.connection.peer,
                "closing an idle connection to free file descriptors"
            );
            open.close(ErrorCode::NoError, "idle connection closed to free file descriptors");
        }
    }

    pub(super) fn register(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        address: Option<IpAddr>,
        local: Option<Arc<ListenAddress>>,
    ) -> Registered {
        let maintenance = Maintenance::new(&self.limits.times, random_unit(), Instant::now());
        let connection = Arc::clone(connection);
        let open = Arc::new(OpenConnection {
            connection,
            address,
            maintenance: Mutex::new(maintenance),
            local,
            #[cfg(feature = "tls")]
            tls: tls::BufferMemory::charging(&self.memory),
        });
        let mut list = self.lock();
        let index = list.open.insert(Arc::clone(&open));
        if let Some(address) = address {
            *list.by_address.entry(address).or_default() += 1;
        }
        drop(list);
        if self.draining.has_started() {
            open.drain();
        }
        Registered { connections: Arc::clone(self), open, index }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all connections. Callers lock single ones, which must not block the list.
    fn all(&self) -> Vec<Arc<OpenConnection>> {
        self.lock().open.iter().map(|(_, open)| Arc::clone(open)).collect()
    }

    /// Returns the memory budget that all connections charge.
    pub(super) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Maintains all connections once a second, and more often while connections wait for memory.
    pub(super) async fn sweep(self: Arc<Self>) {
        let mut is_tight = false;
        loop {
            let interval =
                if self.memory.is_waited_for() { MEMORY_PRESSURE_INTERVAL } else { SWEEP_INTERVAL };
            let is_pressed = tokio::select! {
                biased;
                () = poll_fn(|cx| self.memory.poll_pressed(cx)) => true,
                () = tokio::time::sleep(interval) => false,
            };
            is_tight = self.check(Instant::now(), is_tight);
            if is_pressed {
                tokio::time::sleep(MEMORY_PRESSURE_INTERVAL_MIN).await;
            }
        }
    }

    /// Wakes connections that wait for memory, one after each poll of the runtime's sockets.
    pub(super) async fn pace(self: Arc<Self>) {
        loop {
            poll_fn(|cx| self.memory.poll_paced(cx)).await;
            loop {
                // The runtime wakes this task after its next poll of the sockets.
                tokio::task::yield_now().await;
                let Some(waiter) = self.memory.start_burst() else { break };
                waiter.wake();
            }
        }
    }

    /// Checks each connection and enforces the memory budget. `is_tight` means that connections have small budgets.
    /// Returns whether they have now.
    fn check(&self, now: Instant, is_tight: bool) -> bool {
        let memory_max = self.memory.max();
        let mut total = BufferedBytes::default();
        let mut holding = Vec::new();
        for open in self.all() {
            let mut maintenance = open.maintenance.lock().unwrap_or_else(PoisonError::into_inner);
            let result = maintenance.check(&open.connection, &self.limits.times, now);
            drop(maintenance);
            #[cfg(feature = "tls")]
            let result = CheckResult {
                buffered: result.buffered + BufferedBytes { requests: open.tls.bytes(), responses: 0 },
                ..result
            };
            total = total + result.buffered;
            if result.buffered.all() > 0 {
                holding.push((result, open));
            }
        }
        let becomes_tight = total.all() > memory_max / 4 * if is_tight { 2 } else { 3 };
        if becomes_tight || is_tight {
            let buffer_budget = self.limits.buffer_budget;
            let buffer_budget =
                if becomes_tight { buffer_budget.min(BUFFER_BUDGET_TIGHT) } else { buffer_budget };
            for open in self.all() {
                let mut state = open.connection.lock();
                state.http2.set_buffer_budget(buffer_budget);
                state.notify_driver();
            }
        }
        self.make_memory(total, holding);
        becomes_tight
    }

    /// Closes connections that exceed the memory budget: first those whose clients barely read their responses. If
    /// requests take too much, those with the largest requests follow. Responses that clients do read are no reason to
    /// close, since no more are built until they have been sent.
    fn make_memory(&self, mut total: BufferedBytes, mut holding: Vec<(CheckResult, Arc<OpenConnection>)>) {
        let max = self.memory.max();
        let target = if self.memory.is_waited_for() { max - max / ROOM_MADE } else { max };
        holding.sort_unstable_by_key(|(result, _)| {
            Reverse((
                result.is_stalled,
                result.buffered.requests + if result.is_stalled { result.buffered.responses } else { 0 },
            ))
        });
        for (result, open) in holding {
            let are_requests_too_many = (total.all() > max && total.requests > max / 2)
                || (total.all() > max + max / ROOM_MADE && total.requests > max / ROOM_MADE);
            if total.all() <= target || !(result.is_stalled || are_requests_too_many) {
                return;
            }
            tracing::warn!(
                peer = &*open.connection.peer,
                held = result.buffered.all(),
                "closing a connection: peers use too much memory"
            );
            open.close(ErrorCode::EnhanceYourCalm, "the server's memory limit is reached");
            total = total - result.buffered;
        }
    }

    pub(super) fn draining(&self) -> &Draining {
        &self.draining
    }

    /// Sends GOAWAY to all clients, waits for their calls, and closes the remaining connections after `grace`.
    pub(super) async fn drain(&self, grace: Duration) {
        self.draining.begin();
        self.all().iter().for_each(|open| open.drain());
        if tokio::time::timeout(grace, self.emptied()).await.is_ok() {
            return;
        }
        let why = "the server's shutdown timeout expired";
        self.all().iter().for_each(|open| open.close(ErrorCode::NoError, why));
        // The drivers flush the GOAWAY and linger briefly.
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

impl OpenConnection {
    fn drain(&self) {
        self.connection.lock().drain();
    }

    fn close(&self, code: ErrorCode, why: &str) {
        self.connection.lock().close(code, why);
    }
}

/// A connection's entry in the list, removed on drop.
pub(super) struct Registered {
    connections: Arc<Connections>,
    open: Arc<OpenConnection>,
    index: usize,
}

#[cfg(feature = "tls")]
impl Registered {
    /// Returns the accounting of the connection's TLS memory.
    pub(super) fn tls(&self) -> tls::BufferMemory {
        self.open.tls.clone()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = self.open.connection.lock();
        state.release_memory();
        let traffic = state.traffic();
        drop(state);
        #[cfg(feature = "tls")]
        self.open.tls.note(0);
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
