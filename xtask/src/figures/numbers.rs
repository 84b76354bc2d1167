//! Number formats of the documents.

use crate::bench::table::three_digits;

/// Formats a ratio: two decimals below 2, one below 20, none above.
pub(crate) fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.995 => format!("{ratio:.2}"),
        ratio if ratio < 19.95 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

/// Formats operations per second with three digits: `116 k/s`.
pub(crate) fn rate(per_s: f64) -> String {
    let (number, unit) = match per_s {
        rate if rate >= 999_500.0 => (rate / 1e6, " M/s"),
        rate if rate >= 999.5 => (rate / 1e3, " k/s"),
        rate => (rate, "/s"),
    };
    format!("{}{unit}", three_digits(number))
}

/// Formats a time in nanoseconds with three digits: `116 µs`.
pub(crate) fn time(ns: f64) -> String {
    let (number, unit) = match ns {
        ns if ns >= 999.5e6 => (ns / 1e9, "s"),
        ns if ns >= 999.5e3 => (ns / 1e6, "ms"),
        ns if ns >= 999.5 => (ns / 1e3, "µs"),
        ns => (ns, "ns"),
    };
    format!("{} {unit}", three_digits(number))
}

/// Formats bytes in the unit with the shortest number: `64 KiB`, `1.5 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes if bytes >= 1_000_000 => format!("{} MB", bytes as f64 / 1e6),
        bytes => format!("{bytes} B"),
    }
}

/// Formats a share as `79 %`, or as `3.3 %` below ten.
pub(crate) fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!([1.764, 2.04, 17.62, 24.4].map(ratio), ["1.76", "2.0", "17.6", "24"]);
        assert_eq!([106_000.0, 1_724_000.0, 835.4].map(rate), ["106 k/s", "1.72 M/s", "835/s"]);
        assert_eq!([116_000.0, 1.85e6, 65_700.0].map(time), ["116 µs", "1.85 ms", "65.7 µs"]);
        assert_eq!(
            [0, 1024, 65_536, 1_500_000, 4 << 20].map(size),
            ["0 B", "1 KiB", "64 KiB", "1.5 MB", "4 MiB"]
        );
        assert_eq!([0.79, 0.033, 1.16].map(share), ["79 %", "3.3 %", "116 %"]);
    }
}
