//! Backoff between attempts to connect.

use std::time::Duration;

/// Backoff between failed attempts to connect, following gRPC's [connection backoff]: 1 s after the first failure, 1.6
/// times as long after each further one, at most 120 s, with ±20 % jitter.
///
/// It restarts with each connection that is made, and with
/// [`Channel::reset_connect_backoff`](crate::Channel::reset_connect_backoff).
///
/// [connection backoff]: https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// Delay after the first failure; 1 s by default.
    pub base_delay: Duration,
    /// Factor between consecutive delays; 1.6 by default, at least 1.
    pub multiplier: f64,
    /// Fraction of a delay that is randomly added or subtracted, so that clients of one server don't all reconnect at
    /// once; 0.2 by default, in 0..=1.
    pub jitter: f64,
    /// Maximum delay before jitter; 120 s by default.
    pub max_delay: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base_delay: Duration::from_secs(1),
            multiplier: 1.6,
            jitter: 0.2,
            max_delay: Duration::from_secs(120),
        }
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

    /// Returns the delay after the `attempt`-th failure in a row (the first is 1).
    ///
    /// `random` in 0..=1 is the position in the jitter range. By default attempt 1 yields 0.8 to 1.2 s, attempt 2
    /// yields 1.28 to 1.92 s, and no attempt more than 144 s.
    pub(super) fn pause(&self, attempt: u32, random: f64) -> Duration {
        let exponent = attempt.saturating_sub(1).min(EXPONENT_MAX).cast_signed();
        let grown = self.base_delay.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        // `min` and `max` return the other operand if one is NaN.
        let base = grown.min(self.max_delay.as_secs_f64()).min(PAUSE_MAX.as_secs_f64());
        let jitter = if self.jitter.is_nan() { 0.0 } else { self.jitter.clamp(0.0, 1.0) };
        Duration::from_secs_f64(base * (1.0 + jitter * (2.0 * random.clamp(0.0, 1.0) - 1.0)))
    }
}

/// Limits the growth: even with a factor of 1.1 the delay is a thousandfold by then.
const EXPONENT_MAX: u32 = 72;
/// A duration that every clock can represent.
const PAUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_bound() {
        let check = |backoff: Backoff, attempt, random, expected_ms: u128| {
            let pause = backoff.pause(attempt, random).as_millis();
            assert_eq!(pause, expected_ms, "{backoff:?}, attempt {attempt}, random {random}");
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
        // Neither shrinking delays nor jitter out of range.
        check(grpc.multiplier(0.5), 5, 0.5, 1000);
        check(grpc, 1, 7.0, 1200);
        check(grpc, 1, -7.0, 800);
        let quick = grpc.base_delay(Duration::from_millis(50)).multiplier(2.0).jitter(0.0);
        let quick = quick.max_delay(Duration::from_millis(300));
        check(quick, 1, 1.0, 50);
        check(quick, 3, 0.0, 200);
        check(quick, 4, 0.0, 300);
        check(quick.base_delay(Duration::from_secs(9)), 1, 0.0, 300);
    }

    #[test]
    fn any_settings_give_a_bounded_pause() {
        let values = [0.0, 1.0, -1.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for (multiplier, jitter) in values.iter().flat_map(|&a| values.map(|b| (a, b))) {
            for delay in [Duration::ZERO, Duration::MAX] {
                let backoff = Backoff { base_delay: delay, multiplier, jitter, max_delay: Duration::MAX };
                let pause = backoff.pause(1000, 1.0);
                assert!(pause <= 2 * PAUSE_MAX, "{backoff:?}: {pause:?}");
            }
        }
    }
}
