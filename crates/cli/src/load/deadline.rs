//! How long calls may take.

use std::time::Duration;

use thalweg_load::Schedule;

use super::defaults::{TIMEOUT_DEFAULT, YEAR};

/// The deadline of calls, as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    /// Nobody has said one.
    Default,
    /// So long after a call has begun.
    After(Duration),
    /// There is none.
    Never,
}

impl From<Option<Duration>> for Deadline {
    /// As `--timeout` says it: 0 is none.
    fn from(timeout: Option<Duration>) -> Self {
        match timeout {
            None => Self::Default,
            Some(Duration::ZERO) => Self::Never,
            Some(timeout) => Self::After(timeout),
        }
    }
}

impl Deadline {
    /// Of a call whose stream was asked to last so long, or to send so many messages at a rate. It may last as long as
    /// it was asked to; where nobody has said a deadline, also as long as its messages take.
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
