//! Formats numbers for people: usually three significant digits and a unit.

use std::time::Duration;

use crate::statistics::{Interval, Ratio};

/// Formats a time given in ns: `84.1 µs`.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 999.5 => format!("{} ns", digits(ns)),
        _ if ns < 999.5e3 => format!("{} µs", digits(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// Formats a count, or a rate without its unit: `1.23 M`, `840`.
pub fn count(value: f64) -> String {
    match value {
        _ if value < 999.5 => digits(value),
        _ if value < 999.5e3 => format!("{} k", digits(value / 1e3)),
        _ if value < 999.5e6 => format!("{} M", digits(value / 1e6)),
        _ => format!("{} G", digits(value / 1e9)),
    }
}

/// Formats a throughput given in bytes per second, with powers of 1000: `2.93 GB/s`.
pub fn throughput(bytes_per_s: f64) -> String {
    match bytes_per_s {
        _ if bytes_per_s < 999.5 => format!("{} B/s", digits(bytes_per_s)),
        _ if bytes_per_s < 999.5e3 => format!("{} kB/s", digits(bytes_per_s / 1e3)),
        _ if bytes_per_s < 999.5e6 => format!("{} MB/s", digits(bytes_per_s / 1e6)),
        _ => format!("{} GB/s", digits(bytes_per_s / 1e9)),
    }
}

/// Formats a fraction as a percentage: `62 %`, and two significant digits below 10 %: `0.41 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{} %", digits_of(percent, 2)) }
}

/// Formats a ratio with two decimals below 1, one below 10 and none above: `0.95`, `5.1`, `12`.
pub fn ratio(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 9.95 => format!("{ratio:.0}"),
        _ if ratio >= 0.995 => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Formats a ratio with its interval, if it has one: `8.1 × (7.7–8.6)`.
pub fn ratio_text(ratio: Ratio) -> String {
    match interval_figure(ratio) {
        Some(interval) => format!("{} × ({interval})", ratio_figure(ratio.ratio)),
        None => format!("{} ×", ratio_figure(ratio.ratio)),
    }
}

/// Formats an interval, with its ends formatted by `show`: `1.2 – 1.4`.
pub fn from_to(interval: Option<Interval>, show: fn(f64) -> String) -> Option<String> {
    interval.map(|Interval { low, high }| format!("{} – {}", show(low), show(high)))
}

/// Formats a ratio's interval: `7.7–8.6`. `None` if it has none.
pub fn interval_figure(ratio: Ratio) -> Option<String> {
    let interval = ratio.interval?;
    Some(format!("{}–{}", ratio_figure(interval.low), ratio_figure(interval.high)))
}

/// Formats a ratio without a multiplication sign.
///
/// Writes two decimals below 2, one below 20 and none above. Writes three decimals within 0.5 % of 1 and below 0.1.
pub fn ratio_figure(ratio: f64) -> String {
    let decimals = match ratio {
        // The end of an interval must not be rounded to 1 if it is not 1.
        _ if ratio < 0.0995 || (0.995..1.005).contains(&ratio) => 3,
        _ if ratio < 1.995 => 2,
        _ if ratio < 19.95 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$}")
}

/// Formats a factor: `5.1 times`, `12 times`.
pub fn times(factor: f64) -> String {
    format!("{} times", ratio(factor))
}

/// Formats a number with its integer digits in groups of three, or with three digits below 1,000: `1 234 567`, `12.3`.
pub fn grouped(value: f64) -> String {
    if value < 999.5 {
        return digits(value);
    }
    let plain = format!("{value:.0}");
    let mut grouped = String::with_capacity(plain.len() * 4 / 3 + 1);
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a duration in minutes and whole seconds: `1 min 14 s`, `8 s`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Replaces the space between a digit and a unit with a no-break space, so that no line breaks there.
///
/// Recognises units by their first character, one of `BKMGknµms%`.
pub fn bound(text: &str) -> String {
    let mut bound = String::with_capacity(text.len());
    let mut after_digit = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let before_unit = chars.peek().is_some_and(|next| "BKMGknµms%".contains(*next));
        bound.push(if c == ' ' && after_digit && before_unit { NO_BREAK_SPACE } else { c });
        after_digit = c.is_ascii_digit();
    }
    bound
}

/// The character that [`bound`] puts between a number and its unit.
pub const NO_BREAK_SPACE: char = '\u{a0}';

/// Rounds to four significant digits, because further digits are noise. Returns 0 if `value` is not finite.
pub fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let decimals = 3 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(decimals.abs());
    if decimals >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

fn digits(value: f64) -> String {
    digits_of(value, 3)
}

/// Formats a value with `significant` digits, or with all its integer digits if there are more. Whole numbers below
/// 1,000 have no decimals. Returns `0` for values that are not positive.
fn digits_of(value: f64, significant: i32) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    // Rounding may add a digit (9.996 becomes 10.0), so this takes the magnitude of the rounded value.
    let scale = 10_f64.powi(significant - 1 - value.log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    let magnitude = rounded.log10().floor().max(-3.0) as i32;
    let decimals = usize::try_from(significant - 1 - magnitude).unwrap_or(0);
    if value.fract() == 0.0 && value < 1000.0 { format!("{value}") } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_inserts_no_break_space_before_units() {
        assert_eq!(
            bound("16 in flight of 4 KiB: 2.5 µs, 76 %"),
            "16 in flight of 4\u{a0}KiB: 2.5\u{a0}µs, 76\u{a0}%"
        );
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(time(0.0), "0 ns");
        check(time(87.0), "87 ns");
        check(time(87.27), "87.3 ns");
        check(time(999.6), "1.00 µs");
        check(time(84_123.0), "84.1 µs");
        check(time(9_996_000.0), "10.0 ms");
        check(time(1_234_000_000.0), "1.23 s");
        check(count(12.0), "12");
        check(count(1_234_567.0), "1.23 M");
        check(count(312_499.0), "312 k");
        check(throughput(2_934_000_000.0), "2.93 GB/s");
        check(throughput(0.0), "0 B/s");
        check(percent(0.62), "62 %");
        check(percent(0.0041), "0.41 %");
        check(percent(1.04), "104 %");
        check(times(5.123), "5.1 times");
        check(times(12.4), "12 times");
        check(times(6.0), "6.0 times");
        check(ratio(0.5), "0.50");
        check(grouped(0.5), "0.500");
        check(grouped(999.4), "999");
        check(grouped(1_000.0), "1 000");
        check(grouped(1_234_567.4), "1 234 567");
        check(span(Duration::from_secs(74)), "1 min 14 s");
        check(span(Duration::from_millis(7600)), "8 s");
        check(span(Duration::from_secs(120)), "2 min");
    }

    #[test]
    fn short_keeps_four_digits() {
        let figures = [
            (0.0, "0"),
            (1.0, "1"),
            (1_234_567.0, "1235000"),
            (0.000_123_456, "0.0001235"),
            (9.999_96, "10"),
            (1.23456, "1.235"),
            (123_456.0, "123500"),
            (0.012_345_6, "0.01235"),
        ];
        for (value, kept) in figures {
            assert_eq!(short(value).to_string(), kept);
        }
    }
}
