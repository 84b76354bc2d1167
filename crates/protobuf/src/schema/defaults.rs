//! Default values, which descriptors hold as text.

use super::kind::Kind;
use super::pool::{DefaultValue, Pool};

/// Parses `text` to the value in slot form.
pub(super) fn parse(pool: &Pool, kind: Kind, type_index: u32, text: &str) -> Option<DefaultValue> {
    let word = match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => i64::from(text.parse::<i32>().ok()?) as u64,
        Kind::Uint32 | Kind::Fixed32 => u64::from(text.parse::<u32>().ok()?),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => text.parse::<i64>().ok()? as u64,
        Kind::Uint64 | Kind::Fixed64 => text.parse::<u64>().ok()?,
        Kind::Bool => u64::from(text.parse::<bool>().ok()?),
        Kind::Float => u64::from(text.parse::<f32>().ok()?.to_bits()),
        Kind::Double => text.parse::<f64>().ok()?.to_bits(),
        Kind::Enum => {
            let value = pool.enums[type_index as usize].value_named(text)?;
            i64::from(value.number) as u64
        }
        Kind::String => return Some(DefaultValue::Bytes(text.as_bytes().into())),
        Kind::Bytes => return Some(DefaultValue::Bytes(unescape(text)?.into())),
        Kind::Message | Kind::Group => return None,
    };
    Some(DefaultValue::Word(word))
}

/// Decodes the C escapes that the compiler writes for bytes.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            literal @ (b'\\' | b'\'' | b'"' | b'?') => literal,
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    match rest.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                        Some(digit) => value = value * 8 + u32::from(digit - b'0'),
                        None => break,
                    }
                }
                u8::try_from(value).ok()?
            }
            b'x' | b'X' => {
                let mut value = None;
                for _ in 0..2 {
                    match rest.next_if(u8::is_ascii_hexdigit) {
                        Some(digit) => {
                            value = Some(value.unwrap_or(0) * 16 + char::from(digit).to_digit(16)?);
                        }
                        None => break,
                    }
                }
                u8::try_from(value?).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_bytes_accept_c_escapes() {
        let check = |text, bytes: Option<&[u8]>| assert_eq!(unescape(text).as_deref(), bytes, "{text}");
        check("abc", Some(b"abc"));
        check(r#"\000\001\377\x41\n\"\\z"#, Some(b"\x00\x01\xffA\n\"\\z"));
        check(r"\1z\08", Some(b"\x01z\x008"));
        check(r"\400", None);
        check(r"\q", None);
        check(r"\x", None);
        check("\\", None);
    }

    #[test]
    fn default_numbers_are_range_checked() {
        let pool = Pool::default();
        let check = |kind, text, word| assert_eq!(parse(&pool, kind, 0, text), word, "{text}");
        check(Kind::Int32, "-1", Some(DefaultValue::Word(u64::MAX)));
        check(Kind::Int32, "2147483648", None);
        check(Kind::Uint32, "4294967295", Some(DefaultValue::Word(0xffff_ffff)));
        check(Kind::Bool, "true", Some(DefaultValue::Word(1)));
        check(Kind::Bool, "1", None);
        check(Kind::Double, "-inf", Some(DefaultValue::Word(f64::NEG_INFINITY.to_bits())));
        check(Kind::Float, "nan", Some(DefaultValue::Word(f32::NAN.to_bits().into())));
        check(Kind::Message, "", None);
    }
}
