//! Percent-encoding (RFC 3986 §2.1) in paths and queries.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Invalid percent-encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PercentError {
    /// A `%` without two hexadecimal digits.
    #[error("expected two hexadecimal digits after %")]
    Digits,
    /// Decoded bytes that are not UTF-8.
    #[error("percent-decoded text is not UTF-8")]
    Utf8,
}

/// Context of a text, which determines the characters to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UriComponent {
    /// One segment of a path, decoded completely.
    Segment,
    /// Several segments: encoded slashes stay encoded, to differ from those between segments.
    Segments,
    /// A name or value of a query.
    Query { plus_is_space: bool },
}

pub(super) fn decode(encoded: &str, component: UriComponent) -> Result<Cow<'_, str>, PercentError> {
    let has_digits = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !encoded.split('%').skip(1).all(has_digits) {
        return Err(PercentError::Digits);
    }
    let replaced = match component {
        UriComponent::Query { plus_is_space: true } if encoded.contains('+') => encoded.replace('+', " "),
        // A doubly encoded slash stays encoded after decoding once.
        UriComponent::Segments if encoded.contains('%') => {
            encoded.replace("%2F", "%252F").replace("%2f", "%252f")
        }
        _ => return percent_decode_str(encoded).decode_utf8().map_err(|_| PercentError::Utf8),
    };
    let decoded = percent_decode_str(&replaced).decode_utf8().map_err(|_| PercentError::Utf8)?;
    Ok(Cow::Owned(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::{PercentError, UriComponent, decode};

    #[track_caller]
    fn check(encoded: &str, component: UriComponent, expected: Result<&str, PercentError>) {
        assert_eq!(decode(encoded, component).as_deref(), expected.as_ref().map(|text| *text), "{encoded}");
    }

    const FORM: UriComponent = UriComponent::Query { plus_is_space: true };
    const QUERY: UriComponent = UriComponent::Query { plus_is_space: false };

    #[test]
    fn each_component_has_its_decoding_rule() {
        let all = "%21%23%24%26%27%28%29%2A%2B%2C%2F%3A%3B%3D%3F%40%5B%5D";
        check(all, UriComponent::Segment, Ok("!#$&'()*+,/:;=?@[]"));
        check(all, UriComponent::Segments, Ok("!#$&'()*+,%2F:;=?@[]"));
        check("a%2fb%2Fc/d", UriComponent::Segments, Ok("a%2fb%2Fc/d"));
        check("p%20q%2Fr+", UriComponent::Segment, Ok("p q/r+"));
        check("Hello+world%2B+%20", QUERY, Ok("Hello+world++ "));
        check("Hello+world%2B+%20", FORM, Ok("Hello world+  "));
        check("%24%25%2F%20%0A", FORM, Ok("$%/ \n"));
        check("caf%C3%a9 \u{e9}", UriComponent::Segment, Ok("caf\u{e9} \u{e9}"));
    }

    #[test]
    fn ascii_round_trips() {
        for byte in 0..0x80_u8 {
            let text = char::from(byte).to_string();
            check(&format!("%{byte:02x}"), UriComponent::Segment, Ok(&text));
            check(&format!("%{byte:02X}"), UriComponent::Segment, Ok(&text));
        }
    }

    #[test]
    fn invalid_percent_encoding_is_rejected() {
        for text in ["%", "a%", "%2", "%2/", "%zz", "%+1", "%\u{e9}", "%%20"] {
            check(text, UriComponent::Segment, Err(PercentError::Digits));
        }
        for text in ["%ff", "%C3", "%C3a", "%C3%2F"] {
            check(text, UriComponent::Segment, Err(PercentError::Utf8));
            check(text, FORM, Err(PercentError::Utf8));
        }
    }
}
