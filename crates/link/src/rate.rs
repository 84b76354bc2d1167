//! Rates of a link.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Bytes per second in one direction, shared by all connections of a link. Written like in `tc`, in bits (`1gbit`,
/// `56kbit`), or in bytes (`12.5MB/s`, `1GiB/s`).
///
/// ```
/// use thalweg_link::Rate;
///
/// let rate: Rate = "1gbit".parse().unwrap();
/// assert_eq!(rate.bytes_per_second().get(), 125_000_000);
/// assert_eq!("125MB/s".parse(), Ok(rate));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

/// A text that is not a valid rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rate `{0}`; use bits or bytes per second, such as 100mbit, 1gbit, 12.5MB/s or 1GiB/s")]
pub struct ParseRateError(String);

/// Bits per second, with or without `/s`, case-insensitive.
const BIT_UNITS: &[(&str, f64)] =
    &[("tbit", 1e12), ("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Bytes per second. `Mb/s` and `mbps` are rejected, because they may mean bits or bytes.
const BYTE_UNITS: &[(&str, u64)] = &[
    ("GB/s", 1_000_000_000),
    ("MB/s", 1_000_000),
    ("kB/s", 1000),
    ("KB/s", 1000),
    ("GiB/s", 1 << 30),
    ("MiB/s", 1 << 20),
    ("KiB/s", 1 << 10),
    ("B/s", 1),
];

/// Size of a sender's queue, as time at its rate.
const QUEUE_TIME: Duration = Duration::from_millis(1);
/// Minimum size of a sender's queue in bytes: some full packets.
const QUEUE_BYTES_MIN: usize = 16 << 10;

impl Rate {
    /// Creates a rate from bytes per second.
    pub const fn from_bytes_per_second(bytes: NonZeroU64) -> Self {
        Self(bytes)
    }

    /// Returns the rate in bytes per second.
    pub const fn bytes_per_second(self) -> NonZeroU64 {
        self.0
    }

    /// Returns the time to send `bytes`, rounded up to a nanosecond.
    pub(crate) fn time_for(self, bytes: usize) -> Duration {
        let nanoseconds = (bytes as u128 * 1_000_000_000).div_ceil(u128::from(self.0.get()));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Returns the size in bytes of a sender's queue.
    pub(crate) fn queue_bytes(self) -> usize {
        self.bytes_in(QUEUE_TIME).max(QUEUE_BYTES_MIN)
    }

    /// Returns the bytes sent in a time.
    pub(crate) fn bytes_in(self, time: Duration) -> usize {
        let bytes = u128::from(self.0.get()) * time.as_nanos() / 1_000_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, ParseRateError> {
        let error = || ParseRateError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number: f64 = number.parse().map_err(|_| error())?;
        let bytes = bytes_of(unit.trim_start()).ok_or_else(error)? * number;
        // Whole numbers below 2^53 are exact in an f64; that is 9 PB/s.
        let bytes = if bytes < (1_u64 << 53) as f64 { bytes as u64 } else { 0 };
        NonZeroU64::new(bytes).map(Self).ok_or_else(error)
    }
}

/// Returns the bytes per second of a unit.
fn bytes_of(unit: &str) -> Option<f64> {
    if let Some((_, bytes)) = BYTE_UNITS.iter().find(|(name, _)| *name == unit) {
        return Some(*bytes as f64);
    }
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix("/s").unwrap_or(&unit);
    BIT_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bits)| bits / 8.0)
}

impl fmt::Display for Rate {
    /// Formats in the largest unit of bits that needs at most three decimals, so that parsing restores the rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.0.get()) * 8;
        let units =
            [("tbit", 1_000_000_000_000_u128), ("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1000)];
        let fitting = units.iter().find(|(_, size)| bits >= *size && bits.is_multiple_of(size / 1000));
        match fitting {
            Some((unit, size)) => write!(f, "{}{unit}", bits as f64 / *size as f64),
            None => write!(f, "{bits}bit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_and_formatted() {
        let check = |text: &str, bytes: u64, formatted: &str| {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(
                (rate.bytes_per_second().get(), rate.to_string().as_str()),
                (bytes, formatted),
                "{text}"
            );
            assert_eq!(formatted.parse(), Ok(rate), "what is shown can be read");
        };
        check("1gbit", 125_000_000, "1gbit");
        check("1Gbit/s", 125_000_000, "1gbit");
        check("2.5gbit", 312_500_000, "2.5gbit");
        check("100 mbit", 12_500_000, "100mbit");
        check("12.5MB/s", 12_500_000, "100mbit");
        check("56kbit", 7_000, "56kbit");
        check("1KiB/s", 1024, "8.192kbit");
        check("1GiB/s", 1 << 30, "8589934.592kbit");
        check("8bit", 1, "8bit");
        check("10tbit", 1_250_000_000_000, "10tbit");
    }

    #[test]
    fn invalid_rates_are_rejected() {
        for text in
            ["", "1", "gbit", "0gbit", "1bit", "-1gbit", "1gb", "1Mb/s", "1mbps", "1.2.3mbit", "9999999tbit"]
        {
            assert_eq!(text.parse::<Rate>(), Err(ParseRateError(text.to_owned())));
        }
    }

    #[test]
    fn times_are_rounded_up_and_bytes_down() {
        let rate: Rate = "3B/s".parse().unwrap();
        assert_eq!(rate.time_for(1), Duration::from_nanos(333_333_334));
        assert_eq!(rate.time_for(3), Duration::from_secs(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(999)), 2);
    }
}
