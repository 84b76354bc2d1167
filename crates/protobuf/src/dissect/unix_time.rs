//! Numbers that may be times.

use std::fmt::{self, Display};

use crate::text::calendar::{SECONDS_PER_DAY, date};

/// A point in time, as a count since the begin of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixTime {
    /// The count.
    pub count: u64,
    /// Of what.
    pub unit: TimeUnit,
}

/// What a time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl TimeUnit {
    pub(super) fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "Unix time in s",
            TimeUnit::Milliseconds => "Unix time in ms",
            TimeUnit::Microseconds => "Unix time in µs",
            TimeUnit::Nanoseconds => "Unix time in ns",
        }
    }

    fn digits(self) -> usize {
        match self {
            TimeUnit::Seconds => 0,
            TimeUnit::Milliseconds => 3,
            TimeUnit::Microseconds => 6,
            TimeUnit::Nanoseconds => 9,
        }
    }

    fn per_second(self) -> u64 {
        10_u64.pow(self.digits() as u32)
    }
}

impl UnixTime {
    /// The unit in which `count` is between the begin of 1990 and that of 2100, if there is one.
    pub(super) fn plausible(count: u64) -> Option<Self> {
        const PLAUSIBLE_S: std::ops::Range<u64> = 631_152_000..4_102_444_800;
        [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds]
            .into_iter()
            .find(|unit| PLAUSIBLE_S.contains(&(count / unit.per_second())))
            .map(|unit| Self { count, unit })
    }
}

impl Display for UnixTime {
    /// As RFC 3339 has it, in UTC: `2009-02-13T23:31:30.5Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.count / self.unit.per_second(), self.count % self.unit.per_second());
        let (days, second) = (seconds / SECONDS_PER_DAY as u64, seconds % SECONDS_PER_DAY as u64);
        let (year, month, day) = date(days as i64);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match self.unit.digits() {
            0 => f.write_str("Z"),
            digits => write!(f, ".{fraction:0digits$}Z"),
        }
    }
}
