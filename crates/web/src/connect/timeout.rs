//! `connect-timeout-ms`: the remaining time of a call in milliseconds, as up to ten digits.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use thalweg_engine::{Code, Status};

pub(super) const NAME: HeaderName = HeaderName::from_static("connect-timeout-ms");

/// Largest value of ten digits: 115 days.
const MILLIS_MAX: u64 = 9_999_999_999;

/// Reads the header.
///
/// # Errors
/// INVALID_ARGUMENT if the value is malformed.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(NAME) else { return Ok(None) };
    let digits = value.as_bytes();
    if !matches!(digits.len(), 1..=10) || !digits.iter().all(u8::is_ascii_digit) {
        let value = String::from_utf8_lossy(digits);
        let why = format!("malformed {NAME} {value:?}: expected one to ten digits");
        return Err(Status::new(Code::InvalidArgument, why));
    }
    let millis = digits.iter().fold(0, |millis, digit| millis * 10 + u64::from(digit - b'0'));
    Ok(Some(Duration::from_millis(millis)))
}

/// Returns the header value of `timeout`, rounded down so that the peer never waits longer than the caller.
pub(super) fn value(timeout: Duration) -> HeaderValue {
    HeaderValue::from(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).min(MILLIS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    #[test]
    fn timeouts() {
        let check = |value: &str, expected: Result<u64, &str>| {
            let outcome = read(&headers(&[("connect-timeout-ms", value)]));
            let outcome = outcome.as_ref().map(|timeout| timeout.unwrap().as_millis() as u64);
            assert_eq!(outcome.map_err(Status::message), expected);
        };
        check("0", Ok(0));
        check("5000", Ok(5000));
        check("0000000001", Ok(1));
        check("9999999999", Ok(MILLIS_MAX));
        let malformed =
            |value: &str| format!("malformed connect-timeout-ms {value:?}: expected one to ten digits");
        for value in ["", "00000000001", "-1", "+1", "1.5", "1s", " 1", "a"] {
            check(value, Err(&malformed(value)));
        }
        assert_eq!(read(&HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn timeout_is_written_in_milliseconds() {
        let check = |timeout, expected| assert_eq!(value(timeout), expected);
        check(Duration::ZERO, "0");
        check(Duration::from_micros(1_999), "1");
        check(Duration::from_secs(10_000_000), "9999999999");
        check(Duration::MAX, "9999999999");
    }
}
