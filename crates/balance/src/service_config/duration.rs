//! Durations of ProtoJSON.

use std::time::Duration;

/// Maximum of protobuf's `Duration`: 10,000 years of 365.25 days on average.
const SECS_MAX: u64 = 315_576_000_000;

/// Parses a duration such as `1.5s`; `None` if it is invalid or negative.
///
/// The fraction has up to nine digits. Either part may be empty, but not both, as in grpc-go: `.5s` and `1.s` are
/// valid.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 || (whole.is_empty() && fraction.is_empty())
    {
        return None;
    }
    let secs = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    let duration = Duration::new(secs, nanos);
    (duration <= Duration::from_secs(SECS_MAX)).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_protojson() {
        let check = |text: &str, expected: Option<(u64, u32)>| {
            let expected = expected.map(|(secs, nanos)| Duration::new(secs, nanos));
            assert_eq!(parse_duration(text), expected, "{text:?}");
        };
        check("1s", Some((1, 0)));
        check("0s", Some((0, 0)));
        check("007s", Some((7, 0)));
        check("1.1s", Some((1, 100_000_000)));
        check("1.s", Some((1, 0)));
        check("1.0s", Some((1, 0)));
        check(".002s", Some((0, 2_000_000)));
        check(".002000s", Some((0, 2_000_000)));
        check("0.000004s", Some((0, 4_000)));
        check("5000.000000009s", Some((5000, 9)));
        check("4999.999999999s", Some((4999, 999_999_999)));
        check("315576000000s", Some((315_576_000_000, 0)));
        check("315576000000.000000001s", None);
        check("315576000001s", None);
        check("18446744073709551616s", None);
        check(".0000000001s", None);
        for text in
            ["", "1", "s", ".s", "1 s", " 1s", "1ms", "1.1.1s", "Xs", "-1s", "+1s", "-0s", "1e3s", "1S", "١s"]
        {
            check(text, None);
        }
    }
}
