//! Exponential backoff with jitter.

use std::time::Duration;

/// Bounds of the relative jitter: ±20 %, as gRFC A6 and gRPC's connection backoff have it.
const JITTER: f64 = 0.2;

/// An exponential backoff.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
    pub(crate) multiplier: f64,
}

impl Backoff {
    /// Returns the delay before the retry with this number, counted from 1:
    /// `min(initial * multiplier^(number - 1), max) * random(0.8, 1.2)`.
    ///
    /// With 100 ms, a multiplier of 2 and at most 1 s: 100, 200, 400, 800, 1000, 1000 ms, each ±20 %.
    pub(crate) fn delay(self, number: u32, random_unit: f64) -> Duration {
        let exponent = i32::try_from(number.saturating_sub(1)).unwrap_or(i32::MAX);
        let growing = self.initial.as_secs_f64() * self.multiplier.powi(exponent);
        jittered(growing.min(self.max.as_secs_f64()), random_unit).unwrap_or(self.max)
    }
}

/// Returns the period with ±20 % jitter; `random_unit` is uniform in 0..1.
pub(crate) fn with_jitter(period: Duration, random_unit: f64) -> Duration {
    jittered(period.as_secs_f64(), random_unit).unwrap_or(period)
}

/// Returns `None` if the result is no duration, which takes unreasonable arguments.
fn jittered(seconds: f64, random_unit: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds * (1.0 - JITTER + 2.0 * JITTER * random_unit)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Compares in milliseconds.
    fn check(backoff: Backoff, random_unit: f64, expected: &[u32]) {
        let delays: Vec<Duration> =
            (1..=expected.len()).map(|number| backoff.delay(number as u32, random_unit)).collect();
        assert_eq!(delays, expected.iter().map(|&ms| MS * ms).collect::<Vec<_>>());
    }

    #[test]
    fn delay_grows_to_its_maximum_before_jitter() {
        let backoff = Backoff { initial: 100 * MS, max: 1000 * MS, multiplier: 2.0 };
        check(backoff, 0.5, &[100, 200, 400, 800, 1000, 1000]);
        check(backoff, 0.0, &[80, 160, 320, 640, 800, 800]);
        check(backoff, 1.0, &[120, 240, 480, 960, 1200, 1200]);
        // A multiplier below 1 is valid, and so is an initial backoff above the maximum.
        check(Backoff { multiplier: 0.5, ..backoff }, 0.5, &[100, 50, 25]);
        check(Backoff { initial: 2000 * MS, ..backoff }, 0.5, &[1000, 1000]);
    }

    #[test]
    fn unreasonable_arguments_give_the_maximum() {
        let backoff = Backoff { initial: MS, max: 10 * MS, multiplier: f64::MAX };
        check(backoff, 0.5, &[1, 10, 10]);
        assert_eq!(backoff.delay(u32::MAX, 0.5), 10 * MS);
        check(Backoff { multiplier: f64::NAN, ..backoff }, 0.5, &[1, 10]);
        check(Backoff { multiplier: -2.0, ..backoff }, 0.5, &[1, 10]);
        check(backoff, f64::NAN, &[10, 10]);
        assert_eq!(with_jitter(Duration::MAX, 1.0), Duration::MAX);
    }

    #[test]
    fn jitter_is_a_fifth() {
        assert_eq!(
            [0.0, 0.25, 1.0].map(|unit| with_jitter(30_000 * MS, unit)),
            [24_000 * MS, 27_000 * MS, 36_000 * MS]
        );
    }
}
