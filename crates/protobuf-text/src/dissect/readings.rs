//! Possible meanings of a value without a schema.

use std::fmt::{self, Display};

use thalweg_protobuf::wire::unzigzag;

use super::record::{Message, Record, Value};
use super::span::Span;
use super::unix_time::UnixTime;
use super::varint::read_varint;

/// A possible meaning of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<'a> {
    /// An integer, and the types for which the value has this meaning: `uint`, `int`, `sint`, `enum`, `fixed64`, …
    Integer(i128, Vec<&'static str>),
    /// `bool`
    Bool(bool),
    /// `double`
    Double(f64),
    /// `float`
    Float(f32),
    /// A point in time between 1990 and 2100.
    Time(UnixTime),
    /// UTF-8 text.
    String(&'a str),
    /// Records from the first to the last byte.
    Message {
        /// Number of records.
        records: usize,
    },
    /// Varints from the first to the last byte, as unsigned numbers.
    PackedVarint(Vec<u64>),
    /// 4-byte values, as unsigned numbers.
    PackedI32(Vec<u32>),
    /// 8-byte values, as unsigned numbers.
    PackedI64(Vec<u64>),
    /// Uninterpreted bytes.
    Bytes(&'a [u8]),
}

impl Reading<'_> {
    /// Returns the types for which the value has this meaning.
    pub fn types(&self) -> Vec<&'static str> {
        match self {
            Reading::Integer(_, types) => types.clone(),
            Reading::Bool(_) => vec!["bool"],
            Reading::Double(_) => vec!["double"],
            Reading::Float(_) => vec!["float"],
            Reading::Time(time) => vec![time.unit.name()],
            Reading::String(_) => vec!["string"],
            Reading::Message { .. } => vec!["message"],
            Reading::PackedVarint(_) => vec!["packed varint"],
            Reading::PackedI32(_) => vec!["packed fixed32"],
            Reading::PackedI64(_) => vec!["packed fixed64"],
            Reading::Bytes(_) => vec!["bytes"],
        }
    }
}

/// Default number of packed elements or bytes shown.
const SHOWN: usize = 16;

impl Display for Reading<'_> {
    /// Writes the value and its types: `20 (uint, int, enum)`. The format's precision limits the elements of a list,
    /// as in `{reading:.4}`; `{reading:#}` shows all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() { usize::MAX } else { f.precision().unwrap_or(SHOWN) };
        match self {
            Reading::Integer(number, _) => write!(f, "{number}")?,
            Reading::Bool(truth) => write!(f, "{truth}")?,
            Reading::Double(number) => write!(f, "{number:?}")?,
            Reading::Float(number) => write!(f, "{number:?}")?,
            Reading::Time(time) => write!(f, "{time}")?,
            Reading::String(text) => write!(f, "{text:?}")?,
            Reading::Message { records: 1 } => return write!(f, "a message of 1 record"),
            Reading::Message { records } => return write!(f, "a message of {records} records"),
            Reading::PackedVarint(numbers) | Reading::PackedI64(numbers) => list(f, numbers, shown)?,
            Reading::PackedI32(numbers) => list(f, numbers, shown)?,
            Reading::Bytes(bytes) => {
                for byte in bytes.iter().take(shown) {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str(if bytes.len() > shown { "…" } else { "" })?;
            }
        }
        write!(f, " ({})", self.types().join(", "))
    }
}

fn list(f: &mut fmt::Formatter<'_>, numbers: &[impl Display], shown: usize) -> fmt::Result {
    f.write_str("[")?;
    for (index, number) in numbers.iter().take(shown).enumerate() {
        write!(f, "{}{number}", if index > 0 { ", " } else { "" })?;
    }
    match numbers.len().checked_sub(shown) {
        Some(more @ 1..) => write!(f, ", {more} more]"),
        _ => f.write_str("]"),
    }
}

impl<'s> Record<'s> {
    /// Returns the nested message. Without a schema, a payload that is readable text is assumed not to be one.
    pub fn likely_message(&self, input: &[u8]) -> Option<&Message<'s>> {
        let is_text = |span: Span| std::str::from_utf8(span.of(input)).is_ok_and(is_prose);
        match &self.value {
            Value::Len { payload, .. } if self.known().is_none() && is_text(*payload) => None,
            value => value.message(),
        }
    }
}

impl Value<'_> {
    /// Returns all possible meanings, most likely first.
    pub fn readings<'a>(&self, input: &'a [u8]) -> Vec<Reading<'a>> {
        of(self, input)
    }
}

/// Returns all possible meanings of a value, most likely first. None is certain.
fn of<'a>(value: &Value, input: &'a [u8]) -> Vec<Reading<'a>> {
    match value {
        Value::Varint(varint) => of_varint(varint.value),
        Value::I64 { bits, .. } => of_i64(*bits),
        Value::I32 { bits, .. } => of_i32(*bits),
        Value::Len { payload, message, .. } => of_bytes(payload.of(input), message.as_ref()),
        Value::Group { message, .. } => vec![Reading::Message { records: message.records.len() }],
    }
}

fn of_varint(value: u64) -> Vec<Reading<'static>> {
    let mut readings = Integers::default();
    readings.add("uint", value.into());
    readings.add("int", value.cast_signed().into());
    if let Ok(number) = i32::try_from(value.cast_signed()) {
        readings.add("enum", number.into());
    }
    readings.add("sint", unzigzag(value).into());
    let mut readings = readings.0;
    if value <= 1 {
        readings.push(Reading::Bool(value == 1));
    }
    readings.extend(UnixTime::plausible(value).map(Reading::Time));
    readings
}

