//! Numbers as read and written by ProtoJSON.

/// The reason why a number is invalid for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberProblem {
    /// It does not match JSON's grammar.
    Grammar,
    /// It is not an integer, but must be.
    Fraction,
    /// It is out of range.
    Range,
}

impl NumberProblem {
    /// Describes the problem, to be put after the number in error messages.
    pub(crate) fn words(self) -> &'static str {
        match self {
            NumberProblem::Grammar => "not a number",
            NumberProblem::Fraction => "not a whole number",
            NumberProblem::Range => "out of range",
        }
    }
}

/// Returns the integer value of `text`, which matches JSON's grammar; `1e2` and `1.0` are integers.
#[inline]
pub(crate) fn integer(text: &str) -> Result<i128, NumberProblem> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // 19 digits are below 10^19, which fits in a u64.
    let mut magnitude = 0;
    if digits.len() <= 19 {
        for &digit in digits.as_bytes() {
            if !digit.is_ascii_digit() {
                return decimal(is_negative, digits);
            }
            magnitude = magnitude * 10 + u64::from(digit - b'0');
        }
        return Ok(signed(is_negative, magnitude));
    }
    decimal(is_negative, digits)
}

fn signed(is_negative: bool, magnitude: u64) -> i128 {
    let magnitude = i128::from(magnitude);
    if is_negative { -magnitude } else { magnitude }
}

/// Parses a number with a point, an exponent or many digits. Exact; the time is bounded for any exponent.
#[cold]
fn decimal(is_negative: bool, text: &str) -> Result<i128, NumberProblem> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().all(|digit| digit == b'0') {
        return Ok(0);
    }
    // Clamping is enough: the number is out of range or a fraction either way.
    let exponent: i64 = match exponent.parse::<i32>() {
        Ok(exponent) => exponent.into(),
        Err(_) if exponent.starts_with('-') => i64::from(i32::MIN) - text.len() as i64,
        Err(_) => i64::from(i32::MAX) + text.len() as i64,
    };
    // 12.50e1: the digits 1250, of which 2 + 1 are before the point.
    let before_point = whole.len() as i64 + exponent;
    let mut magnitude = 0_u64;
    for (position, digit) in (0_i64..).zip(digits()) {
        if position < before_point {
            let next = magnitude.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit - b'0')));
            magnitude = next.ok_or(NumberProblem::Range)?;
        } else if digit != b'0' {
            return Err(NumberProblem::Fraction);
        }
    }
    for _ in (whole.len() + fraction.len()) as i64..before_point {
        magnitude = magnitude.checked_mul(10).ok_or(NumberProblem::Range)?;
    }
    Ok(signed(is_negative, magnitude))
}

/// Parses like [`integer`], for the text of a string, which need not be a number.
pub(crate) fn integer_in_string(text: &str) -> Result<i128, NumberProblem> {
    if is_number(text) { integer(text) } else { Err(NumberProblem::Grammar) }
}

/// Parses `text`, which matches JSON's grammar.
#[inline]
pub(crate) fn double(text: &str) -> Result<f64, NumberProblem> {
    finite(text.parse().unwrap_or(f64::NAN), f64::is_finite)
}

/// Parses `text`, rounding only once.
#[inline]
pub(crate) fn float(text: &str) -> Result<f32, NumberProblem> {
    finite(text.parse().unwrap_or(f32::NAN), f32::is_finite)
}

fn finite<F: Copy>(number: F, is_finite: fn(F) -> bool) -> Result<F, NumberProblem> {
    if is_finite(number) { Ok(number) } else { Err(NumberProblem::Range) }
}

/// Parses a number in a string, or one of the three words for numbers that JSON lacks.
pub(crate) fn double_in_string(text: &str) -> Result<f64, NumberProblem> {
    match text {
        "NaN" => Ok(f64::NAN),
        "Infinity" => Ok(f64::INFINITY),
        "-Infinity" => Ok(f64::NEG_INFINITY),
        _ if is_number(text) => double(text),
        _ => Err(NumberProblem::Grammar),
    }
}

