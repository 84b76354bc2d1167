//! The endpoints of one channel: [`Endpoints`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_balance::ConnectivityState;
use thalweg_balance::retry::prefer_untried;
use tokio::sync::futures::Notified;

use super::attempt_counts::AttemptCounts;
use super::balanced::Balanced;
use super::control::BalancedConfig;
use super::waiting_calls::WaitingCalls;
use crate::connection::{Connection, StreamWaitQueue};
use crate::lanes::{Closing, Connector, FreeStream, Lane, LaneSet, Lanes};
use crate::registry::{self, Registry};
use crate::request_headers::Origin;
use crate::snapshot::{ChannelSnapshot, SentCalls, SocketSnapshot};
use crate::status::Status;

/// The endpoints of one channel. Dropping it closes each connection after its last call.
pub(crate) struct Endpoints {
    /// Number of the channel, unique in the process.
    id: u64,
    kind: Kind,
    /// Calls that wait for a free stream of any endpoint.
    queue: Arc<StreamWaitQueue>,
    waiting_calls: WaitingCalls,
    attempt_counts: AttemptCounts,
    /// Target URI with its scheme.
    target: String,
    /// Calls of endpoints that are gone.
    calls: Arc<Mutex<SentCalls>>,
}

enum Kind {
    /// gRPC's `pick_first`: all addresses of the target are one endpoint.
    One(Arc<LaneSet>),
    Balanced(Box<Balanced>),
}

/// The channels of the process.
static CHANNELS: Registry<Endpoints> = Registry::new();

/// Returns the channels of the process, ordered by number.
pub fn channels() -> Vec<ChannelSnapshot> {
    CHANNELS.all().iter().map(|channel| channel.snapshot()).collect()
}

/// Returns the socket of this number, if it belongs to a channel.
pub(crate) fn socket(id: u64) -> Option<SocketSnapshot> {
    CHANNELS.all().iter().find_map(|channel| channel.sets().iter().find_map(|set| set.socket(id)))
}

impl Endpoints {
    /// Creates the endpoints of a channel, balanced if there is a `policy`.
    pub(crate) fn new(
        lanes: Lanes,
        connector: Connector,
        policy: Option<(BalancedConfig, Origin<'_>)>,
    ) -> Arc<Self> {
        let queue = Arc::clone(&connector.connection.queue);
        let target = connector.addresses.target.canonical();
        let calls = Arc::clone(&connector.channel_calls);
        let kind = match policy {
            None => Kind::One(LaneSet::new(&lanes, connector, None)),
            Some((policy, origin)) => {
                Kind::Balanced(Box::new(Balanced::new(lanes, connector, policy, origin)))
            }
        };
        let endpoints = Arc::new(Self {
            id: registry::next_id(),
            kind,
            queue,
            waiting_calls: WaitingCalls::default(),
            attempt_counts: AttemptCounts::default(),
            target,
            calls,
        });
        CHANNELS.add(endpoints.id, &endpoints);
        endpoints
    }

    /// Returns whether the policy hashes the value of a header.
    #[inline]
    pub(crate) fn has_hash_header(&self) -> bool {
        match &self.kind {
            Kind::One(_) => false,
            Kind::Balanced(balanced) => balanced.has_hash_header(),
        }
    }

    /// Returns the header whose value the policy hashes, if it does.
    #[cold]
    pub(crate) fn hash_header(&self) -> Option<Arc<str>> {
        match &self.kind {
            Kind::One(_) => None,
            Kind::Balanced(balanced) => balanced.hash_header(),
        }
    }

    /// Returns the connection for the next call; `None` if the call has to wait or fails.
    #[inline]
    pub(crate) fn pick(&self, affinity: Option<u64>) -> Option<Arc<Connection>> {
        match &self.kind {
            Kind::One(set) => set.pick(affinity),
            Kind::Balanced(balanced) => balanced.pick(affinity),
        }
    }

    /// Returns the connection for another attempt at a call, preferably of a server that it has not tried; `None` as
    /// [`pick`](Self::pick).
    pub(crate) fn pick_untried(
        &self,
        affinity: Option<u64>,
        is_tried: impl Fn(&Connection) -> bool,
    ) -> Option<Arc<Connection>> {
        match &self.kind {
            Kind::One(set) => set.pick(affinity),
            Kind::Balanced(balanced) => {
                prefer_untried(|| balanced.pick(affinity), |connection| is_tried(connection))
            }
        }
    }

    /// Waits for a connection, and makes one if necessary.
    ///
    /// # Errors
    /// UNAVAILABLE if connecting fails, or has failed and the backoff is not over yet; never with `wait_for_ready`.
    pub(crate) async fn connected(
        &self,
        affinity: Option<u64>,
        wait_for_ready: bool,
    ) -> Result<Arc<Connection>, Status> {
        match &self.kind {
            Kind::One(set) => set.connected(wait_for_ready).await,
            Kind::Balanced(balanced) => balanced.connected(affinity, wait_for_ready).await,
        }
    }

    /// Waits for the next decision about the endpoints. Returns false if calls fail at the moment, except those that
    /// `wait_for_ready`, and if there are no decisions.
    pub(crate) async fn decided(&self, wait_for_ready: bool) -> bool {
        match &self.kind {
            Kind::One(_) => false,
            Kind::Balanced(balanced) => balanced.decided(wait_for_ready).await,
        }
    }

    /// Notes that a connection accepts no more calls.
    pub(crate) fn lost(&self, connection: &Arc<Connection>) {
        let sets = self.sets();
        if !sets.iter().any(|set| set.lost(connection)) {
            // Another call has noticed it first, but may not have updated the ready lanes. Until then calls would be
            // given this connection.
            for set in &sets {
                set.update();
            }
        }
    }

    /// Returns a connection that may have a free stream.
    pub(super) fn with_free_stream(&self) -> FreeStream {
        match &self.kind {
            Kind::One(set) => set.with_free_stream(),
            Kind::Balanced(balanced) => balanced.with_free_stream(),
        }
    }

    pub(crate) fn waiting_calls(&self) -> &WaitingCalls {
        &self.waiting_calls
    }

    /// Returns the counts of attempts beyond the first.
    pub(crate) fn attempt_counts(&self) -> &AttemptCounts {
        &self.attempt_counts
    }

    pub(crate) fn queue(&self) -> &Arc<StreamWaitQueue> {
        &self.queue
    }

    /// Notes that a call has to wait for a stream, which may be a reason to open another lane.
    pub(super) fn note_waiting(&self) {
        for set in self.sets() {
            set.note_waiting();
        }
    }

    /// Connects the channel: all lanes of its only endpoint, or the first endpoint of a balanced channel.
    pub(crate) async fn connect(&self) -> Result<(), Status> {
        match &self.kind {
            Kind::One(set) => set.connect_all().await,
            Kind::Balanced(balanced) => balanced.connected(None, false).await.map(drop),
        }
    }

    /// Skips the backoff after failed attempts.
    pub(crate) fn reset_backoff(&self) {
        for set in self.sets() {
            set.reset_backoff();
        }
    }

    /// Returns why there is no connection, if an attempt to connect has failed.
    #[cold]
    pub(crate) fn last_connect_error(&self) -> Option<String> {
        match &self.kind {
            Kind::One(set) => set.last_connect_error(),
            Kind::Balanced(balanced) => balanced.error(),
        }
    }

    /// Returns the state of the channel.
    pub(crate) fn state(&self) -> ConnectivityState {
        match &self.kind {
            Kind::One(set) => set.connectivity(),
            Kind::Balanced(balanced) => balanced.state(),
        }
    }

    /// Waits until the state of the channel may have changed, also if it does before the future is polled.
    pub(crate) fn state_changed(&self) -> Notified<'_> {
        match &self.kind {
            Kind::One(set) => set.state_changed(),
            Kind::Balanced(balanced) => balanced.state_changed(),
        }
    }

