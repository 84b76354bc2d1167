//! `grpc-timeout`: the time left for a call, as at most eight digits and a unit.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use crate::{Code, Status};

/// Name of the field.
pub const NAME: HeaderName = HeaderName::from_static("grpc-timeout");

/// Largest number with eight digits.
const VALUE_MAX: u64 = 99_999_999;

/// The value of a `grpc-timeout` field, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutValue {
    bytes: [u8; 9],
    start: u8,
}

impl TimeoutValue {
    /// Writes `timeout` in the finest unit that fits eight digits, rounded down: the peer never waits longer than we
    /// do. If a coarser unit is exact, it is used: `10S`.
    ///
    /// The rounding error is less than one part in 100,000: 99.9 s is sent in microseconds, 100.001 s in milliseconds
    /// (`100001m`). More than 99,999,999 hours is sent as just that.
    pub fn new(timeout: Duration) -> TimeoutValue {
        let (secs, nanos) = (timeout.as_secs(), u64::from(timeout.subsec_nanos()));
        let (mut value, mut unit) = match secs {
            0 if nanos <= VALUE_MAX => (nanos, b'n'),
            0..=99 => (secs * 1_000_000 + nanos / 1_000, b'u'),
            100..=99_999 => (secs * 1_000 + nanos / 1_000_000, b'm'),
            100_000..=VALUE_MAX => (secs, b'S'),
            _ if secs / 60 <= VALUE_MAX => (secs / 60, b'M'),
            _ => ((secs / 3_600).min(VALUE_MAX), b'H'),
        };
        while let Some(coarser) = coarser(unit).filter(|_| value > 0 && value.is_multiple_of(1000)) {
            (value, unit) = (value / 1000, coarser);
        }
        let mut bytes = [b'0', b'0', b'0', b'0', b'0', b'0', b'0', b'0', unit];
        let mut start = 8;
        let mut rest = value as u32; // At most VALUE_MAX.
        loop {
            start -= 1;
            bytes[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return TimeoutValue { bytes, start: start as u8 };
            }
        }
    }