/// See [`double_in_string`].
pub(crate) fn float_in_string(text: &str) -> Result<f32, NumberProblem> {
    match text {
        "NaN" => Ok(f32::NAN),
        "Infinity" => Ok(f32::INFINITY),
        "-Infinity" => Ok(f32::NEG_INFINITY),
        _ if is_number(text) => float(text),
        _ => Err(NumberProblem::Grammar),
    }
}

/// Whether `text` is exactly one JSON number.
fn is_number(text: &str) -> bool {
    let digits =
        |rest: &str| rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest.starts_with('0') {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let len = digits(fraction);
        if len == 0 {
            return false;
        }
        rest = &fraction[len..];
    }
    match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        None => rest.is_empty(),
    }
}

/// Returns `mantissa` / 10^`decimals`, rounded once. Returns `None` if one division of exact doubles is not enough.
#[inline]
pub(crate) fn small_double(mantissa: u64, decimals: usize) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    if mantissa > 1 << 53 {
        return None;
    }
    Some(mantissa as f64 / POWERS.get(decimals)?)
}

/// Converts `double`, which was rounded once, to the float nearest to the original number. Returns `None` if that is
/// uncertain.
#[inline]
pub(crate) fn to_float(double: f64) -> Option<f32> {
    // Only a double midway between two floats, with lower 29 bits 1000…, may originate from either side.
    let is_tie = double.to_bits() & ((1 << 29) - 1) == 1 << 28;
    let is_ordinary = double == 0.0 || (1e-30..1e30).contains(&double.abs());
    (is_ordinary && !is_tie).then_some(double as f32)
}

/// Space for the longest number written here with a trailing comma, and for the word its last digits are stored with.
pub(crate) type NumberBytes = [u8; 32];

/// Appends the output of `put`, which returns its length. Reserves the maximum and truncates, so that `put` needs no
/// space checks.
#[inline(always)]
pub(crate) fn append<const N: usize>(text: &mut Vec<u8>, put: impl FnOnce(&mut [u8; N]) -> usize) {
    let start = text.len();
    text.extend_from_slice(&[0; N]);
    if let Some(into) = text[start..].first_chunk_mut() {
        let len = put(into);
        text.truncate(start + len);
    }
}

/// Appends the output of `put` for each word, separated by commas. Reserves the space for all words at once. Not
/// inlined: in a larger function the loop's constants do not stay in registers.
#[inline(never)]
pub(crate) fn append_elements(
    words: &[u64],
    text: &mut Vec<u8>,
    put: impl Fn(u64, &mut NumberBytes) -> usize,
) {
    let start = text.len();
    text.resize(start + words.len() * size_of::<NumberBytes>(), 0);
    let (free, mut end) = (&mut text[start..], 0);
    for &word in words {
        if let Some(into) = free[end..].first_chunk_mut() {
            let len = put(word, into);
            into[len] = b',';
            end += len + 1;
        }
    }
    // Drop the last comma.
    text.truncate(start + end.saturating_sub(1));
}

/// Writes an integer and returns its end.
#[inline(always)]
pub(crate) fn put_integer(is_negative: bool, magnitude: u64, into: &mut NumberBytes) -> usize {
    let at = put_sign(into, 0, is_negative);
    put_digits(into, at, magnitude)
}

/// Writes an integer in quotes and returns its end.
#[inline(always)]
pub(crate) fn put_quoted_integer(is_negative: bool, magnitude: u64, into: &mut NumberBytes) -> usize {
    into[0] = b'"';
    let at = put_sign(into, 1, is_negative);
    let end = put_digits(into, at, magnitude);
    into[end] = b'"';
    end + 1
}

