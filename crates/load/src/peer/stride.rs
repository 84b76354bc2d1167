//! When the clock is read on a stream.
//!
//! Reading the clock takes some 25 ns; on a stream of empty messages, of which tens of millions a second can pass, it
//! would be most of what is measured. So small messages are timed in strides.

use crate::record::CallType;

/// How many small messages of a stream share one reading of the clock.
pub(crate) const STRIDE: u64 = 16;
/// Messages of at least this many bytes are timed one by one.
pub(crate) const STRIDE_BYTES_MAX: usize = 4096;

/// The stride for messages with `size` bytes of payload. The round trips of a ping-pong are timed one by one.
pub(super) fn stride(kind: CallType, size: usize) -> u64 {
    if size < STRIDE_BYTES_MAX && kind != CallType::PingPong { STRIDE } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: CallType, size: usize, expected: u64) {
        assert_eq!(stride(kind, size), expected, "{kind} of {size} bytes");
    }

    #[test]
    fn small_messages_share_a_reading_of_the_clock() {
        check(CallType::ServerStream, 0, 16);
        check(CallType::BidiStream, 4095, 16);
        check(CallType::ClientStream, 4096, 1);
        check(CallType::PingPong, 0, 1);
    }
}
