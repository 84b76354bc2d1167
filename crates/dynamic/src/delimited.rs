//! Delimited messages: each is preceded by its length as a varint.

use std::io::{self, Read};

/// Error of reading a message.
#[derive(Debug)]
pub enum DelimitedError {
    /// The message is invalid.
    Malformed(&'static str),
    /// The input cannot be read.
    Unreadable(io::Error),
}

const TRUNCATED: DelimitedError = DelimitedError::Malformed("is truncated");

/// Reads the next message. Returns `None` at the end.
///
/// # Errors
///
/// Returns an error for a truncated message, or if the input cannot be read.
pub fn next(input: &mut dyn Read) -> Result<Option<Vec<u8>>, DelimitedError> {
    let mut length = 0_u64;
    for shift in (0..).step_by(7) {
        let mut byte = [0];
        match input.read(&mut byte) {
            Ok(0) if shift == 0 => return Ok(None),
            Ok(0) => return Err(TRUNCATED),
            Ok(_) if shift > 28 => return Err(DelimitedError::Malformed("has no length prefix")),
            Ok(_) => length |= u64::from(byte[0] & 0x7f) << shift,
            Err(error) => return Err(DelimitedError::Unreadable(error)),
        }
        if byte[0] < 0x80 {
            break;
        }
    }
    let mut wire = Vec::new();
    input.take(length).read_to_end(&mut wire).map_err(DelimitedError::Unreadable)?;
    if wire.len() as u64 == length { Ok(Some(wire)) } else { Err(TRUNCATED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimited_messages_are_split() {
        let all = |mut bytes: &[u8]| {
            let next = || match next(&mut bytes) {
                Ok(next) => next.map(Ok),
                Err(DelimitedError::Malformed(what)) => Some(Err(what)),
                Err(DelimitedError::Unreadable(error)) => panic!("{error}"),
            };
            std::iter::from_fn(next).collect::<Result<Vec<Vec<u8>>, _>>()
        };
        assert_eq!(all(b""), Ok(Vec::new()));
        assert_eq!(all(b"\x02ab\x00\x81\x00c"), Ok(vec![b"ab".to_vec(), Vec::new(), b"c".to_vec()]));
        assert_eq!(all(b"\x03ab"), Err("is truncated"));
        assert_eq!(all(b"\x80"), Err("is truncated"));
        assert_eq!(all(b"\x80\x80\x80\x80\x80\x00"), Err("has no length prefix"));
    }
}
