//! Payloads of zeros, created once and shared.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::PAYLOAD_BYTES_MAX;

/// Blocks of 2⁰, 2¹, … 2²⁶ bytes; payloads are slices of them.
static BLOCKS: [OnceLock<Bytes>; PAYLOAD_BYTES_MAX.ilog2() as usize + 1] =
    [const { OnceLock::new() }; PAYLOAD_BYTES_MAX.ilog2() as usize + 1];

/// Returns `len` zero bytes, at most [`PAYLOAD_BYTES_MAX`].
pub fn zeros(len: usize) -> Bytes {
    let size = len.next_power_of_two();
    let block = BLOCKS[size.ilog2() as usize].get_or_init(|| {
        // Fresh memory from the kernel is one shared page of zeros, which stays in the CPU cache. Sending it would be
        // faster than sending real data.
        let mut block = vec![1; size];
        std::hint::black_box(&mut block).fill(0);
        Bytes::from(block)
    });
    block.slice(..len)
}
