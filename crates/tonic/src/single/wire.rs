//! The prefix of a message, and the status of one that is too large.

use vocabulary::Status;

pub(super) const PREFIX_LEN: usize = vocabulary::codec::HEADER_SIZE;

/// Returns true if `wire` is exactly one complete, uncompressed message.
#[inline]
pub(crate) fn is_single(wire: &[u8]) -> bool {
    match wire {
        [0, a, b, c, d, message @ ..] => message.len() == u32::from_be_bytes([*a, *b, *c, *d]) as usize,
        _ => false,
    }
}

#[cold]
pub(super) fn too_large(what: &str, len: usize, limit: usize) -> Status {
    Status::out_of_range(format!(
        "Error, {what} message length too large: found {len} bytes, the limit is: {limit} bytes"
    ))
}