    /// Returns the value of the field.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

/// Returns whether the timeout is in whole milliseconds with at most three significant digits. Such a time was chosen
/// by a person and recurs with the next call. The rest of an earlier deadline has more digits.
#[inline]
pub fn is_round(timeout: Duration) -> bool {
    if !timeout.subsec_nanos().is_multiple_of(1_000_000) || timeout.as_secs() >= 1_000_000_000 {
        return false;
    }
    let mut millis = timeout.as_secs() * 1_000 + u64::from(timeout.subsec_millis());
    while millis >= 1_000 && millis.is_multiple_of(10) {
        millis /= 10;
    }
    millis < 1_000
}

/// Returns the unit that is a thousand times as long, if any.
fn coarser(unit: u8) -> Option<u8> {
    match unit {
        b'n' => Some(b'u'),
        b'u' => Some(b'm'),
        b'm' => Some(b'S'),
        _ => None,
    }
}

/// Parses the value of a received `grpc-timeout` field.
pub fn parse(value: &[u8]) -> Result<Duration, MalformedTimeout> {
    let malformed = || MalformedTimeout(String::from_utf8_lossy(value).into_owned());
    let (&unit, digits) = value.split_last().ok_or_else(malformed)?;
    if !matches!(digits.len(), 1..=8) {
        return Err(malformed());
    }
    let mut count = 0;
    for digit in digits {
        match digit {
            b'0'..=b'9' => count = count * 10 + u64::from(digit - b'0'),
            _ => return Err(malformed()),
        }
    }
    match unit {
        b'n' => Ok(Duration::from_nanos(count)),
        b'u' => Ok(Duration::from_micros(count)),
        b'm' => Ok(Duration::from_millis(count)),
        b'S' => Ok(Duration::from_secs(count)),
        b'M' => Ok(Duration::from_secs(count * 60)),
        b'H' => Ok(Duration::from_secs(count * 3_600)),
        _ => Err(malformed()),
    }
}

/// Returns the timeout in a request's metadata, where `Request::set_timeout` stores it.
///
/// It is not sent from there: the channel uses it as the call's deadline.
#[inline]
pub fn from_metadata(metadata: &HeaderMap) -> Result<Option<Duration>, MalformedTimeout> {
    if metadata.is_empty() { Ok(None) } else { find(metadata) }
}

fn find(metadata: &HeaderMap) -> Result<Option<Duration>, MalformedTimeout> {
    // Comparing a few names is cheaper than hashing one.
    let value = match metadata.len() {
        ..=6 => metadata.iter().find(|(name, _)| **name == NAME).map(|(_, value)| value),
        _ => metadata.get(NAME),
    };
    value.map(|value| parse(value.as_bytes())).transpose()
}

/// A malformed `grpc-timeout`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed grpc-timeout {0:?}: expected one to eight digits and one of H, M, S, m, u, n")]
pub struct MalformedTimeout(String);

impl From<MalformedTimeout> for Status {
    fn from(error: MalformedTimeout) -> Self {
        Self::local(Code::Internal, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Seeded;

    /// Checks that `timeout` is sent as `value`, and read as `received`.
    fn check(timeout: Duration, value: &str, received: Duration) {
        assert_eq!(str::from_utf8(TimeoutValue::new(timeout).as_bytes()), Ok(value));
        assert_eq!(parse(value.as_bytes()), Ok(received));
    }

    #[test]
    fn units_and_rounding() {
        let exact = |timeout, value| check(timeout, value, timeout);
        exact(Duration::ZERO, "0n");
        exact(Duration::from_nanos(1), "1n");
        exact(Duration::from_nanos(99_999_999), "99999999n");
        exact(Duration::from_nanos(1_500), "1500n");
        exact(Duration::from_millis(100), "100m");
        check(Duration::from_nanos(100_000_999), "100m", Duration::from_millis(100));
        exact(Duration::from_millis(1_500), "1500m");
        exact(Duration::from_secs(1), "1S");
        exact(Duration::from_secs(100), "100S");
        check(Duration::from_nanos(100_000_000_001), "100S", Duration::from_secs(100));
        exact(Duration::from_millis(100_001), "100001m");
        check(Duration::from_nanos(99_999_999_999), "99999999u", Duration::from_micros(99_999_999));
        exact(Duration::from_secs(100_000), "100000S");
        exact(Duration::from_secs(99_999_999), "99999999S");
        check(Duration::from_secs(100_000_019), "1666666M", Duration::from_secs(99_999_960));
        check(Duration::from_secs(6_000_000_019), "1666666H", Duration::from_secs(5_999_997_600));
        check(Duration::MAX, "99999999H", Duration::from_secs(359_999_996_400));
    }

    #[test]
    fn times_that_people_choose_are_round() {
        for millis in [0, 1, 5, 100, 250, 999, 1_000, 1_500, 10_000, 30_000, 60_000, 125_000, 3_600_000] {
            assert!(is_round(Duration::from_millis(millis)), "{millis} ms");
        }
        for nanos in [1_001, 999_999, 9_999_873_211, 10_000_001_000, 1_234_000_000] {
            assert!(!is_round(Duration::from_nanos(nanos)), "{nanos} ns");
        }
        assert!(!is_round(Duration::MAX));
    }

    #[test]
    fn random_timeouts_are_never_lengthened_and_lose_little() {
        let mut seeded = Seeded(1);
        for _ in 0..100_000 {
            let secs = seeded.next() >> (28 + seeded.below(36));
            let timeout = Duration::new(secs, seeded.below(1_000_000_000) as u32);
            let received = parse(TimeoutValue::new(timeout).as_bytes()).unwrap();
            let lost = timeout.checked_sub(received).expect("never lengthened");
            assert!(lost <= timeout / 100_000, "{timeout:?} became {received:?}");
        }
    }

    #[test]
    fn invalid_timeout_is_an_error() {
        for value in
            ["", "S", "1", "1s", "123456789n", "-1S", "+1S", "1 S", " 1S", "1S ", "1.5S", "1SS", "\u{661}S"]
        {
            let error = parse(value.as_bytes()).unwrap_err();
            assert_eq!(error, MalformedTimeout(value.to_owned()));
            assert_eq!(Status::from(error).code(), Code::Internal);
        }
    }

    #[test]
    fn requests_carry_their_timeout_in_the_metadata() {
        let mut metadata = HeaderMap::new();
        assert_eq!(from_metadata(&metadata), Ok(None));
        metadata.insert(NAME, "1500000u".parse().unwrap());
        assert_eq!(from_metadata(&metadata), Ok(Some(Duration::from_millis(1_500))));
    }
}
