//! Payloads of zeros, made once and shared.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::PAYLOAD_BYTES_MAX;

/// Blocks of 2⁰, 2¹, … 2²⁶ bytes, of which payloads are slices.
static BLOCKS: [OnceLock<Bytes>; PAYLOAD_BYTES_MAX.ilog2() as usize + 1] =
    [const { OnceLock::new() }; PAYLOAD_BYTES_MAX.ilog2() as usize + 1];

/// `len` bytes of zeros, at most [`PAYLOAD_BYTES_MAX`].
pub fn zeros(len: usize) -> Bytes {
    let size = len.next_power_of_two();
    let block = BLOCKS[size.ilog2() as usize].get_or_init(|| {
        // Memory as the kernel hands it out is one page of zeros all over, which never leaves the processor's cache:
        // sending it would be faster than sending anything real.
        let mut block = vec![1; size];
        std::hint::black_box(&mut block).fill(0);
        Bytes::from(block)
    });
    block.slice(..len)
}