/// Writes true or false and returns its end. Branchless, because the value is unpredictable.
#[inline(always)]
pub(crate) fn put_bool(value: bool, into: &mut NumberBytes) -> usize {
    const WORDS: [u64; 2] = [u64::from_le_bytes(*b"false   "), u64::from_le_bytes(*b"true    ")];
    put_word(into, 0, WORDS[usize::from(value)]);
    5 - usize::from(value)
}

/// Writes the shortest text that reads back as `number`, and returns its end. Integers have no `.0`; non-finite
/// numbers are words in quotes.
#[inline(always)]
pub(crate) fn put_double(number: f64, into: &mut NumberBytes) -> usize {
    // Texts of at most 15 digits denote distinct numbers, so such a text that reads back is the shortest.
    let thousandths = (number.abs() * 1e3 + 0.5) as u32;
    if thousandths < EIGHT
        && thousandths > 0
        && (f64::from(thousandths) / 1e3).to_bits() == number.abs().to_bits()
    {
        return put_thousandths(number < 0.0, thousandths, into);
    }
    put_shortest(number, into)
}

/// See [`put_double`].
#[inline(always)]
pub(crate) fn put_float(number: f32, into: &mut NumberBytes) -> usize {
    // The same with 6 digits.
    let thousandths = (f64::from(number.abs()) * 1e3 + 0.5) as u32;
    if thousandths < 1_000_000
        && thousandths > 0
        && (thousandths as f32 / 1e3).to_bits() == number.abs().to_bits()
    {
        return put_thousandths(number < 0.0, thousandths, into);
    }
    put_shortest(number, into)
}

/// Writes a number below 10^5 with at most three decimals, given in thousandths below 10^8. Most human-written numbers
/// are such; a division verifies it, without a search.
#[inline(always)]
fn put_thousandths(is_negative: bool, thousandths: u32, into: &mut NumberBytes) -> usize {
    let at = put_sign(into, 0, is_negative);
    // Five digits before the point, of which at least one is kept, and three after it.
    let digits = eight_digits(thousandths);
    let (whole, fraction) = (digits & 0x00ff_ffff_ffff, digits >> 40 << 8);
    let zeros = zero_bits(whole | 1 << 32);
    put_word(into, at, (whole | ZEROS) >> zeros);
    let point = at + 5 - zeros as usize / 8;
    put_word(into, point, fraction | 0x3030_3000 | u64::from(b'.'));
    point + (71 - fraction.leading_zeros() as usize) / 8
}