fn of_i64(bits: u64) -> Vec<Reading<'static>> {
    let mut readings = Integers::default();
    readings.add("fixed64", bits.into());
    readings.add("sfixed64", bits.cast_signed().into());
    let double = f64::from_bits(bits);
    let mut readings = readings.0;
    // Small integers are tiny denormals as doubles, and common doubles are huge as integers.
    let at = if plausible(double) { 0 } else { readings.len() };
    readings.insert(at, Reading::Double(double));
    readings.extend(UnixTime::plausible(bits).map(Reading::Time));
    readings
}

fn of_i32(bits: u32) -> Vec<Reading<'static>> {
    let mut readings = Integers::default();
    readings.add("fixed32", bits.into());
    readings.add("sfixed32", bits.cast_signed().into());
    let float = f32::from_bits(bits);
    let mut readings = readings.0;
    let at = if plausible(float.into()) { 0 } else { readings.len() };
    readings.insert(at, Reading::Float(float));
    readings.extend(UnixTime::plausible(bits.into()).map(Reading::Time));
    readings
}

fn of_bytes<'a>(bytes: &'a [u8], message: Option<&Message>) -> Vec<Reading<'a>> {
    let mut readings = Vec::new();
    let text = std::str::from_utf8(bytes).ok();
    let message = message.map(|message| Reading::Message { records: message.records.len() });
    match text {
        Some(text) if is_prose(text) => {
            readings.extend([Some(Reading::String(text)), message].into_iter().flatten());
        }
        _ => readings.extend([message, text.map(Reading::String)].into_iter().flatten()),
    }
    if bytes.is_empty() {
        // Empty bytes fit every type, except that an empty list is never encoded.
        return [Reading::Message { records: 0 }, Reading::Bytes(bytes)]
            .into_iter()
            .chain(readings)
            .rev()
            .collect();
    }
    readings.extend(packed_varints(bytes).map(Reading::PackedVarint));
    if let (chunks, []) = bytes.as_chunks() {
        readings.push(Reading::PackedI32(chunks.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect()));
    }
    if let (chunks, []) = bytes.as_chunks() {
        readings.push(Reading::PackedI64(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect()));
    }
    readings.push(Reading::Bytes(bytes));
    readings
}

/// Whether it looks like human text: no control characters except white space.
pub(super) fn is_prose(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'))
}

/// Returns the varints that make up all of `bytes`.
fn packed_varints(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(rest @ [_, ..]) = bytes.get(at..) {
        let varint = read_varint(rest, at).ok()?;
        numbers.push(varint.value);
        at = varint.span.end;
    }
    Some(numbers)
}

/// Whether the number looks intended: zero, or at most 15 digits before or after the point.
fn plausible(number: f64) -> bool {
    number == 0.0 || (1e-15..1e15).contains(&number.abs())
}

/// Integer readings, each number once.
#[derive(Default)]
struct Integers(Vec<Reading<'static>>);

impl Integers {
    fn add(&mut self, name: &'static str, number: i128) {
        for reading in &mut self.0 {
            if let Reading::Integer(value, types) = reading
                && *value == number
            {
                return types.push(name);
            }
        }
        self.0.push(Reading::Integer(number, vec![name]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_readings_include_all_integer_types() {
        let check = |value: u64, expected: &[&str]| {
            let found: Vec<String> = of_varint(value).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        check(20, &["20 (uint, int, enum)", "10 (sint)"]);
        check(1, &["1 (uint, int, enum)", "-1 (sint)", "true (bool)"]);
        check(0, &["0 (uint, int, enum, sint)", "false (bool)"]);
        check(u64::MAX, &["18446744073709551615 (uint)", "-1 (int, enum)", "-9223372036854775808 (sint)"]);
        check(
            1_234_567_890_500,
            &[
                "1234567890500 (uint, int)",
                "617283945250 (sint)",
                "2009-02-13T23:31:30.500Z (Unix time in ms)",
            ],
        );
    }

    #[test]
    fn fixed_readings_include_integers_and_floats() {
        let check = |found: Vec<Reading>, expected: &[&str]| {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        check(
            of_i32(20.5_f32.to_bits()),
            &["20.5 (float)", "1101266944 (fixed32, sfixed32)", "2004-11-24T03:29:04Z (Unix time in s)"],
        );
        check(of_i32(7), &["7 (fixed32, sfixed32)", "1e-44 (float)"]);
        check(
            of_i64((-1.5_f64).to_bits()),
            &["-1.5 (double)", "13832806255468478464 (fixed64)", "-4613937818241073152 (sfixed64)"],
        );
        check(of_i64(3), &["3 (fixed64, sfixed64)", "1.5e-323 (double)"]);
    }

    #[test]
    fn byte_readings_include_all_plausible_types() {
        let check = |bytes: &[u8], expected: &[&str]| {
            let found: Vec<String> = of_bytes(bytes, None).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        check(b"", &["\"\" (string)", " (bytes)", "a message of 0 records"]);
        check(b"abc", &["\"abc\" (string)", "[97, 98, 99] (packed varint)", "616263 (bytes)"]);
        check(
            b"\xff\0\0\x01",
            &["[127, 0, 1] (packed varint)", "[16777471] (packed fixed32)", "ff000001 (bytes)"],
        );
        check(b"\xff", &["ff (bytes)"]);
    }
}
