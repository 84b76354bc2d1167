//! How long a lane waits before it tries to connect again.

use std::time::Duration;

const INITIAL: Duration = Duration::from_secs(1);
const MULTIPLIER: f64 = 1.6;
const JITTER: f64 = 0.2;
const MAX: Duration = Duration::from_secs(120);

/// The pause after the `attempt`-th failure in a row (the first is 1), by gRPC's [connection backoff].
///
/// `random` in 0..=1 places it within ±20 %: attempt 1 gives 0.8 to 1.2 s, attempt 2 gives 1.28 to 1.92 s, and none
/// more than 144 s.
///
/// [connection backoff]: https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md
pub(crate) fn pause(attempt: u32, random: f64) -> Duration {
    let exponent = attempt.saturating_sub(1).min(32).cast_signed();
    let base = (INITIAL.as_secs_f64() * MULTIPLIER.powi(exponent)).min(MAX.as_secs_f64());
    Duration::from_secs_f64(base * (1.0 + JITTER * (2.0 * random.clamp(0.0, 1.0) - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_bound() {
        let check = |attempt, random, expected_ms: u128| {
            assert_eq!(pause(attempt, random).as_millis(), expected_ms, "attempt {attempt}, random {random}");
        };
        check(1, 0.5, 1000);
        check(1, 0.0, 800);
        check(1, 1.0, 1200);
        check(2, 0.5, 1600);
        check(3, 0.5, 2560);
        check(11, 0.5, 109_951);
        check(12, 0.5, 120_000);
        check(u32::MAX, 1.0, 144_000);
    }
}
