//! Values of number and string tokens, and formatting of default values.

/// Returns the value of an integer token, if it is at most `max`.
pub(super) fn integer(text: &[u8], max: u64) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let value = match text.strip_prefix('0') {
        Some("") => 0,
        Some(rest) => match rest.strip_prefix(['x', 'X']) {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => u64::from_str_radix(rest, 8).ok()?,
        },
        None => text.parse().ok()?,
    };
    (value <= max).then_some(value)
}

/// Returns the value of a float token, or of an integer token that is too large for an integer.
pub(super) fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Appends the value of a string token, which includes its quotes.
pub(super) fn unescape(token: &[u8], into: &mut Vec<u8>) {
    let [quote, rest @ ..] = token else { return };
    let body = rest.strip_suffix(&[*quote]).unwrap_or(rest);
    let mut at = 0;
    while let Some(&byte) = body.get(at) {
        at += 1;
        if byte != b'\\' {
            into.push(byte);
            continue;
        }
        let Some(&escape) = body.get(at) else { return into.push(byte) };
        at += 1;
        match escape {
            b'0'..=b'7' => into.push(digits(body, at - 1, 3, 8, &mut at) as u8),
            b'x' | b'X' => into.push(digits(body, at, 2, 16, &mut at) as u8),
            b'u' | b'U' => {
                let len = if escape == b'u' { 4 } else { 8 };
                let mut point = digits(body, at, len, 16, &mut at);
                if (0xd800..0xdc00).contains(&point) && body[at..].starts_with(b"\\u") {
                    let mut end = at;
                    let low = digits(body, at + 2, 4, 16, &mut end);
                    if (0xdc00..0xe000).contains(&low) {
                        point = 0x1_0000 + ((point - 0xd800) << 10) + (low - 0xdc00);
                        at = end;
                    }
                }
                push_code_point(point, into);
            }
            b'a' => into.push(0x07),
            b'b' => into.push(0x08),
            b'f' => into.push(0x0c),
            b'n' => into.push(b'\n'),
            b'r' => into.push(b'\r'),
            b't' => into.push(b'\t'),
            b'v' => into.push(0x0b),
            other => into.push(other),
        }
    }
}

/// Parses at most `len` digits from `start`. Sets `end` to the position after them.
fn digits(text: &[u8], start: usize, len: usize, radix: u32, end: &mut usize) -> u32 {
    let mut value = 0;
    *end = start;
    while *end < start + len
        && let Some(digit) = text.get(*end).and_then(|&byte| char::from(byte).to_digit(radix))
    {
        value = value * radix + digit;
        *end += 1;
    }
    value
}

/// Appends a code point as UTF-8; lone surrogates too, like protoc.
fn push_code_point(point: u32, into: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
    match point {
        0..=0x7f => into.push(point as u8),
        0x80..=0x7ff => into.extend([0xc0 | (point >> 6) as u8, tail(0)]),
        0x800..=0xffff => into.extend([0xe0 | (point >> 12) as u8, tail(6), tail(0)]),
        _ => into.extend([0xf0 | (point >> 18 & 0x07) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// Escapes bytes as in `default_value`: with C escapes.
pub(super) fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            b'\t' => escaped.extend(b"\\t"),
            b'"' => escaped.extend(b"\\\""),
            b'\'' => escaped.extend(b"\\'"),
            b'\\' => escaped.extend(b"\\\\"),
            0x20..=0x7e => escaped.push(byte),
            _ => escaped.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    escaped
}

/// Formats a double like protoc: with 15 digits if these suffice, otherwise with 17.
pub(super) fn double_text(value: f64) -> String {
    shortest(value, 15, 17, |text| text.parse() == Ok(value))
}

/// Formats a float: with 6 digits if these suffice, otherwise with 9.
pub(super) fn float_text(value: f32) -> String {
    shortest(f64::from(value), 6, 9, |text| text.parse() == Ok(value))
}

fn shortest(value: f64, few: usize, many: usize, is_exact: impl Fn(&str) -> bool) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = general(value, few);
    if is_exact(&text) { text } else { general(value, many) }
}

/// Formats like C's `%.*g`.
fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| {
        let is_decimal = text.contains('.');
        if is_decimal { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    without_zeros(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_as_in_c() {
        let check = |value: f64, expected: &str| assert_eq!(double_text(value), expected);
        check(0.0, "0");
        check(-1.5, "-1.5");
        check(1e15, "1e+15");
        check(123_456.0, "123456");
        check(1e-5, "1e-05");
        check(0.0001, "0.0001");
        check(0.1 + 0.2, "0.30000000000000004");
        check(f64::NEG_INFINITY, "-inf");
        assert_eq!(float_text(1.1), "1.1");
        assert_eq!(float_text(16_777_217.0), "16777216");
        assert_eq!(float_text(1e10), "1e+10");
    }

    #[test]
    fn integers_accept_decimal_octal_and_hex() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(integer(text.as_bytes(), 255), expected);
        check("0", Some(0));
        check("255", Some(255));
        check("256", None);
        check("0xff", Some(255));
        check("017", Some(15));
        check("99999999999999999999", None);
    }

    #[test]
    fn strings_are_unescaped() {
        let check = |token: &[u8], expected: &[u8]| {
            let mut value = Vec::new();
            unescape(token, &mut value);
            assert_eq!(value, expected);
        };
        check(br#""a\n\x41\101\0""#, b"a\nAA\0");
        check(br"'\u00e9\U0001F600'", "é😀".as_bytes());
        check(br"'\ud83d\ude00'", "😀".as_bytes());
        check(br#"'\'"\"'"#, br#"'"""#);
        assert_eq!(escape(b"\0a\"\xff\n"), br#"\000a\"\377\n"#);
    }
}
