//! Shared payloads of zeros.

use std::sync::OnceLock;

use bytes::Bytes;
use thalweg::Status;

use super::proto::Payload;

/// Largest payload that a peer can make this process hold, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Blocks of 2⁰, 2¹, … 2²⁶ bytes. All of them together take less than twice `PAYLOAD_BYTES_MAX`, whatever peers
/// request.
static BLOCKS: [OnceLock<Bytes>; PAYLOAD_BYTES_MAX.ilog2() as usize + 1] =
    [const { OnceLock::new() }; PAYLOAD_BYTES_MAX.ilog2() as usize + 1];

/// Returns `len` zero bytes, shared with all other callers.
///
/// # Panics
///
/// If `len` exceeds `PAYLOAD_BYTES_MAX`.
pub fn zeros(len: usize) -> Bytes {
    assert!(len <= PAYLOAD_BYTES_MAX, "payload of {len} bytes exceeds the maximum");
    let size = len.next_power_of_two();
    BLOCKS[size.ilog2() as usize].get_or_init(|| written_zeros(size)).slice(..len)
}

/// Returns the payload of a response of `size` bytes; `None` for 0, as in gRPC's own workers.
///
/// # Errors
///
/// INVALID_ARGUMENT if the size is negative or exceeds `PAYLOAD_BYTES_MAX`.
pub(super) fn payload(size: i32) -> Result<Option<Payload>, Status> {
    match usize::try_from(size) {
        Ok(0) => Ok(None),
        Ok(size) if size <= PAYLOAD_BYTES_MAX => Ok(Some(Payload { r#type: 0, body: zeros(size) })),
        _ => Err(Status::invalid_argument(format!(
            "invalid response size {size}; use 0 to {PAYLOAD_BYTES_MAX}"
        ))),
    }
}

/// Returns zeros that have been written. Untouched memory would map to a single page of zeros, which never leaves the
/// processor's cache: sending it would be faster than sending real data.
fn written_zeros(len: usize) -> Bytes {
    let mut block = vec![1; len];
    std::hint::black_box(&mut block).fill(0);
    Bytes::from(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(len: usize) {
        let block = zeros(len);
        assert_eq!(block.len(), len);
        assert!(block.iter().all(|&byte| byte == 0));
        assert_eq!(block.as_ptr(), zeros(len).as_ptr(), "{len} bytes were made twice");
    }

    #[test]
    fn every_length_is_zeros_made_once() {
        for len in [1, 2, 3, 4, 5, 1023, 1024, 1025, 1_500_000, PAYLOAD_BYTES_MAX] {
            check(len);
        }
        assert!(zeros(0).is_empty());
    }
}
