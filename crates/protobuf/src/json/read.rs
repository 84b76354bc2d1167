//! A strict pull reader of JSON ([RFC 8259](https://www.rfc-editor.org/rfc/rfc8259)). Strings without escapes and all
//! numbers are slices of the text.

use std::borrow::Cow;

use crate::text::number;
use crate::text::quoted::{plain_len, special};
use crate::transcode::parse_error::LocatedError;

/// The kind of a value, known from its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

impl JsonKind {
    /// Describes the kind, for error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            JsonKind::Object => "an object",
            JsonKind::Array => "an array",
            JsonKind::String => "a string",
            JsonKind::Number => "a number",
            JsonKind::True => "true",
            JsonKind::False => "false",
            JsonKind::Null => "null",
        }
    }
}

/// Reads one text from start to end. It does not track open arrays and objects: the caller's stack does.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Result<Reader<'t>, LocatedError> {
        let text = std::str::from_utf8(text)
            .map_err(|error| LocatedError::new(error.valid_up_to(), "the text is not UTF-8"))?;
        Ok(Reader { text, at: 0 })
    }

    /// Returns the current offset.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        // Most texts have at most one space here.
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn unexpected(&self, expected: &str) -> LocatedError {
        match self.text[self.at.min(self.text.len())..].chars().next() {
            Some(found) => LocatedError::new(self.at, format!("expected {expected}, found {found:?}")),
            None => LocatedError::new(self.at, format!("expected {expected}, found the end of the text")),
        }
    }

    /// Returns the kind of the next value and moves to its first character.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<JsonKind, LocatedError> {
        self.skip_space();
        Ok(match self.byte() {
            Some(b'"') => JsonKind::String,
            Some(b'-' | b'0'..=b'9') => JsonKind::Number,
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b't') => JsonKind::True,
            Some(b'f') => JsonKind::False,
            Some(b'n') => JsonKind::Null,
            _ => return Err(self.unexpected("a value")),
        })
    }

    /// Skips `byte`, which `peek` has seen.
    #[inline]
    pub(crate) fn open(&mut self) {
        self.at += 1;
    }

    /// Called after `{` or a member's value: moves to the next member's name, or returns false after `}`.
    #[inline]
    pub(crate) fn next_member(&mut self, is_first: bool) -> Result<bool, LocatedError> {
        self.skip_space();
        match self.byte() {
            Some(b'}') => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if !is_first => {
                self.at += 1;
                self.skip_space();
            }
            _ if !is_first => return Err(self.unexpected("`,` or `}`")),
            _ => {}
        }
        if self.byte() == Some(b'"') { Ok(true) } else { Err(self.unexpected("a name in quotes")) }
    }

    /// Skips `"name":` if it comes next, exactly so written. `quoted` is `"name":`.
    #[inline]
    pub(crate) fn take_name(&mut self, quoted: &[u8]) -> bool {
        let is_next = self.text.as_bytes()[self.at..].starts_with(quoted);
        if is_next {
            self.at += quoted.len();
        }
        is_next
    }

    /// Reads a member's name and the colon after it.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        let name = self.string()?;
        self.skip_space();
        if self.byte() != Some(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.at += 1;
        Ok(name)
    }

    /// Called after `[` or an element: returns true at the next element, or false after `]`.
    #[inline]
    pub(crate) fn next_element(&mut self, is_first: bool) -> Result<bool, LocatedError> {
        self.skip_space();
        match self.byte() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(true)
            }
            _ if is_first => Ok(true),
            _ => Err(self.unexpected("`,` or `]`")),
        }
    }

    /// Reads `true`, `false` or `null`, whose first letter `peek` has seen.
    #[inline]
    pub(crate) fn word(&mut self, word: &'static str) -> Result<(), LocatedError> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.unexpected(word))
        }
    }

    /// Reads a number as written.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<&'t str, LocatedError> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let digits = self.at;
        self.digits("a digit")?;
        if self.text.as_bytes()[digits] == b'0' && self.at > digits + 1 {
            return Err(LocatedError::new(digits, "a number cannot start with 0"));
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits("a digit after the decimal point")?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits("a digit in the exponent")?;
        }
        Ok(&self.text[start..self.at])
    }

    /// Reads an integer of up to 18 digits, quoted or not. Returns its sign and magnitude. Returns `None` for anything
    /// else, after skipping space only.
    #[inline]
    pub(crate) fn short_integer(&mut self) -> Option<(bool, u64)> {
        self.skip_space();
        let bytes = &self.text.as_bytes()[self.at..];
        let is_quoted = bytes.first() == Some(&b'"');
        let sign = usize::from(is_quoted);
        let is_negative = bytes.get(sign) == Some(&b'-');
        let start = sign + usize::from(is_negative);
        let (magnitude, end) = leading_digits(bytes, start, 0);
        let len = end - start;
        if len == 0 || len > 18 || len > 1 && bytes[start] == b'0' {
            return None;
        }
        match (bytes.get(end), is_quoted) {
            (Some(b'"'), true) => self.at += end + 1,
            (_, true) | (Some(b'.' | b'e' | b'E'), false) => return None,
            (_, false) => self.at += end,
        }
        Some((is_negative, magnitude))
    }

    /// Reads a number with few digits and no exponent. Returns `None` for anything else, after skipping space only.
    #[inline]
    pub(crate) fn short_double(&mut self) -> Option<f64> {
        self.skip_space();
        let bytes = &self.text.as_bytes()[self.at..];
        let is_negative = bytes.first() == Some(&b'-');
        let start = usize::from(is_negative);
        let (mut mantissa, mut end) = leading_digits(bytes, start, 0);
        let (integer_digits, mut decimals) = (end - start, 0);
        if integer_digits == 0 || integer_digits > 1 && bytes[start] == b'0' {
            return None;
        }
        if bytes.get(end) == Some(&b'.') {
            let point = end;
            (mantissa, end) = leading_digits(bytes, point + 1, mantissa);
            decimals = end - point - 1;
            if decimals == 0 {
                return None;
            }
        }
        if integer_digits + decimals > 18 || matches!(bytes.get(end), Some(b'e' | b'E')) {
            return None;
        }
        let magnitude = number::small_double(mantissa, decimals)?;
        self.at += end;
        Some(if is_negative { -magnitude } else { magnitude })
    }

    #[inline]
    fn digits(&mut self, expected: &str) -> Result<(), LocatedError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected(expected)) } else { Ok(()) }
    }

    /// Reads a string, whose quote `peek` has seen.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        let start = self.at + 1;
        let end = plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        self.string_with_escapes(start, end).map(Cow::Owned)
    }

    /// Called after a list element: appends following strings as wire records with `tag`, while each is short, without
    /// escapes and directly after its comma. Moves past the last one and returns their number.
    ///
    /// Most lists of strings qualify. Bytes are scanned and copied together, and records collected before they are
    /// appended.
    pub(crate) fn plain_strings(&mut self, tag: u32, wire: &mut Vec<u8>) -> usize {
        let text = self.text.as_bytes();
        let (head, head_len) = short_prefix(tag);
        let mut records = [0; 512];
        let (mut filled, mut count) = (0, 0);
        while let Some(b",\"") = text[self.at..].first_chunk() {
            let start = self.at + 2;
            if filled > records.len() - SHORT_RECORD_MAX {
                wire.extend_from_slice(&records[..filled]);
                filled = 0;
            }
            let record = &mut records[filled..][..SHORT_RECORD_MAX];
            record[..head.len()].copy_from_slice(&head);
            let mut len = 0;
            let is_plain = loop {
                let Some(chunk) = text[start + len..].first_chunk() else { break false };
                record[head_len + len..][..chunk.len()].copy_from_slice(chunk);
                let plain = plain_len::<false>(chunk);
                len += plain;
                if let Some(end) = chunk.get(plain) {
                    break *end == b'"';
                }
                if len >= SHORT {
                    break false;
                }
            };
            if !is_plain {
                break;
            }
            record[head_len - 1] = len as u8;
            filled += head_len + len;
            self.at = start + len + 1;
            count += 1;
        }
        wire.extend_from_slice(&records[..filled]);
        count
    }

    #[cold]
    fn string_with_escapes(&mut self, start: usize, mut end: usize) -> Result<String, LocatedError> {
        let bytes = self.text.as_bytes();
        let mut string = String::with_capacity(2 * (end - start));
        let mut from = start;
        loop {
            string.push_str(&self.text[from..end]);
            self.at = end;
            match bytes.get(end) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => {
                    return Err(LocatedError::new(end, "unescaped control character in a string"));
                }
                None => return Err(LocatedError::new(start - 1, "unterminated string")),
            }
            from = self.at;
            end = plain_end(bytes, from);
        }
    }

    /// Reads an escape, or both escapes of a surrogate pair.
    fn escape(&mut self) -> Result<char, LocatedError> {
        let start = self.at;
        self.at += 1;
        let letter = self.byte();
        self.at += 1;
        Ok(match letter {
            Some(literal @ (b'"' | b'\\' | b'/')) => literal as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(start),
            _ => return Err(LocatedError::new(start, "unknown escape sequence")),
        })
    }

    fn code_point(&mut self, start: usize) -> Result<char, LocatedError> {
        let first = self.four_digits(start)?;
        let lone = || LocatedError::new(start, "unpaired surrogate");
        let code = match first {
            0xd800..=0xdbff => {
                if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                    return Err(lone());
                }
                self.at += 2;
                let second = self.four_digits(start)?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(lone());
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(lone)
    }

    fn four_digits(&mut self, start: usize) -> Result<u32, LocatedError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let value = |digits: &[u8]| {
            digits.iter().try_fold(0, |code, &digit| Some(code << 4 | (digit as char).to_digit(16)?))
        };
        let code = digits
            .and_then(value)
            .ok_or_else(|| LocatedError::new(start, "expected four hex digits after \\u"))?;
        self.at += 4;
        Ok(code)
    }

    /// Skips a value of any kind, with objects and arrays nested at most `depth_max` deep.
    pub(crate) fn skip_value(&mut self, depth_max: usize) -> Result<(), LocatedError> {
        match self.peek()? {
            JsonKind::String => drop(self.string()?),
            JsonKind::Number => drop(self.number()?),
            JsonKind::True => self.word("true")?,
            JsonKind::False => self.word("false")?,
            JsonKind::Null => self.word("null")?,
            JsonKind::Object | JsonKind::Array if depth_max == 0 => return Err(too_deep(self.at)),
            JsonKind::Object => {
                self.open();
                let mut is_first = true;
                while self.next_member(is_first)? {
                    self.name()?;
                    self.skip_value(depth_max - 1)?;
                    is_first = false;
                }
            }
            JsonKind::Array => {
                self.open();
                let mut is_first = true;
                while self.next_element(is_first)? {
                    self.skip_value(depth_max - 1)?;
                    is_first = false;
                }
            }
        }
        Ok(())
    }

    /// Checks that only space follows the value.
    pub(crate) fn end(&mut self) -> Result<(), LocatedError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.unexpected("the end of the text")) }
    }
}

