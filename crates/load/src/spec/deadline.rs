//! Deadlines of calls.

use std::time::Duration;

use crate::schedule::Schedule;

/// Time limit of connecting, and of a call without messages that take time.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// The longest time, so that sums of times do not overflow.
pub const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// The deadline of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// None was specified.
    Default,
    /// This long after the start of a call.
    After(Duration),
    /// There is none.
    Never,
}

impl From<Option<Duration>> for Deadline {
    /// 0 is no deadline.
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
    /// The time that it lasts is added, and to the default the time that its messages take.
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

/// How long sending so many messages takes.
fn sending(rate: &Schedule, messages: u64) -> Duration {
    // A schedule that never has as many is over with what is written of it.
    let last = rate.start_of(messages.saturating_sub(1) as f64);
    last.map_or(rate.written_length(), |last| Duration::from_secs_f64(last.min(YEAR.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_last_as_long_as_it_was_asked_to() {
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
        // One that is over after ten of them, and one that would take longer than anybody waits.
        check(None, "2..0/10s", None, Some(20));
        check(None, "0.0000000001", None, Some(10 + 366 * 24 * 3600));
        check(Some(0), "1", None, None);
        check(Some(0), "1", Some(5), None);
    }
}
