//! Deadlines of calls.

use std::time::Duration;

use crate::schedule::Schedule;

/// Default time limit of connecting, and of a call, plus the time its messages take.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// Longest time, so that sums of times do not overflow.
pub const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// Deadline of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Not specified.
    Default,
    /// Time after the start of a call.
    After(Duration),
    /// No deadline.
    Never,
}

impl From<Option<Duration>> for Deadline {
    /// Converts a timeout, of which 0 means no deadline.
    fn from(timeout: Option<Duration>) -> Self {
        match timeout {
            None => Self::Default,
            Some(Duration::ZERO) => Self::Never,
            Some(timeout) => Self::After(timeout),
        }
    }
}

impl Deadline {
    /// Returns the timeout of a call whose stream lasts this long, or sends this many messages at a rate.
    ///
    /// The duration of the stream is added. The default timeout also includes the time its messages take.
    pub(super) fn timeout(
        self,
        lasts: Option<Duration>,
        messages: Option<(&Schedule, u64)>,
    ) -> Option<Duration> {
        match (self, lasts) {
            (Self::Never, _) => None,
            (Self::After(timeout), lasts) => Some(timeout + lasts.unwrap_or_default()),
            (Self::Default, Some(lasts)) => Some(TIMEOUT_DEFAULT + lasts),
            (Self::Default, None) => {
                let sending = messages.map(|(rate, count)| sending(rate, count));
                Some(TIMEOUT_DEFAULT + sending.unwrap_or_default())
            }
        }
    }
}

/// Returns the time needed to send `messages` messages.
fn sending(rate: &Schedule, messages: u64) -> Duration {
    // A schedule with fewer messages ends with its last piece.
    let last = rate.start_of(messages.saturating_sub(1) as f64);
    last.map_or(rate.written_length(), |last| Duration::from_secs_f64(last.min(YEAR.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_deadline_includes_requested_duration() {
        let check = |timeout: Option<u64>, rate: &str, lasts: Option<u64>, expected: Option<u64>| {
            let schedule: Option<Schedule> = (!rate.is_empty()).then(|| rate.parse().unwrap());
            let messages = schedule.as_ref().map(|rate| (rate, 31));
            let [timeout, lasts, expected] = [timeout, lasts, expected].map(|it| it.map(Duration::from_secs));
            let deadline = Deadline::from(timeout);
            assert_eq!(deadline.timeout(lasts, messages), expected, "{timeout:?}, {rate}, {lasts:?}");
        };
        check(None, "", None, Some(10));
        // The last of 31 messages is sent after 30 s.
        check(None, "1", None, Some(40));
        check(None, "1", Some(5), Some(15));
        check(Some(7), "1", None, Some(7));
        check(Some(7), "1", Some(5), Some(12));
        // A rate that ends after ten messages, and one that takes longer than a year.
        check(None, "2..0/10s", None, Some(20));
        check(None, "0.0000000001", None, Some(10 + 366 * 24 * 3600));
        check(Some(0), "1", None, None);
        check(Some(0), "1", Some(5), None);
    }
}
