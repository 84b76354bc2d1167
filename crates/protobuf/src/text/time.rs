//! Text forms of `google.protobuf.Timestamp` and `google.protobuf.Duration`.

use super::calendar::{SECONDS_PER_DAY, date, days_in, days_since_1970};
use super::number;

/// 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z, in seconds since 1970.
pub(crate) const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// Maximum duration in seconds, positive or negative: 10,000 years of 365.25 days.
pub(crate) const DURATION_SECONDS_MAX: i64 = 315_576_000_000;
const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// Appends `1970-01-01T00:00:00Z`, with a fraction of 3, 6 or 9 digits if needed. Returns false and appends nothing if
/// the time is out of range.
pub(crate) fn write_timestamp(seconds: i64, nanos: i32, text: &mut Vec<u8>) -> bool {
    if !TIMESTAMP_SECONDS.contains(&seconds) || !(0..NANOS_PER_SECOND).contains(&nanos) {
        return false;
    }
    let (days, second) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY) as u32);
    let (year, month, day) = date(days);
    // Timestamps end with year 9999, so this fits.
    let year = year as u32;
    let mut form = *b"0000-00-00T00:00:00";
    let numbers = [year / 100, year % 100, month, day, second / 3600, second / 60 % 60, second % 60];
    for (at, number) in [0, 2, 5, 8, 11, 14, 17].into_iter().zip(numbers) {
        form[at] += (number / 10) as u8;
        form[at + 1] += (number % 10) as u8;
    }
    text.extend_from_slice(&form);
    write_fraction(nanos.unsigned_abs(), text);
    text.push(b'Z');
    true
}

/// Parses `2024-02-29T12:00:00.5+01:00` to seconds since 1970 and nanoseconds. Letters must be upper case, as RFC 3339
/// §5.6 recommends.
pub(crate) fn parse_timestamp(text: &str) -> Option<(i64, i32)> {
    let (date_and_time, rest) = text.as_bytes().split_at_checked(19)?;
    let separators = [4, 7, 10, 13, 16].map(|at| date_and_time[at]);
    if separators != *b"--T::" {
        return None;
    }
    let part = |from: usize, to: usize| digits(&date_and_time[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if year == 0 || !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, zone) = parse_fraction(rest)?;
    let ahead = match zone {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let ahead = i64::from(hours * 3600 + minutes * 60);
            if *sign == b'-' { -ahead } else { ahead }
        }
        _ => return None,
    };
    let second_of_day = i64::from(hour * 3600 + minute * 60 + second);
    let seconds = days_since_1970(year, month, day) * SECONDS_PER_DAY + second_of_day - ahead;
    TIMESTAMP_SECONDS.contains(&seconds).then_some((seconds, nanos as i32))
}

/// Appends `-1.500s`. Returns false and appends nothing if the duration is out of range or its parts differ in sign.
pub(crate) fn write_duration(seconds: i64, nanos: i32, text: &mut Vec<u8>) -> bool {
    let is_in_range =
        seconds.abs_diff(0) <= DURATION_SECONDS_MAX as u64 && nanos.abs_diff(0) < NANOS_PER_SECOND as u32;
    if !is_in_range || seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0 {
        return false;
    }
    if seconds < 0 || nanos < 0 {
        text.push(b'-');
    }
    number::append(text, |place| number::put_integer(false, seconds.unsigned_abs(), place));
    write_fraction(nanos.unsigned_abs(), text);
    text.push(b's');
    true
}

/// Parses a duration to seconds and nanoseconds of the same sign.
pub(crate) fn parse_duration(text: &str) -> Option<(i64, i32)> {
    let text = text.strip_suffix('s')?;
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let integer_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // Apart from leading zeros, longer numbers are out of range.
    if integer_digits == 0 || integer_digits > 18 {
        return None;
    }
    let seconds: i64 = text[..integer_digits].parse().ok()?;
    let (nanos, rest) = parse_fraction(&text.as_bytes()[integer_digits..])?;
    let is_sound = rest.is_empty() && seconds <= DURATION_SECONDS_MAX;
    let nanos = nanos as i32;
    is_sound.then_some(if is_negative { (-seconds, -nanos) } else { (seconds, nanos) })
}

