//! Numbers that may be times.

use std::fmt::{self, Display};
use std::time::{Duration, UNIX_EPOCH};

/// A time from 1990 to 2100, as a count since the start of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnixTime {
    /// The count.
    pub count: u64,
    /// Unit of the count.
    pub unit: TimeUnit,
}

/// Unit of a time.
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

    fn per_second(self) -> u64 {
        match self {
            TimeUnit::Seconds => 1,
            TimeUnit::Milliseconds => 1_000,
            TimeUnit::Microseconds => 1_000_000,
            TimeUnit::Nanoseconds => 1_000_000_000,
        }
    }
}

impl UnixTime {
    /// Returns the unit for which `count` is between the starts of 1990 and 2100, if there is one.
    pub(super) fn plausible(count: u64) -> Option<Self> {
        const PLAUSIBLE_S: std::ops::Range<u64> = 631_152_000..4_102_444_800;
        [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds]
            .into_iter()
            .find(|unit| PLAUSIBLE_S.contains(&(count / unit.per_second())))
            .map(|unit| Self { count, unit })
    }
}

impl Display for UnixTime {
    /// Formats the time by RFC 3339 in UTC: `2009-02-13T23:31:30.5Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.count / self.unit.per_second(), self.count % self.unit.per_second());
        let nanos = fraction * (TimeUnit::Nanoseconds.per_second() / self.unit.per_second());
        // `plausible` guarantees that it does not overflow or reach year 10000.
        let time = UNIX_EPOCH + Duration::new(seconds, nanos as u32);
        match self.unit {
            TimeUnit::Seconds => humantime::format_rfc3339_seconds(time),
            TimeUnit::Milliseconds => humantime::format_rfc3339_millis(time),
            TimeUnit::Microseconds => humantime::format_rfc3339_micros(time),
            TimeUnit::Nanoseconds => humantime::format_rfc3339_nanos(time),
        }
        .fmt(f)
    }
}
