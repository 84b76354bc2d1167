//! Percent coding of `grpc-message`: a status message may be any text, a field value may not.

use std::borrow::Cow;

/// Encodes a status message as a field value.
///
/// Printable ASCII other than `%` is unchanged; every other byte of the UTF-8 becomes `%XX`. So does a leading or
/// trailing space, which a field value must not have (RFC 9113 §8.2.1).
pub fn encode(message: &str) -> Cow<'_, [u8]> {
    let bytes = message.as_bytes();
    let last = bytes.len().saturating_sub(1);
    let stands_for_itself = |index: usize| match bytes[index] {
        b' ' => index != 0 && index != last,
        b'%' => false,
        byte => (b'!'..=b'~').contains(&byte),
    };
    if (0..bytes.len()).all(stands_for_itself) {
        return Cow::Borrowed(bytes);
    }
    let mut value = Vec::with_capacity(bytes.len() + 16);
    for (index, byte) in bytes.iter().enumerate() {
        if stands_for_itself(index) {
            value.push(*byte);
        } else {
            let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble)];
            value.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    Cow::Owned(value)
}

/// Decodes a field value to the status message.
///
/// A message is for people and must not be lost: a `%` without two hexadecimal digits is unchanged, and invalid UTF-8
/// becomes U+FFFD.
pub fn decode(value: &[u8]) -> Cow<'_, str> {
    let Some(first) = value.iter().position(|byte| *byte == b'%') else {
        return String::from_utf8_lossy(value);
    };
    let (plain, mut rest) = value.split_at(first);
    let mut bytes = Vec::with_capacity(value.len());
    bytes.extend_from_slice(plain);
    while let [first, behind @ ..] = rest {
        let byte;
        (byte, rest) = decode_triplet(rest).unwrap_or((*first, behind));
        bytes.push(byte);
    }
    match String::from_utf8(bytes) {
        Ok(message) => Cow::Owned(message),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// Decodes `%XX` at the front of `value`. Returns the byte and the rest.
fn decode_triplet(value: &[u8]) -> Option<(u8, &[u8])> {
    let [b'%', high, low, behind @ ..] = value else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some(((digit(*high)? * 16 + digit(*low)?) as u8, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Seeded;

    fn check(message: &str, value: &str) {
        assert_eq!(String::from_utf8_lossy(&encode(message)), value);
        assert_eq!(decode(value.as_bytes()), message);
    }

    #[test]
    fn messages_and_their_field_values() {
        check("", "");
        check("a b", "a b");
        check(" ", "%20");
        check(" a ", "%20a%20");
        check("100 %", "100 %25");
        check("~\u{7f}\0", "~%7F%00");
        check("caf\u{e9} \u{1f600}", "caf%C3%A9 %F0%9F%98%80");
        // The special message of the interop tests.
        check(
            "\t\ntest with whitespace\r\nand Unicode BMP \u{263a} and non-BMP \u{1f608}\t\n",
            "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP %F0%9F%98%88%09%0A",
        );
    }

    #[test]
    fn broken_values_are_read_as_far_as_they_go() {
        let check = |value: &[u8], message: &str| assert_eq!(decode(value), message);
        check(b"%", "%");
        check(b"%2", "%2");
        check(b"%2g%41", "%2gA");
        check(b"%%41", "%A");
        check(b"%e2%98%ba", "\u{263a}");
        check(b"%C3x", "\u{fffd}x");
        check(b"\xc3x", "\u{fffd}x");
        check("\u{263a}%41".as_bytes(), "\u{263a}A");
    }

    #[test]
    fn random_messages_round_trip() {
        let mut seeded = Seeded(2);
        for _ in 0..5_000 {
            let message = String::from_utf8_lossy(&seeded.bytes(0..40)).into_owned();
            let value = encode(&message);
            assert!(value.iter().all(|byte| (b' '..=b'~').contains(byte)), "{value:?}");
            assert_eq!(decode(&value), message);
            // Decoding never panics, and never yields more characters than bytes.
            let noise: Vec<u8> = (0..20).map(|_| b"%%%4aG\xc3"[seeded.below(7)]).collect();
            assert!(decode(&noise).chars().count() <= noise.len());
        }
    }
}
