//! Release times of bytes: pure functions of their arrival.

use std::time::{Duration, Instant};

use crate::options::Jitter;
use crate::rate::Rate;

/// SplitMix64: small, seeded, and good enough for delays.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform value in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a uniform value in [-1, 1].
    fn uniform(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// Returns a standard normal value, clamped to ±3.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.unit()).cos())
            .clamp(-Jitter::DEVIATIONS_MAX, Jitter::DEVIATIONS_MAX)
    }

    /// Returns an exponentially distributed time with this mean: the time to the next random event.
    pub(crate) fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-self.unit().ln())
    }
}

/// Draws the one-way delays of a link.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    pub(crate) delay: Duration,
    pub(crate) jitter: Jitter,
    random: Random,
}

impl Propagation {
    pub(crate) fn new(delay: Duration, jitter: Jitter, seed: u64) -> Self {
        Self { delay, jitter, random: Random::new(seed) }
    }

    /// Draws the one-way delay of a chunk, never negative.
    pub(crate) fn draw(&mut self) -> Duration {
        let (deviations, of) = match self.jitter {
            Jitter::None => return self.delay,
            Jitter::Uniform(amplitude) => (self.random.uniform(), amplitude),
            Jitter::Normal(deviation) => (self.random.normal(), deviation),
        };
        let offset = of.mul_f64(deviations.abs());
        if deviations < 0.0 { self.delay.saturating_sub(offset) } else { self.delay + offset }
    }
}

/// Sender of one direction of a link, shared by all connections, which takes time for each byte.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    pub(crate) rate: Option<Rate>,
    /// When it has sent everything accepted so far.
    busy_until: Option<Instant>,
}

/// Maximum time to send a chunk, so that its first byte does not wait long for its last.
const CHUNK_TIME: Duration = Duration::from_micros(50);
/// Minimum size of a chunk: one packet.
const CHUNK_BYTES_MIN: usize = 1500;

/// Whether a connection may pass bytes to the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// At most this many bytes, now.
    Now(usize),
    /// Not before this time; the queue is full.
    At(Instant),
}

impl Transmitter {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, busy_until: None }
    }

    /// Returns how many bytes may be read at `now`.
    pub(crate) fn admission(&self, now: Instant) -> Admission {
        let (Some(rate), Some(busy_until)) = (self.rate, self.busy_until) else {
            return Admission::Now(self.rate.map_or(usize::MAX, chunk_bytes));
        };
        let queue = rate.time_for(rate.queue_bytes());
        if busy_until.saturating_duration_since(now) <= queue {
            Admission::Now(chunk_bytes(rate))
        } else {
            // When half of the queue is sent: avoids a wake-up per packet, and leaves no gap.
            Admission::At(busy_until.checked_sub(queue / 2).unwrap_or(now))
        }
    }

    /// Accepts bytes that arrived at `arrival`, and returns when the last of them is sent.
    pub(crate) fn send(&mut self, arrival: Instant, bytes: usize) -> Instant {
        let Some(rate) = self.rate else { return arrival };
        let start_at = self.busy_until.map_or(arrival, |busy_until| busy_until.max(arrival));
        let end = start_at + rate.time_for(bytes);
        self.busy_until = Some(end);
        end
    }
}

fn chunk_bytes(rate: Rate) -> usize {
    rate.bytes_in(CHUNK_TIME).max(CHUNK_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    #[expect(clippy::unchecked_time_subtraction, reason = "constants, the larger one first")]
    fn jitter_covers_its_range() {
        let check = |delay: Duration, jitter: Jitter, low: Duration, high: Duration, mean: Duration| {
            let mut propagation = Propagation::new(delay, jitter, 7);
            let drawn: Vec<Duration> = (0..20_000).map(|_| propagation.draw()).collect();
            let (min, max) = (*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap());
            let found = drawn.iter().sum::<Duration>() / 20_000;
            assert!(low <= min && max <= high, "{jitter:?}: {min:?} to {max:?}");
            assert!(min < low + (high - low) / 50 && max > high - (high - low) / 50, "{min:?} to {max:?}");
            assert!(found.abs_diff(mean) < (high - low) / 50, "{jitter:?}: mean {found:?}, not {mean:?}");
        };
        check(5 * MS, Jitter::Uniform(MS), 4 * MS, 6 * MS, 5 * MS);
        check(5 * MS, Jitter::Normal(MS), 2 * MS, 8 * MS, 5 * MS);
        // Half of the draws are clamped to zero; the others average 0.5 ms.
        check(Duration::ZERO, Jitter::Uniform(MS), Duration::ZERO, MS, MS / 4);
    }

    #[test]
    fn same_seed_gives_same_delays() {
        let draws = |seed| {
            let mut propagation = Propagation::new(5 * MS, Jitter::Uniform(MS), seed);
            (0..100).map(|_| propagation.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn random_times_have_their_mean() {
        let mut random = Random::new(3);
        let sum: Duration = (0..20_000).map(|_| random.exponential(MS)).sum();
        assert!((sum / 20_000).abs_diff(MS) < MS / 20, "{sum:?}");
    }

    #[test]
    fn transmitter_serializes_bytes() {
        let start = Instant::now();
        let mut transmitter = Transmitter::new("1MB/s".parse().ok());
        assert_eq!(transmitter.send(start, 1000), start + MS);
        assert_eq!(transmitter.send(start, 500), start + 3 * MS / 2, "waits for the one before it");
        assert_eq!(transmitter.send(start + 9 * MS, 1000), start + 10 * MS, "the sender had nothing to do");
        assert_eq!(Transmitter::new(None).send(start, 1000), start);
    }

    #[test]
    fn transmitter_queue_is_bounded() {
        let start = Instant::now();
        let mut transmitter = Transmitter::new("1MB/s".parse().ok());
        let mut taken = 0;
        let full = loop {
            match transmitter.admission(start) {
                Admission::Now(bytes) => {
                    taken += bytes;
                    transmitter.send(start, bytes);
                }
                Admission::At(when) => break when,
            }
        };
        let queue = Duration::from_micros(16_384);
        assert!((16 << 10..=(16 << 10) + 1500).contains(&taken), "{taken}");
        // 17 kB take 17 ms, of which 8.2 ms are left then.
        assert_eq!(full + queue / 2, start + Duration::from_micros(taken as u64));
        assert_eq!(transmitter.admission(full), Admission::Now(1500));
        assert_eq!(Transmitter::new(None).admission(start), Admission::Now(usize::MAX));
    }
}
