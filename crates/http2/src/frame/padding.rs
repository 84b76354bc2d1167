//! Padding of DATA and HEADERS (RFC 9113 §6.1, §6.2).

use super::Flags;
use crate::error::ConnectionError;
use crate::violation::Violation;

/// Returns the payload without padding.
///
/// Padding that fills the whole payload or more is a connection error (RFC 9113 §6.1).
#[inline]
pub fn unpad(flags: Flags, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    if !flags.contains(Flags::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(NO_PADDING_LENGTH)?;
    let len = rest.len().checked_sub(padding as usize).ok_or(TOO_MUCH_PADDING)?;
    Ok(&rest[..len])
}

pub(crate) const NO_PADDING_LENGTH: ConnectionError =
    ConnectionError::wrong_size(Violation::PaddingLengthMissing);

pub(crate) const TOO_MUCH_PADDING: ConnectionError = ConnectionError::protocol(Violation::PaddingTooLong);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(payload: &[u8], expected: Result<&[u8], ConnectionError>) {
        assert_eq!(unpad(Flags::PADDED, payload), expected);
    }

    #[test]
    fn unpad_removes_padding_and_rejects_excess() {
        check(&[2, b'a', b'b', 0, 0], Ok(b"ab"));
        check(&[0, b'a'], Ok(b"a"));
        check(&[3, 0, 0, 0], Ok(b""));
        check(&[0], Ok(b""));
        check(&[], Err(NO_PADDING_LENGTH));
        check(&[1], Err(TOO_MUCH_PADDING));
        check(&[4, 0, 0, 0], Err(TOO_MUCH_PADDING));
        assert_eq!(unpad(Flags::NONE, &[9, 9]), Ok(&[9, 9][..]));
    }
}