    /// Returns the open lanes and the closing ones of all endpoints.
    pub(crate) fn list(&self) -> (Vec<Arc<Lane>>, Vec<Closing>) {
        let (mut lanes, mut closing) = (Vec::new(), Vec::new());
        for set in self.sets() {
            let (open, closes) = set.lists();
            lanes.extend(open);
            closing.extend(closes);
        }
        (lanes, closing)
    }

    /// Opens `count` more lanes of the first endpoint.
    #[cfg(feature = "testing")]
    pub(crate) fn open(&self, count: usize, reason: &str) {
        if let [first, ..] = self.sets().as_slice() {
            first.open_lanes(count, reason);
        }
    }

    /// Closes lanes of the first endpoint.
    #[cfg(feature = "testing")]
    pub(crate) fn close(&self, ids: &[u64], reason: &str) {
        if let [first, ..] = self.sets().as_slice() {
            first.close_lanes(ids, reason);
        }
    }

    fn sets(&self) -> Vec<Arc<LaneSet>> {
        match &self.kind {
            Kind::One(set) => vec![Arc::clone(set)],
            Kind::Balanced(balanced) => balanced.sets(),
        }
    }

    /// Returns the channel's endpoints and lanes with their calls.
    pub(crate) fn snapshot(&self) -> ChannelSnapshot {
        let endpoints: Vec<_> = self.sets().iter().map(|set| set.snapshot()).collect();
        let mut calls = *self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for endpoint in &endpoints {
            calls += SentCalls { counts: endpoint.calls, last: endpoint.last_call };
        }
        let events = match &self.kind {
            Kind::One(set) => set.events().snapshot(),
            Kind::Balanced(balanced) => balanced.events().snapshot(),
        };
        let SentCalls { counts: calls, last: last_call } = calls;
        let (id, target, state) = (self.id, self.target.clone(), self.state());
        let further_attempts = self.attempt_counts.snapshot();
        ChannelSnapshot { id, target, state, calls, last_call, further_attempts, events, endpoints }
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        CHANNELS.remove(self.id);
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoints").field("target", &self.target).finish_non_exhaustive()
    }
}
