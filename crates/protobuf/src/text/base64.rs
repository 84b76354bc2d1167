//! Base64: encodes in the standard alphabet with padding; decodes both alphabets, with or without padding.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Ignores unused trailing bits, like other decoders.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD_ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL_SAFE_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// Appends `bytes` as base64.
pub(crate) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    let start = text.len();
    text.resize(start + bytes.len().div_ceil(3) * 4, b'=');
    let written = STANDARD_ENGINE.encode_slice(bytes, &mut text[start..]);
    debug_assert_eq!(written.ok(), Some(text.len() - start));
}

/// Appends the bytes of base64 `text`. Returns false and appends nothing if it is invalid.
pub(crate) fn decode(text: &str, bytes: &mut Vec<u8>) -> bool {
    let is_url_safe = text.bytes().any(|character| matches!(character, b'-' | b'_'));
    let engine = if is_url_safe { &URL_SAFE_ENGINE } else { &STANDARD_ENGINE };
    let start = bytes.len();
    bytes.resize(start + text.len().div_ceil(4) * 3, 0);
    let decoded = engine.decode_slice(text, &mut bytes[start..]);
    bytes.truncate(start + decoded.as_ref().map_or(0, |len| *len));
    decoded.is_ok()
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    fn decoded(text: &str) -> Option<Vec<u8>> {
        let mut bytes = vec![7];
        let is_base64 = decode(text, &mut bytes);
        assert_eq!(bytes[0], 7);
        is_base64.then(|| bytes[1..].to_vec())
    }

    #[test]
    fn base64_accepts_both_alphabets_with_or_without_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decoded(text), Some(vec![0xfb, 0xff]), "{text}");
        }
        assert_eq!(decoded(""), Some(vec![]));
        for text in ["a", "a=", "ab!=", "+_8=", "abcd=", "ab c", "====", "ab=c"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }

    #[test]
    fn base64_round_trips() {
        for len in 0..100 {
            let bytes: Vec<u8> = (0..len).map(|index: u8| index.wrapping_mul(37)).collect();
            let mut text = b"x".to_vec();
            encode(&bytes, &mut text);
            assert_eq!(text.len(), 1 + bytes.len().div_ceil(3) * 4);
            assert_eq!(decoded(std::str::from_utf8(&text[1..]).unwrap()), Some(bytes));
        }
    }
}
