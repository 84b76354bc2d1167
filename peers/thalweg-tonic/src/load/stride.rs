//! When the clock is read on a stream: reading it takes some 25 ns, which would be most of what an empty message costs.

/// How many small messages of a stream share one reading of the clock.
const STRIDE: u64 = 16;
/// Messages of at least this many bytes of payload are timed one by one.
const STRIDE_BYTES_MAX: usize = 4096;

pub fn stride(size: usize) -> u64 {
    if size < STRIDE_BYTES_MAX { STRIDE } else { 1 }
}
