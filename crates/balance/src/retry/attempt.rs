//! Policies of attempts, and how an attempt ended.

use std::time::Duration;

use thalweg_core::Code;

use crate::code_set::CodeSet;

/// Retry policy of a method (gRFC A6).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum number of attempts, the first included; at least 2.
    pub max_attempts: u32,
    /// Backoff before the first retry, with ±20 % jitter.
    pub initial_backoff: Duration,
    /// Maximum backoff.
    pub max_backoff: Duration,
    /// Factor by which the backoff grows with each retry.
    pub backoff_multiplier: f64,
    /// Codes of attempts that are retried; never empty.
    pub retryable_codes: CodeSet,
}

/// Hedging policy of a method (gRFC A6).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HedgingPolicy {
    /// Maximum number of attempts, the first included; at least 2.
    pub max_attempts: u32,
    /// Time after which the next attempt starts without an outcome of the former; 0 starts all at once.
    pub hedging_delay: Duration,
    /// Codes of attempts that do not end the call while others are left.
    pub non_fatal_codes: CodeSet,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Status code, of the server or of the client.
    pub code: Code,
    /// The server's pushback; none by default.
    pub pushback: Pushback,
    /// How far the attempt got; processed by default.
    pub progress: Progress,
}

/// How far an attempt got (gRFC A6, "Transparent Retries").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It never left the client.
    Unsent,
    /// It reached the server but not the application: REFUSED_STREAM, or a stream beyond the last one of a GOAWAY.
    Unprocessed,
    /// The application may have seen it, or it had no endpoint to go to.
    Processed,
}

/// The server's wish in the trailer `grpc-retry-pushback-ms` (gRFC A6, "Pushback").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pushback {
    /// The trailer is absent: the policy applies.
    #[default]
    None,
    /// The next attempt starts after exactly this delay.
    After(Duration),
    /// There is no further attempt: the value is negative, malformed, or not the only one.
    Stop,
}

/// Whether and how often a call may be sent again without a policy (gRFC A6, "Transparent Retries").
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransparentRetries {
    pub(super) count: u32,
    /// An attempt was refused or processed: a refusal from now on is up to the policy.
    pub(super) is_reached: bool,
}

impl RetryPolicy {
    /// Creates a policy with the backoff of gRFC A6's example: 100 ms, doubled with each retry up to 1 s.
    ///
    /// Neither this nor [`backoff`](Self::backoff) checks its arguments: the limits of gRFC A6 are those of service
    /// configs.
    pub fn new<C: Into<i32>>(max_attempts: u32, retryable_codes: impl IntoIterator<Item = C>) -> Self {
        Self {
            max_attempts,
            initial_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
            backoff_multiplier: 2.0,
            retryable_codes: retryable_codes.into_iter().collect(),
        }
    }

    /// Sets the backoff: its first value, its maximum, and the factor by which it grows.
    pub fn backoff(mut self, initial: Duration, max: Duration, multiplier: f64) -> Self {
        (self.initial_backoff, self.max_backoff, self.backoff_multiplier) = (initial, max, multiplier);
        self
    }
}

impl HedgingPolicy {
    /// Creates a policy without non-fatal codes: the first outcome ends the call. The arguments are not checked.
    pub fn new(max_attempts: u32, hedging_delay: Duration) -> Self {
        Self { max_attempts, hedging_delay, non_fatal_codes: CodeSet::default() }
    }

    /// Sets the codes that do not end the call while other attempts are left.
    pub fn non_fatal_codes<C: Into<i32>>(mut self, codes: impl IntoIterator<Item = C>) -> Self {
        self.non_fatal_codes = codes.into_iter().collect();
        self
    }
}

impl Outcome {
    /// Creates the outcome of a processed attempt without pushback.
    pub fn new(code: Code) -> Self {
        Self { code, pushback: Pushback::None, progress: Progress::Processed }
    }

    /// Sets the server's pushback.
    pub fn pushback(mut self, pushback: Pushback) -> Self {
        self.pushback = pushback;
        self
    }

    /// Sets how far the attempt got.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }
}

impl Pushback {
    /// Name of the trailer.
    pub const TRAILER: &'static str = "grpc-retry-pushback-ms";

    /// Parses the values of the trailer: one signed 32-bit integer, in milliseconds.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        let (value, more) = (values.next(), values.next());
        let Some(value) = value else { return Self::None };
        let millis = std::str::from_utf8(value).ok().and_then(|value| value.parse::<i32>().ok());
        match millis.and_then(|millis| u64::try_from(millis).ok()) {
            Some(millis) if more.is_none() => Self::After(Duration::from_millis(millis)),
            _ => Self::Stop,
        }
    }
}

impl TransparentRetries {
    /// Returns whether an attempt that got so far starts again, and counts that.
    pub(super) fn allow(&mut self, progress: Progress) -> bool {
        let is_allowed = match progress {
            Progress::Unsent => true,
            Progress::Unprocessed => !self.is_reached,
            Progress::Processed => false,
        };
        self.is_reached |= progress != Progress::Unsent;
        self.count += u32::from(is_allowed);
        is_allowed
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Draws an outcome; two of three have UNAVAILABLE or ABORTED.
    pub(in crate::retry) fn random_outcome(draw: &mut impl FnMut(u64) -> u64) -> Outcome {
        let codes =
            [Code::Ok, Code::Internal, Code::Unavailable, Code::Unavailable, Code::Aborted, Code::Aborted];
        let pushback = match draw(8) {
            0 => Pushback::After(Duration::from_millis(draw(900))),
            1 => Pushback::Stop,
            _ => Pushback::None,
        };
        let progress = [Progress::Processed, Progress::Unprocessed, Progress::Unsent][draw(3) as usize];
        Outcome { code: codes[draw(6) as usize], pushback, progress }
    }

    #[test]
    fn pushback_is_one_signed_32_bit_number_of_milliseconds() {
        fn check(values: &[&str], expected: Pushback) {
            assert_eq!(Pushback::parse(values.iter().map(|value| value.as_bytes())), expected, "{values:?}");
        }
        let after = |millis| Pushback::After(Duration::from_millis(millis));
        check(&[], Pushback::None);
        check(&["0"], after(0));
        check(&["1000"], after(1000));
        check(&["2147483647"], after(2_147_483_647));
        for stop in
            ["-1", "-2147483648", "2147483648", "99999999999999999999", "", "xxx", "1.5", "1s", " 1", "٣"]
        {
            check(&[stop], Pushback::Stop);
        }
        // grpc-go: several values, even valid ones, mean "do not retry".
        check(&["100", "10"], Pushback::Stop);
        assert_eq!(Pushback::parse([&b"1\xff"[..]]), Pushback::Stop);
    }

    #[test]
    fn refused_attempt_starts_again_once_and_unsent_one_always() {
        use Progress::{Processed, Unprocessed, Unsent};
        fn check(attempts: &[(Progress, bool)], count: u32) {
            let mut transparent = TransparentRetries::default();
            for &(progress, expected) in attempts {
                assert_eq!(transparent.allow(progress), expected, "{progress:?} in {attempts:?}");
            }
            assert_eq!(transparent.count, count, "{attempts:?}");
        }
        check(&[(Unprocessed, true), (Unprocessed, false), (Unprocessed, false)], 1);
        check(
            &[(Unsent, true), (Unsent, true), (Unprocessed, true), (Unsent, true), (Unprocessed, false)],
            4,
        );
        check(&[(Processed, false), (Unprocessed, false), (Unsent, true)], 1);
    }
}