#[inline(never)]
fn put_shortest<F: zmij::Float + Copy + Into<f64>>(number: F, into: &mut NumberBytes) -> usize {
    let mut buffer = zmij::Buffer::new();
    let text = if number.into().is_finite() {
        let shortest = buffer.format_finite(number);
        shortest.strip_suffix(".0").unwrap_or(shortest)
    } else {
        word(number.into())
    };
    into[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

/// Returns the word for a non-finite number.
fn word(number: f64) -> &'static str {
    if number.is_nan() {
        "\"NaN\""
    } else if number > 0.0 {
        "\"Infinity\""
    } else {
        "\"-Infinity\""
    }
}

/// Writes a minus if negative. Branchless, because the sign is hard to predict.
#[inline(always)]
fn put_sign(into: &mut NumberBytes, at: usize, is_negative: bool) -> usize {
    into[at] = b'-';
    at + usize::from(is_negative)
}

#[inline(always)]
fn put_digits(into: &mut NumberBytes, at: usize, number: u64) -> usize {
    let eight = u64::from(EIGHT);
    if number < eight {
        return put_first_digits(into, at, number as u32);
    }
    let (high, low) = (number / eight, (number % eight) as u32);
    let at = if high < eight {
        put_first_digits(into, at, high as u32)
    } else {
        let at = put_first_digits(into, at, (high / eight) as u32);
        put_word(into, at, eight_digits((high % eight) as u32) | ZEROS);
        at + 8
    };
    put_word(into, at, eight_digits(low) | ZEROS);
    at + 8
}

/// Writes the digits of a number below 10^8 at `at`, without leading zeros; 0 has one digit. Returns the end.
#[inline(always)]
fn put_first_digits(into: &mut NumberBytes, at: usize, number: u32) -> usize {
    let digits = eight_digits(number);
    let zeros = zero_bits(digits | 1 << 56);
    put_word(into, at, (digits | ZEROS) >> zeros);
    at + 8 - zeros as usize / 8
}

/// Returns the number of bits of the leading zeros in `digits`.
#[inline(always)]
fn zero_bits(digits: u64) -> u32 {
    digits.trailing_zeros() & 0x38
}

#[inline(always)]
fn put_word(into: &mut NumberBytes, at: usize, word: u64) {
    if let Some(into) = into[at..].first_chunk_mut() {
        *into = word.to_le_bytes();
    }
}

const EIGHT: u32 = 100_000_000;

/// Eight ASCII zeros.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Returns the eight digits of a number below 10^8 as values, the first in the lowest byte. Splits it into two numbers
/// of four digits, four of two, eight of one. Each step divides all parts by one multiplication.
#[inline(always)]
fn eight_digits(number: u32) -> u64 {
    let high = u64::from(number / 10_000);
    let fours = high | (u64::from(number) - high * 10_000) << 32;
    // Equals high | (fours - high * 100) << 16, in fewer steps.
    let high = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let twos = (fours << 16) - high * ((100 << 16) - 1);
    let high = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    (twos << 8) - high * ((10 << 8) - 1)
}

#[cfg(test)]
mod tests {
    use super::NumberProblem::{Fraction, Grammar, Range};
    use super::*;

    #[test]
    fn integers_accept_all_json_notations() {
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("42", 42),
            ("-42", -42),
            ("1e2", 100),
            ("1.0", 1),
            ("1.50e1", 15),
            ("100e-2", 1),
            ("1200.00e-2", 12),
            ("0.0e99999999999999", 0),
            ("9223372036854775807", i64::MAX.into()),
            ("-9223372036854775808", i64::MIN.into()),
            ("18446744073709551615", u64::MAX.into()),
            ("1.8446744073709551615e19", u64::MAX.into()),
            ("0.00000000000000000001e20", 1),
            ("10000000000000000000", 10_000_000_000_000_000_000),
        ] {
            assert_eq!(integer(text), Ok(number), "{text}");
            assert_eq!(integer_in_string(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn fractions_and_out_of_range_integers_are_rejected() {
        for (text, problem) in [
            ("1.5", Fraction),
            ("1e-1", Fraction),
            ("0.1", Fraction),
            ("1e-99999999999999999999", Fraction),
            ("18446744073709551616", Range),
            ("1e20", Range),
            ("1e99999999999999999999", Range),
            ("1e2147483647", Range),
        ] {
            assert_eq!(integer(text), Err(problem), "{text}");
        }
        for text in ["", " 1", "1 ", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", "--1", "1_0", "NaN", "1.5.5"]
        {
            assert_eq!(integer_in_string(text), Err(Grammar), "{text}");
            assert_eq!(double_in_string(text).is_ok(), text == "NaN", "{text}");
        }
    }

    #[test]
    fn floats_are_range_checked() {
        assert_eq!(double("1.7976931348623157e308"), Ok(f64::MAX));
        assert_eq!(double("1e309"), Err(Range));
        assert_eq!(float("3.4028235e38"), Ok(f32::MAX));
        assert_eq!(float("3.5e38"), Err(Range));
        assert_eq!(float_in_string("-Infinity"), Ok(f32::NEG_INFINITY));
        assert_eq!(double_in_string("1.5"), Ok(1.5));
        // 1 + 2^-24 + 2^-60: via f64 it would become a tie and round to 1.
        let text = "1.000000059604644775390625867361737988403547205962240695953369140625";
        assert_eq!(float(text), Ok(1.0 + f32::EPSILON));
    }

    #[test]
    fn integers_are_formatted_in_decimal() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let edges = powers.flat_map(|power| [power - 1, power, power + 1, power / 2, power / 7 * 3]);
        for number in edges.chain([u64::MAX, u64::MAX - 1, i64::MAX as u64]) {
            let mut text = b">".to_vec();
            append(&mut text, |into| put_integer(false, number, into));
            append(&mut text, |into| put_quoted_integer(true, number, into));
            assert_eq!(String::from_utf8(text).unwrap(), format!(">{number}\"-{number}\""));
        }
    }

    #[test]
    fn fast_double_parsing_equals_the_slow_path() {
        let mut number = 1_u64;
        for _ in 0..200_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (mantissa, decimals) = (number >> 11 >> (number % 50), (number >> 7) as usize % 16);
            let text = format!("{mantissa}e-{decimals}");
            let double = small_double(mantissa, decimals).unwrap();
            assert_eq!(Ok(double), text.parse(), "{text}");
            if let Some(float) = to_float(double) {
                assert_eq!(Ok(float), text.parse(), "{text}");
            }
        }
        // A tie in f64, but not exactly: 1 + 2^-24 + 2^-60.
        assert_eq!(to_float(1.0 + 2_f64.powi(-24)), None);
    }

    fn written(put: impl FnOnce(&mut NumberBytes) -> usize) -> String {
        let mut text = Vec::new();
        append(&mut text, put);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn floats_have_the_shortest_round_trip_form() {
        let float = |number| written(|into| put_float(number, into));
        let double = |number| written(|into| put_double(number, into));
        assert_eq!([float(0.1), float(f32::NAN), float(f32::MIN)], ["0.1", "\"NaN\"", "-3.4028235e+38"]);
        assert_eq!([double(0.1), double(-0.0), double(12.0)], ["0.1", "-0", "12"]);
        assert_eq!([double(f64::INFINITY), double(f64::NEG_INFINITY)], ["\"Infinity\"", "\"-Infinity\""]);
        for number in [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e22, 123_456.789, -1e-7] {
            let text = double(number);
            assert_eq!(double_in_string(&text), Ok(number), "{text}");
        }
    }

    #[test]
    fn thousandths_fast_path_equals_the_general_path() {
        let mut number = 1_u64;
        for round in 0..300_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = number >> 13 >> (number % 51);
            let divisor = [1.0, 10.0, 100.0, 1000.0, 10_000.0][round % 5];
            let double = digits as f64 / divisor * if round % 2 == 0 { 1.0 } else { -1.0 };
            let near = f64::from_bits(double.to_bits() + number % 3);
            for double in [double, near] {
                let float = double as f32;
                let expected = written(|into| put_shortest(double, into));
                assert_eq!(written(|into| put_double(double, into)), expected, "{double:?}");
                let expected = written(|into| put_shortest(float, into));
                assert_eq!(written(|into| put_float(float, into)), expected, "{float:?}");
            }
        }
    }

    #[test]
    fn array_elements_are_separated_by_commas() {
        // The longest number of each kind, each in the space for one.
        let longest = [f64::MIN, f64::NAN, f64::NEG_INFINITY, -f64::MIN_POSITIVE, -5e-324, 0.0, 0.125];
        for count in [0, 1, 2, 63, 64, 65, 200] {
            let words: Vec<u64> = (0..count).map(|index| longest[index % longest.len()].to_bits()).collect();
            let check = |put: fn(u64, &mut NumberBytes) -> usize| {
                let each: Vec<String> = words.iter().map(|&word| written(|into| put(word, into))).collect();
                let mut text = b"[".to_vec();
                append_elements(&words, &mut text, put);
                assert_eq!(String::from_utf8(text).unwrap(), format!("[{}", each.join(",")));
            };
            check(|word, into| put_double(f64::from_bits(word), into));
            check(|word, into| put_quoted_integer(true, u64::MAX - word % 2, into));
            check(|word, into| put_integer(true, word % 100_000, into));
            check(|word, into| put_bool(word % 2 == 1, into));
        }
    }
}