/// Appends nothing, or a point and 3, 6 or 9 digits.
fn write_fraction(nanos: u32, text: &mut Vec<u8>) {
    if nanos == 0 {
        return;
    }
    let (mut number, digits) = match nanos {
        _ if nanos.is_multiple_of(1_000_000) => (nanos / 1_000_000, 3),
        _ if nanos.is_multiple_of(1_000) => (nanos / 1_000, 6),
        _ => (nanos, 9),
    };
    let mut form = *b".000000000";
    for digit in form[1..=digits].iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    text.extend_from_slice(&form[..=digits]);
}

/// Parses a fraction such as `.5`, with 1 to 9 digits, or none. Returns the nanoseconds and the rest of the text.
fn parse_fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some((b'.', text)) = text.split_first() else { return Some((0, text)) };
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 || len > 9 {
        return None;
    }
    let nanos = digits(&text[..len])? * 10_u32.pow(9 - len as u32);
    Some((nanos, &text[len..]))
}

/// Parses at most nine digits; any other character is an error.
fn digits(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(seconds: i64, nanos: i32) -> Option<String> {
        let mut text = Vec::new();
        write_timestamp(seconds, nanos, &mut text).then(|| String::from_utf8(text).unwrap())
    }

    fn duration(seconds: i64, nanos: i32) -> Option<String> {
        let mut text = Vec::new();
        write_duration(seconds, nanos, &mut text).then(|| String::from_utf8(text).unwrap())
    }

    #[test]
    fn timestamps_round_trip() {
        for (seconds, nanos, text) in [
            (0, 0, "1970-01-01T00:00:00Z"),
            (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
            (1_709_208_000, 500_000_000, "2024-02-29T12:00:00.500Z"),
            (951_782_400, 1_000, "2000-02-29T00:00:00.000001Z"),
            (-2_203_891_200, 0, "1900-03-01T00:00:00Z"),
            (-62_135_596_800, 0, "0001-01-01T00:00:00Z"),
            (253_402_300_799, 999_999_999, "9999-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(timestamp(seconds, nanos).as_deref(), Some(text));
            assert_eq!(parse_timestamp(text), Some((seconds, nanos)), "{text}");
        }
    }

    #[test]
    fn timestamps_accept_time_zones() {
        assert_eq!(parse_timestamp("1970-01-01T01:00:00+01:00"), Some((0, 0)));
        assert_eq!(parse_timestamp("1969-12-31T23:30:00.5-00:30"), Some((0, 500_000_000)));
    }

    #[test]
    fn invalid_timestamps_are_rejected() {
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01t00:00:00Z",
            "1970-01-01T00:00:00z",
            "1970-01-01 00:00:00Z",
            "1970-13-01T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:60Z",
            "0000-01-01T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.1234567890Z",
            "1970-01-01T00:00:00Z ",
            "1970-01-01T00:00:00+0100",
            "1970-01-01T00:00:00+24:00",
            "0001-01-01T00:00:00+00:01",
            "+970-01-01T00:00:00Z",
            "9999-12-31T23:59:59-00:01",
            "1970-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
        for (seconds, nanos) in
            [(-62_135_596_801, 0), (253_402_300_800, 0), (0, -1), (0, 1_000_000_000), (i64::MIN, 0)]
        {
            assert_eq!(timestamp(seconds, nanos), None);
        }
    }

    #[test]
    fn durations_round_trip() {
        for (seconds, nanos, text) in [
            (0, 0, "0s"),
            (1, 500_000_000, "1.500s"),
            (0, -1_000, "-0.000001s"),
            (-3, -1, "-3.000000001s"),
            (315_576_000_000, 999_999_999, "315576000000.999999999s"),
        ] {
            assert_eq!(duration(seconds, nanos).as_deref(), Some(text));
            assert_eq!(parse_duration(text), Some((seconds, nanos)), "{text}");
        }
        assert_eq!(parse_duration("1.5s"), Some((1, 500_000_000)));
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in
            ["", "s", "1", "1.s", ".5s", "-s", "+1s", "1.1234567890s", "1 s", "315576000001s", "1e3s", "--1s"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        let out = [(1, -1), (-1, 1), (315_576_000_001, 0), (i64::MIN, 0), (0, 1_000_000_000), (0, i32::MIN)];
        for (seconds, nanos) in out {
            assert_eq!(duration(seconds, nanos), None);
        }
    }
}
