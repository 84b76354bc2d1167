//! Timeouts with a unit or in seconds.

use std::time::Duration;

/// Parses `5s`, `1m 30s` or `250ms`. Without a unit, as in grpcurl, curl and hey, the number is in seconds: `5`, `0.5`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && let Ok(seconds) = text.parse::<f64>()
    {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_unit_are_seconds() {
        for (text, expected) in [
            ("5", Some(5_000)),
            ("0.5", Some(500)),
            ("0", Some(0)),
            ("250ms", Some(250)),
            ("1m 30s", Some(90_000)),
            ("", None),
            ("-1", None),
            ("1e3", None),
            ("five", None),
            ("99999999999999999999999999", None),
        ] {
            assert_eq!(parse(text).ok(), expected.map(Duration::from_millis), "{text:?}");
        }
    }
}
