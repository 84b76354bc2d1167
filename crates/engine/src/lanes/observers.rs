//! Observers of connections and lanes, notified of changes.
//!
//! The observer holds the connection or lane, so these know their observer weakly, and only through these traits.

use std::sync::Arc;

use crate::connection::Connection;

/// The observer of a connection: its lane.
pub(crate) trait ConnectionObserver: Send + Sync {
    /// Called when the connection accepts no more calls, or is over.
    fn lost(&self, connection: &Arc<Connection>);

    /// Called when the connection was made.
    fn opened(&self, connection: &Arc<Connection>);

    /// Called when responses arrive on a different thread than before, with that thread's number.
    fn responses_moved_to(&self, thread: u32);

    /// Called when the connection is over.
    fn ended(&self, connection: &Arc<Connection>);
}

/// The observer of a lane: the channel's set of lanes.
pub(super) trait LaneObserver: Send + Sync {
    /// Called when a lane's state has changed, or it may try to connect again.
    fn refresh(&self);

    /// Returns whether a lane that failed to connect calls [`backoff_ended`](Self::backoff_ended), because no call
    /// waits for it.
    fn waits_for_backoff(&self) -> bool;

    /// Called when the backoff of the lane with this identifier is over.
    fn backoff_ended(&self, lane: u64);
}

/// The observer of the lanes of an endpoint: a channel that balances over several.
pub(crate) trait LaneSetObserver: Send + Sync {
    /// Called when the endpoint's state may have changed.
    fn changed(&self);
}
