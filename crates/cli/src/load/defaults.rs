//! What holds where nothing is said.

use std::time::Duration;

/// Unary calls in flight; of streams, there is one for each connection.
pub(crate) const IN_FLIGHT_DEFAULT: u32 = 64;
/// How long a run lasts that was told neither a time nor a number.
pub(crate) const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// How long an interval of the result is.
pub(super) const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// How long a run by time warms up.
pub(crate) const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);
/// Calls in flight at the most, where a schedule says when they begin.
pub(super) const IN_FLIGHT_MAX_DEFAULT: u32 = 1000;
/// The rate that is tried first where the highest one is looked for.
pub(super) const SEARCH_RATE_DEFAULT: f64 = 100.0;
/// How long a rate is tried then.
pub(super) const SEARCH_WINDOW_DEFAULT: Duration = Duration::from_secs(5);