pub(crate) fn too_deep(at: usize) -> LocatedError {
    LocatedError::new(at, "nested too deeply")
}

/// Reads digits from `at`, continuing `number`. Returns the number, which wraps if it has too many digits, and the end
/// offset.
#[inline]
fn leading_digits(bytes: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(digit @ 0..=9) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (number, at)
}

/// Texts shorter than this have a length of one byte.
const SHORT: usize = 0x80;
/// Size of a record's tag and length, a short text, and the bytes copied after it.
const SHORT_RECORD_MAX: usize = 8 + SHORT + 16;

/// Returns a tag followed by a length byte, and the length of both.
fn short_prefix(tag: u32) -> ([u8; 8], usize) {
    let (mut head, mut len, mut rest) = ([0; 8], 0, tag);
    while rest >= 0x80 {
        head[len] = rest as u8 | 0x80;
        rest >>= 7;
        len += 1;
    }
    head[len] = rest as u8;
    (head, len + 2)
}

/// Returns the position, from `at`, of the first quote, backslash or control character, or the length of `bytes`.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::{JsonKind, Reader, plain_end};
    use crate::text::quoted;

    fn written(text: &str) -> String {
        let mut json = Vec::new();
        assert!(quoted::string(text.as_bytes(), &mut json));
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn strings_round_trip() {
        for len in 0..100 {
            let plain: String = ('a'..='z').cycle().take(len).collect();
            assert_eq!(written(&plain), format!("\"{plain}\""));
            for at in 0..=len {
                for special in ['"', '\\', '\0', '\u{1f}', 'é', '\u{80}', '😀'] {
                    let mut text = plain.clone();
                    text.insert(at, special);
                    let json = written(&text);
                    assert_eq!(
                        Reader::new(json.as_bytes()).unwrap().string().unwrap(),
                        text,
                        "{special:?} at {at}"
                    );
                }
            }
        }
    }

    fn check(text: &str) -> Result<(), String> {
        let mut reader =
            Reader::new(text.as_bytes()).map_err(|error| error.locate(text.as_bytes()).to_string())?;
        let read = reader.skip_value(100).and_then(|()| reader.end());
        read.map_err(|error| error.locate(text.as_bytes()).to_string())
    }

    #[test]
    fn valid_json_is_accepted() {
        for text in [
            "null",
            " true ",
            "false",
            "0",
            "-0",
            "10",
            "1.5",
            "-1.25e+10",
            "1E5",
            "1e-5",
            "{}",
            "[]",
            "[ ]",
            "{ }",
            "[1,2]",
            " [ 1 , [ ] , { \"a\" : { } } ] ",
            "\"\"",
            r#""\"\\\/\b\f\n\r\té""#,
            r#""\ud83d\ude00""#,
            "{\"a\":1,\"b\":[true]}",
            "\"\u{7f}é😀\"",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in [
            "",
            " ",
            "nul",
            "nulll",
            "True",
            "01",
            "-",
            "-a",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "0x10",
            "NaN",
            "Infinity",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{,}",
            "{a:1}",
            "{'a':1}",
            "{\"a\" 1}",
            "{1:1}",
            "\"",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "\"\t\"",
            r#""\ud800""#,
            r#""\ud800A""#,
            r#""\udc00""#,
            r#""\ud800\ud800""#,
            "1 2",
            "{} {}",
            "// c\n1",
            "\u{feff}1",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn non_utf8_text_is_rejected() {
        assert!(Reader::new(b"\"\xff\"").is_err());
        assert!(Reader::new(b"\"\xed\xa0\x80\"").is_err());
    }

    #[test]
    fn nesting_depth_is_limited() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(&nested(100)), Ok(()));
        assert!(check(&nested(101)).is_err());
        assert!(check(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn strings_are_unescaped() {
        let read = |text: &str| Reader::new(text.as_bytes()).unwrap().string().unwrap().into_owned();
        assert_eq!(read(r#""plain and long enough""#), "plain and long enough");
        assert_eq!(read(r#""a\n\u00e9\ud83d\ude00\/\"""#), "a\né😀/\"");
    }

    #[test]
    fn members_and_elements_are_walked() {
        let mut reader = Reader::new(br#"{"a": [1, "x"], "b":null}"#).unwrap();
        assert_eq!(reader.peek().unwrap(), JsonKind::Object);
        reader.open();
        assert!(reader.next_member(true).unwrap());
        assert_eq!(reader.name().unwrap(), "a");
        assert_eq!(reader.peek().unwrap(), JsonKind::Array);
        reader.open();
        assert!(reader.next_element(true).unwrap());
        assert_eq!(reader.peek().unwrap(), JsonKind::Number);
        assert_eq!(reader.number().unwrap(), "1");
        assert!(reader.next_element(false).unwrap());
        assert_eq!(reader.peek().unwrap(), JsonKind::String);
        assert_eq!(reader.string().unwrap(), "x");
        assert!(!reader.next_element(false).unwrap());
        assert!(reader.next_member(false).unwrap());
        assert!(reader.take_name(b"\"b\":"));
        assert_eq!(reader.peek().unwrap(), JsonKind::Null);
        reader.word("null").unwrap();
        assert!(!reader.next_member(false).unwrap());
        reader.end().unwrap();
    }

    #[test]
    fn special_characters_are_found_at_any_offset() {
        for special in [b'"', b'\\', 0, 1, 0x1f] {
            for other in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                for len in 0..20 {
                    let mut bytes = vec![other; len];
                    assert_eq!(plain_end(&bytes, 0), len);
                    bytes.push(special);
                    bytes.extend([special, other, other]);
                    assert_eq!(plain_end(&bytes, 0), len, "{special} behind {len} of {other}");
                }
            }
        }
    }
}
