//! Single starts of a schedule.

use std::str::FromStr;

use crate::schedule::Schedule;

/// How starts lie about the schedule's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    #[default]
    Constant,
    /// As calls of many clients that know nothing of each other: the times between them are exponential.
    Poisson,
}

impl FromStr for Spacing {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "constant" => Ok(Self::Constant),
            "poisson" => Ok(Self::Poisson),
            _ => Err(format!("`{name}` is neither constant nor poisson")),
        }
    }
}

impl Spacing {
    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
        }
    }
}

/// The starts of a schedule one after the other, ns since it began. The same seed gives the same starts.
#[derive(Clone, Debug)]
pub struct Arrivals {
    schedule: Schedule,
    spacing: Spacing,
    random: Random,
    /// Calls of the schedule before the next one; no whole numbers where starts are drawn.
    position: f64,
}

impl Arrivals {
    /// Begins with the first.
    pub fn new(schedule: Schedule, spacing: Spacing, seed: u64) -> Self {
        let mut arrivals = Self { schedule, spacing, random: Random(seed), position: 0.0 };
        if spacing == Spacing::Poisson {
            arrivals.position = arrivals.random.exponential();
        }
        arrivals
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let start = self.schedule.start_of(self.position)?;
        // A Poisson process of any rate is one of rate 1 in the number of calls that the schedule has by then.
        self.position += match self.spacing {
            Spacing::Constant => 1.0,
            Spacing::Poisson => self.random.exponential(),
        };
        Some((start * 1e9) as u64)
    }
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// From several numbers. What neighbours of them draw has nothing in common: a seed is where SplitMix64 begins in
    /// one and the same sequence, and a call that began a step behind another would draw the same a step later.
    pub(crate) fn of(numbers: [u64; 3]) -> Self {
        Self(numbers.into_iter().fold(0, |state, number| Self(state ^ number).next()))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// With the mean 1.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str, spacing: Spacing, count: usize) -> Vec<u64> {
        Arrivals::new(text.parse().unwrap(), spacing, 7).take(count).collect()
    }

    #[test]
    fn constant_starts_are_even() {
        assert_eq!(starts("1000", Spacing::Constant, 3), [0, 1_000_000, 2_000_000]);
        assert_eq!(starts("0/1s,10", Spacing::Constant, 2), [1_000_000_000, 1_100_000_000]);
        // A ramp from nothing: the n-th at √(2n ÷ growth).
        assert_eq!(starts("0..10/1s", Spacing::Constant, 6).last(), Some(&1_000_000_000));
    }

    #[test]
    fn poisson_starts_have_the_rate_and_the_spread_of_the_process() {
        let starts = starts("1000", Spacing::Poisson, 100_000);
        assert!(starts.is_sorted());
        let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Both are 1 (ms, ms²); the mean of 100,000 has a deviation of 0.3 %, the variance 0.9 %.
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn a_schedule_that_ends_has_no_more_starts() {
        assert_eq!(starts("10..0/2s", Spacing::Constant, 1000).len(), 11);
    }
}
