//! Payloads of zeros, made once and shared.

use std::sync::OnceLock;

use bytes::Bytes;
use thalweg::Status;

use super::proto::Payload;

/// The largest payload that a peer can make this process hold, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Blocks of 2⁰, 2¹, … 2²⁶ bytes: whatever the peers ask for, all of them together take less than twice
/// `PAYLOAD_BYTES_MAX`.
static BLOCKS: [OnceLock<Bytes>; PAYLOAD_BYTES_MAX.ilog2() as usize + 1] =
    [const { OnceLock::new() }; PAYLOAD_BYTES_MAX.ilog2() as usize + 1];

/// `len` bytes of zeros, shared with all other callers.
///
/// # Panics
///
/// When `len` is beyond `PAYLOAD_BYTES_MAX`.
pub fn zeros(len: usize) -> Bytes {
    assert!(len <= PAYLOAD_BYTES_MAX, "{len} bytes are more than a payload may have");
    let size = len.next_power_of_two();
    BLOCKS[size.ilog2() as usize].get_or_init(|| written_zeros(size)).slice(..len)
}

/// The payload for an answer that a peer wants `size` bytes long; none for an empty answer, as gRPC's own workers do.
///
/// # Errors
///
/// INVALID_ARGUMENT for a size that is negative or beyond `PAYLOAD_BYTES_MAX`.
pub(super) fn payload(size: i32) -> Result<Option<Payload>, Status> {
    match usize::try_from(size) {
        Ok(0) => Ok(None),
        Ok(size) if size <= PAYLOAD_BYTES_MAX => Ok(Some(Payload { r#type: 0, body: zeros(size) })),
        _ => Err(Status::invalid_argument(format!(
            "an answer of {size} bytes was asked for; this server sends 0 to {PAYLOAD_BYTES_MAX}"
        ))),
    }
}

/// Zeros that have been written. Memory as the kernel hands it out would be one and the same page of zeros all over,
/// which never leaves the processor's cache: sending it is faster than sending anything real.
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
