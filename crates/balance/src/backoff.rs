//! Exponential backoff with jitter.

use std::time::Duration;

/// Relative jitter of gRPC's connection backoff and of its retries (gRFC A6).
const JITTER: f64 = 0.2;

/// Exponential backoff between failed attempts, by default gRPC's [connection backoff]: 1 s after the first failure,
/// 1.6 times as long after each further one, at most 120 s, with ±20 % jitter.
///
/// A channel restarts it with each connection that is made, and with `Channel::reset_connect_backoff`.
///
/// [connection backoff]: https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// Delay after the first failure; 1 s by default.
    pub base_delay: Duration,
    /// Factor between consecutive delays; 1.6 by default. Delays between attempts to connect never shrink: below 1 it
    /// counts as 1 there.
    pub multiplier: f64,
    /// Fraction of a delay that is randomly added or subtracted, so that clients of one server don't all reconnect at
    /// once; 0.2 by default, in 0..=1.
    pub jitter: f64,
    /// Maximum delay before jitter; 120 s by default.
    pub max_delay: Duration,
}

/// gRPC's connection backoff.
pub(crate) const CONNECTION_BACKOFF: Backoff = Backoff {
    base_delay: Duration::from_secs(1),
    multiplier: 1.6,
    jitter: JITTER,
    max_delay: Duration::from_secs(120),
};

impl Default for Backoff {
    fn default() -> Self {
        CONNECTION_BACKOFF
    }
}

impl Backoff {
    /// Sets the delay after the first failure.
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// Sets the factor between consecutive delays.
    pub fn multiplier(mut self, multiplier: f64) -> Self {
        self.multiplier = multiplier;
        self
    }

    /// Sets the jitter.
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets the maximum delay before jitter.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Returns the delay after the `failure`-th failure in a row (the first is 1). `random_unit`, uniform in 0..=1, is
    /// the position in the jitter range.
    ///
    /// By default failure 1 yields 0.8 to 1.2 s, failure 2 yields 1.28 to 1.92 s, and none more than 144 s.
    pub fn delay(&self, failure: u32, random_unit: f64) -> Duration {
        let exponent = i32::try_from(failure.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.base_delay.as_secs_f64() * self.multiplier.powi(exponent);
        let max = self.max_delay.min(DELAY_MAX);
        // Unreasonable multipliers give no number or a negative one.
        let base = if grown >= 0.0 { grown.min(max.as_secs_f64()) } else { max.as_secs_f64() };
        let jitter = if self.jitter.is_nan() { 0.0 } else { self.jitter.clamp(0.0, 1.0) };
        jittered(base, jitter, random_unit.clamp(0.0, 1.0)).unwrap_or(max)
    }
}

/// A duration that every clock can represent.
const DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Returns the period with ±20 % jitter; `random_unit` is uniform in 0..1.
pub(crate) fn with_jitter(period: Duration, random_unit: f64) -> Duration {
    jittered(period.as_secs_f64(), JITTER, random_unit).unwrap_or(period)
}

/// Returns `None` if the result is no duration, which takes unreasonable arguments.
fn jittered(seconds: f64, jitter: f64, random_unit: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds * (1.0 + jitter * (2.0 * random_unit - 1.0))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn delay_grows_to_its_maximum_before_jitter() {
        let check = |backoff: Backoff, failure, random, expected_ms: u128| {
            let delay = backoff.delay(failure, random).as_millis();
            assert_eq!(delay, expected_ms, "{backoff:?}, failure {failure}, random {random}");
        };
        let grpc = Backoff::default();
        check(grpc, 1, 0.5, 1000);
        check(grpc, 1, 0.0, 800);
        check(grpc, 1, 1.0, 1200);
        check(grpc, 2, 0.5, 1600);
        check(grpc, 3, 0.5, 2560);
        check(grpc, 11, 0.5, 109_951);
        check(grpc, 12, 0.5, 120_000);
        check(grpc, u32::MAX, 1.0, 144_000);
        // A random number out of range.
        check(grpc, 1, 7.0, 1200);
        check(grpc, 1, -7.0, 800);
        let quick = grpc.base_delay(50 * MS).multiplier(2.0).jitter(0.0).max_delay(300 * MS);
        check(quick, 1, 1.0, 50);
        check(quick, 3, 0.0, 200);
        check(quick, 4, 0.0, 300);
        check(quick.base_delay(Duration::from_secs(9)), 1, 0.0, 300);
        // Retries may shrink their delays.
        check(quick.multiplier(0.5), 2, 0.0, 25);
    }

    #[test]
    fn unreasonable_settings_give_at_most_the_maximum() {
        let backoff = Backoff::default().base_delay(MS).max_delay(10 * MS);
        let check = |multiplier: f64, random_unit, expected_ms: [u32; 3]| {
            let delay = |failure| backoff.multiplier(multiplier).delay(failure, random_unit);
            assert_eq!([1, 2, 3].map(delay), expected_ms.map(|ms| MS * ms), "{multiplier}, {random_unit}");
        };
        check(f64::MAX, 0.5, [1, 10, 10]);
        check(f64::NAN, 0.5, [1, 10, 10]);
        check(-2.0, 0.5, [1, 10, 4]);
        check(2.0, f64::NAN, [10, 10, 10]);
    }

    #[test]
    fn any_settings_give_a_bounded_delay() {
        let values = [0.0, 1.0, -1.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for (multiplier, jitter) in values.iter().flat_map(|&a| values.map(|b| (a, b))) {
            for base_delay in [Duration::ZERO, Duration::MAX] {
                let backoff = Backoff { base_delay, multiplier, jitter, max_delay: Duration::MAX };
                let delay = backoff.delay(1000, 1.0);
                assert!(delay <= 2 * DELAY_MAX, "{backoff:?}: {delay:?}");
            }
        }
    }

    #[test]
    fn jitter_of_periods_is_a_fifth() {
        let jittered = [0.0, 0.25, 1.0].map(|unit| with_jitter(30_000 * MS, unit));
        assert_eq!(jittered, [24_000 * MS, 27_000 * MS, 36_000 * MS]);
        assert_eq!(with_jitter(Duration::MAX, 1.0), Duration::MAX);
    }
}
