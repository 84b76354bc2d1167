//! Times of settings, as the clock can represent them.

use std::time::Duration;

/// A hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Limits a time of a setting. `Duration::MAX` means "unlimited", but no clock can represent so distant a time: adding
/// it to the current one would panic.
pub(crate) fn bounded(time: Duration) -> Duration {
    time.min(LONGEST)
}
