//! Parses and formats sizes in bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A number of bytes.
///
/// `K`, `KiB`, `M`, `MiB`, `G` and `GiB` are powers of 1024. `kB`, `MB` and `GB` are powers of 1000. Parsing ignores
/// the case of units. A fraction is valid if it gives a whole number of bytes.
///
/// ```
/// use thalweg_measure::size::ByteSize;
///
/// assert_eq!("64K".parse::<ByteSize>().unwrap(), ByteSize(65_536));
/// assert_eq!("1.5MB".parse::<ByteSize>().unwrap(), ByteSize(1_500_000));
/// assert_eq!(ByteSize(65_536).to_string(), "64 KiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

/// A text that is not a valid size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid size `{0}`; use a number of bytes or a number with a unit, such as 512, 64KiB or 1.5MB")]
pub struct InvalidSize(String);

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let not_a_size = || InvalidSize(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let unit_bytes = match unit.trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => KIB,
            "m" | "mib" => MIB,
            "g" | "gib" => GIB,
            "kb" => 1000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            _ => return Err(not_a_size()),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit_bytes).map(Self).ok_or_else(not_a_size);
        }
        let number: f64 = number.parse().map_err(|_| not_a_size())?;
        let bytes = number * unit_bytes as f64;
        // An f64 represents whole numbers exactly below 2^53.
        if bytes.fract() != 0.0 || bytes >= (1_u64 << 53) as f64 {
            return Err(not_a_size());
        }
        Ok(Self(bytes as u64))
    }
}

impl fmt::Display for ByteSize {
    /// Writes the exact size in the first unit that fits. GiB, MiB and KiB have no decimals, MB and kB at most one.
    /// Otherwise writes bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        let text = match bytes {
            0 => "0 B".to_owned(),
            _ if bytes.is_multiple_of(GIB) => format!("{} GiB", bytes / GIB),
            _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
            _ if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
            _ if bytes.is_multiple_of(100_000) => format!("{} MB", bytes as f64 / 1e6),
            _ if bytes.is_multiple_of(100) && bytes >= 1000 => format!("{} kB", bytes as f64 / 1e3),
            _ => format!("{bytes} B"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bytes: u64, shown: &str) {
        assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        assert_eq!(ByteSize(bytes).to_string(), shown);
        assert_eq!(shown.parse(), Ok(ByteSize(bytes)), "formatted size parses to the same value");
    }

    #[test]
    fn sizes_are_parsed_and_formatted() {
        check("0", 0, "0 B");
        check("1", 1, "1 B");
        check("1000", 1000, "1 kB");
        check("1k", 1024, "1 KiB");
        check("1.5K", 1536, "1536 B");
        check("64 KiB", 65_536, "64 KiB");
        check("1.5MB", 1_500_000, "1.5 MB");
        check("4MiB", 4 << 20, "4 MiB");
        check("2G", 2 << 30, "2 GiB");
    }

    #[test]
    fn invalid_sizes_are_rejected() {
        for text in ["", "-1", "K", "1X", "0.3", "1.2.3", "99999999999G", "inf", "1e3"] {
            assert_eq!(text.parse::<ByteSize>(), Err(InvalidSize(text.to_owned())));
        }
    }
}
