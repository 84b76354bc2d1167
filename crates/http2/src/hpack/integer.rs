//! Prefixed integers (RFC 7541 §5.1).

use super::DecodeError;

/// Maximum number of continuation octets after the prefix: five with seven bits each hold any `u32`. Also bounds
/// encodings padded with zeros.
const CONTINUATION_OCTETS_MAX: usize = 5;

/// Decodes an integer whose prefix is the low `prefix_bits` of the first octet of `input`, and consumes it.
///
/// Rejects integers above `u32::MAX`: RFC 7541 §5.1 demands such a limit, and no length or index comes close.
#[inline]
pub(super) fn decode(prefix_bits: u32, input: &mut &[u8]) -> Result<u32, DecodeError> {
    let (&first, rest) = input.split_first().ok_or(DecodeError::Truncated)?;
    *input = rest;
    let prefix_max = (1u8 << prefix_bits) - 1;
    let prefix = first & prefix_max;
    if prefix < prefix_max { Ok(u32::from(prefix)) } else { decode_continuation(prefix_max, input) }
}

fn decode_continuation(prefix: u8, input: &mut &[u8]) -> Result<u32, DecodeError> {
    let mut value = u64::from(prefix);
    for position in 0..CONTINUATION_OCTETS_MAX {
        let (&octet, rest) = input.split_first().ok_or(DecodeError::Truncated)?;
        *input = rest;
        value += u64::from(octet & 0x7f) << (7 * position);
        if octet & 0x80 == 0 {
            return u32::try_from(value).map_err(|_| DecodeError::IntegerOverflow);
        }
    }
    Err(DecodeError::IntegerOverflow)
}

/// Appends `value` with its prefix in the low `prefix_bits` of an octet; the high bits are those of `pattern`.
#[inline]
pub(super) fn encode(prefix_bits: u32, pattern: u8, value: usize, out: &mut Vec<u8>) {
    let prefix_max = (1usize << prefix_bits) - 1;
    if value < prefix_max {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that `bytes` decodes to `expected`, that the bytes after it are untouched, and that every truncation is
    /// an error.
    fn check_decode(prefix_bits: u32, bytes: &[u8], expected: Result<u32, DecodeError>) {
        let followed = [bytes, b"rest"].concat();
        let mut input = &followed[..];
        let decoded = decode(prefix_bits, &mut input);
        assert_eq!(decoded, expected, "{bytes:02x?}");
        if decoded.is_ok() {
            assert_eq!(input, b"rest", "{bytes:02x?}");
            for end in 0..bytes.len() {
                assert_eq!(decode(prefix_bits, &mut &bytes[..end]), Err(DecodeError::Truncated));
            }
        }
    }

    #[test]
    fn rfc_7541_c_1_examples() {
        // RFC 7541 §C.1.1 to §C.1.3.
        check_decode(5, &[0b0000_1010], Ok(10));
        check_decode(5, &[0b0001_1111, 0b1001_1010, 0b0000_1010], Ok(1337));
        check_decode(8 - 1, &[42], Ok(42));
    }

    #[test]
    fn bits_above_the_prefix_are_ignored() {
        check_decode(5, &[0b1110_1010], Ok(10));
    }

    #[test]
    fn integers_above_u32_max_overflow() {
        // 2^32 - 1 with a prefix of 7 bits is 127 + 4,294,967,168.
        check_decode(7, &[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f], Ok(u32::MAX));
        check_decode(7, &[0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f], Err(DecodeError::IntegerOverflow));
        check_decode(7, &[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f], Err(DecodeError::IntegerOverflow));
    }

    #[test]
    fn zero_padding_is_bounded() {
        check_decode(7, &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00], Ok(127));
        check_decode(7, &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], Err(DecodeError::IntegerOverflow));
    }

    #[test]
    fn round_trips_at_every_prefix_around_every_power_of_two() {
        for prefix_bits in 4..=7 {
            for power in 0..32 {
                for value in [(1u32 << power) - 1, 1 << power, (1 << power) + 1] {
                    let mut bytes = Vec::new();
                    encode(prefix_bits, 0, value as usize, &mut bytes);
                    check_decode(prefix_bits, &bytes, Ok(value));
                }
            }
        }
    }
}
