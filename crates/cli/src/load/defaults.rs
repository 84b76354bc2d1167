//! Default values.

use std::time::Duration;

/// Concurrent unary calls. For streams the default is one per connection.
pub(crate) const IN_FLIGHT_DEFAULT: u32 = 64;
/// Duration of a run without duration or number of calls.
pub(crate) const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// Interval of the result.
pub(super) const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// Warm-up of a run with a duration.
pub(crate) const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);
/// Maximum number of concurrent calls in an open loop.
pub(super) const IN_FLIGHT_MAX_DEFAULT: u32 = 1000;
/// First rate that a search tries.
pub(super) const SEARCH_RATE_DEFAULT: f64 = 100.0;
/// Duration of each try of a search.
pub(super) const SEARCH_WINDOW_DEFAULT: Duration = Duration::from_secs(5);
