//! The start time shared by several machines.

use std::time::{Duration, Instant, SystemTime};

use crate::pacer::sleep_until;
use crate::plan::PlanError;

/// Largest accepted delay of a run. Calls due in the meantime start at once; their latency counts from their due time.
const LATE_MAX: Duration = Duration::from_secs(1);
/// A start time farther ahead is taken as a mistake, for example milliseconds instead of seconds.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);
/// The wall clock is read again at this interval, as it may be set while a run waits.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Checks that measuring can still begin at `start_at`.
pub(crate) fn check(start_at: SystemTime, now: SystemTime) -> Result<(), PlanError> {
    match start_at.duration_since(now) {
        Ok(ahead) if ahead > WAIT_MAX => Err(PlanError::Ahead { by: ahead }),
        Err(late) if late.duration() > LATE_MAX => Err(PlanError::Late { by: late.duration() }),
        _ => Ok(()),
    }
}

/// Waits until the warm-up begins and returns the time at which it was due. A late run thus keeps to the common
/// schedule.
pub(crate) async fn wait_for_warm_up(start_at: SystemTime, warm_up: Duration) -> Instant {
    loop {
        let (now, wall) = (Instant::now(), SystemTime::now());
        match (start_at - warm_up).duration_since(wall) {
            Ok(ahead) if ahead > CLOCK_CHECK_INTERVAL => tokio::time::sleep(CLOCK_CHECK_INTERVAL / 2).await,
            Ok(ahead) => {
                sleep_until(now + ahead).await;
                return now + ahead;
            }
            Err(late) => return now.checked_sub(late.duration()).unwrap_or(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_or_implausible_start_time_is_rejected() {
        let now = SystemTime::now();
        let error_of = |start_at| check(start_at, now).unwrap_err().to_string();
        assert_eq!(check(now + Duration::from_secs(90), now), Ok(()));
        assert_eq!(check(now - Duration::from_millis(900), now), Ok(()));
        assert_eq!(
            error_of(now - Duration::from_millis(2500)),
            "--start-at was 2.500 s ago; use a later time, or synchronize the clocks"
        );
        assert!(error_of(now + Duration::from_secs(100_000)).contains("is 100000 s ahead"));
    }

    #[tokio::test]
    async fn warm_up_ends_at_start_time() {
        let warm_up = Duration::from_millis(50);
        let (began, start_at) = (Instant::now(), SystemTime::now() + Duration::from_millis(150));
        let base = wait_for_warm_up(start_at, warm_up).await;
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(99), "{waited:?}");
        let off = (base + warm_up).duration_since(began).abs_diff(Duration::from_millis(150));
        assert!(off < Duration::from_millis(1), "{off:?}");
    }

    #[tokio::test]
    async fn late_start_keeps_common_schedule() {
        let (now, start_at) = (Instant::now(), SystemTime::now() + Duration::from_millis(200));
        let warm_up = Duration::from_secs(2);
        let base = wait_for_warm_up(start_at, warm_up).await;
        assert!(base < now, "the warm-up was to begin 1.8 s ago");
        let off = (base + warm_up).duration_since(now).abs_diff(Duration::from_millis(200));
        assert!(off < Duration::from_millis(1), "{off:?}");
    }
}
