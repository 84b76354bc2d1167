//! Whom a connection and a lane tell of what becomes of them.
//!
//! Both are held by those whom they tell, so they know them weakly, and by what they tell alone.

use std::sync::Arc;

use crate::connection::Connection;

/// Whose connection it is: a lane.
pub(crate) trait ConnectionOwner: Send + Sync {
    /// The connection takes no more calls, or is over.
    fn lost(&self, connection: &Arc<Connection>);

    /// The connection has been made.
    fn opened(&self, connection: &Arc<Connection>);

    /// Answers have come on the thread of this number, which were handled on another one before.
    fn answers_came_on(&self, thread: u32);

    /// The connection is over.
    fn over(&self, connection: &Arc<Connection>);
}

/// Whose lane it is: a channel's set of them.
pub(super) trait LaneOwner: Send + Sync {
    /// A lane's state has changed, or it may try to connect again.
    fn refresh(&self);

    /// Whether there are other lanes.
    fn has_several_lanes(&self) -> bool;
}
