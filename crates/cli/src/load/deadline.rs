//! How long calls may take.

use std::time::Duration;

use super::defaults::TIMEOUT_DEFAULT;
use super::steps::AskedStream;

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
    /// Of a call whose stream has so many messages. A stream may last as long as it was asked to; where nobody has said
    /// a deadline, also as long as its messages take by their rate.
    pub(super) fn timeout(self, stream: &AskedStream, messages: u64) -> Option<Duration> {
        match (self, stream.lasts) {
            (Self::Never, _) => None,
            (Self::After(timeout), lasts) => Some(timeout + lasts.unwrap_or_default()),
            (Self::Default, Some(lasts)) => Some(TIMEOUT_DEFAULT + lasts),
            (Self::Default, None) => Some(TIMEOUT_DEFAULT + stream.sending(messages)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_last_as_long_as_it_was_asked_to() {
        let check = |timeout: Option<u64>, rate: &str, lasts: Option<u64>, expected: Option<u64>| {
            let stream = AskedStream {
                message_rate: (!rate.is_empty()).then(|| rate.parse().unwrap()),
                lasts: lasts.map(Duration::from_secs),
                ..AskedStream::default()
            };
            let deadline = Deadline::from(timeout.map(Duration::from_secs));
            let expected = expected.map(Duration::from_secs);
            assert_eq!(deadline.timeout(&stream, 31), expected, "{timeout:?}, {rate}, {lasts:?}");
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
