//! What holds where nothing is said.

use std::time::Duration;

/// Unary calls in flight; of streams, there is one for each connection.
pub(super) const IN_FLIGHT_DEFAULT: u32 = 64;
/// How long a run lasts that was told neither a time nor a number.
pub(super) const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// How long a run by time warms up.
pub(super) const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);
