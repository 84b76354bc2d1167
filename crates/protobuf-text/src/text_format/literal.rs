//! Quoted strings with C escapes.

use std::fmt::Write;

use thalweg_protobuf::printable::is_unprintable;

/// Appends bytes in quotes. With `is_text`, valid UTF-8 is kept except for unprintable characters; other bytes are
/// octal.
pub(super) fn quote(bytes: &[u8], is_text: bool, out: &mut String) {
    out.push('"');
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text => text.chars().for_each(|c| match u8::try_from(c) {
            Ok(byte) if c.is_ascii() => escape(byte, out),
            _ if is_unprintable(c) => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(byte, out)),
            _ => out.push(c),
        }),
        _ => bytes.iter().for_each(|&byte| escape(byte, out)),
    }
    out.push('"');
}

fn escape(byte: u8, out: &mut String) {
    match byte {
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b' '..=b'~' => out.push(char::from(byte)),
        // Always three digits, because a digit may follow.
        _ => drop(write!(out, "\\{byte:03o}")),
    }
}

/// Appends the value of the text between quotes. Returns the offset and the problem on error.
pub(super) fn unescape(text: &str, out: &mut Vec<u8>) -> Result<(), (usize, &'static str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        let start = at;
        let wrong = |what| (start, what);
        let Some(&letter) = bytes.get(at + 1) else { return Err(wrong("incomplete escape sequence")) };
        at += 2;
        let digits = |at: usize, radix: u32, max: usize| {
            let digits = bytes[at..].iter().take(max);
            digits.take_while(|byte| char::from(**byte).is_digit(radix)).count()
        };
        let number = |at: &mut usize, radix: u32, count: usize| {
            let number = u32::from_str_radix(&text[*at..*at + count], radix).unwrap_or_default();
            *at += count;
            number
        };
        match letter {
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            b'?' | b'\\' | b'\'' | b'"' => out.push(letter),
            b'0'..=b'7' => {
                at -= 1;
                let count = digits(at, 8, 3);
                let byte = u8::try_from(number(&mut at, 8, count));
                out.push(byte.map_err(|_| wrong("octal escape exceeds \\377"))?);
            }
            b'x' | b'X' => match digits(at, 16, 2) {
                0 => return Err(wrong("expected hex digits after \\x")),
                count => out.push(number(&mut at, 16, count) as u8),
            },
            b'u' | b'U' => {
                let wanted = if letter == b'u' { 4 } else { 8 };
                if digits(at, 16, wanted) < wanted {
                    return Err(wrong("expected four hex digits after \\u, or eight after \\U"));
                }
                let code = number(&mut at, 16, wanted);
                let c = char::from_u32(code).ok_or(wrong("escape is not a Unicode character"))?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err(wrong("unknown escape sequence")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_strings_are_quoted() {
        let quoted = |bytes: &[u8], is_text| {
            let mut out = String::new();
            quote(bytes, is_text, &mut out);
            out
        };
        assert_eq!(quoted("a\"\\\n\r\t'é\u{1}\u{7f}".as_bytes(), true), r#""a\"\\\n\r\t'é\001\177""#);
        assert_eq!(quoted("\u{9b}\u{202e}".as_bytes(), true), r#""\302\233\342\200\256""#);
        assert_eq!(quoted("é".as_bytes(), false), r#""\303\251""#);
        assert_eq!(quoted(b"\xff1", true), r#""\3771""#);
    }

    #[test]
    fn escapes_are_decoded() {
        let read = |text| {
            let mut out = Vec::new();
            unescape(text, &mut out).map(|()| out)
        };
        assert_eq!(read(r"\a\b\f\n\r\t\v\?\\\'\x4\x41\7\1012\u00e9\U0001F600"), {
            let mut expected = b"\x07\x08\x0c\n\r\t\x0b?\\'\x04A\x07A2".to_vec();
            expected.extend("é😀".as_bytes());
            Ok(expected)
        });
        for (wrong, at) in
            [("a\\", 1), (r"\q", 0), (r"ab\x", 2), (r"\u12", 0), (r"\400", 0), (r"\ud83d\ude00", 0)]
        {
            assert_eq!(read(wrong).map_err(|(at, _)| at), Err(at), "{wrong}");
        }
    }
}
