//! When the clock is read on a stream.
//!
//! Reading the clock takes some 25 ns; on a stream of empty messages, of which tens of millions a second can pass, it
//! would be most of what is measured. So small messages are timed in strides.

use crate::record::{CallType, Recorder};

/// How many small messages of a stream share one reading of the clock.
pub(crate) const STRIDE: u64 = 16;
/// Messages of at least this many bytes are timed one by one.
pub(crate) const STRIDE_BYTES_MAX: usize = 4096;

/// The stride for messages with `size` bytes of payload. The round trips of a ping-pong are timed one by one.
pub(super) fn stride(kind: CallType, size: usize) -> u64 {
    if size < STRIDE_BYTES_MAX && kind != CallType::PingPong { STRIDE } else { 1 }
}

/// Puts the time of a stride down to its messages, where the time from message to message is what counts (streams one
/// way). What the stride took beyond the pace of the fastest stride so far is put down to one message of it: so the
/// mean is exact, and a stall shows as what it is, not as a sixteenth of it.
///
/// Worked: the fastest stride of 16 took 320 ns, this one took 5 µs. 15 messages count as 20 ns, one as 4.7 µs.
#[derive(Debug)]
pub(super) struct Pace {
    fastest_ns: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { fastest_ns: u64::MAX }
    }

    /// Records `count` messages that took `elapsed_ns` together.
    pub(super) fn record(&mut self, recorder: &mut Recorder, elapsed_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.fastest_ns = self.fastest_ns.min(elapsed_ns / count);
        recorder.record_many(self.fastest_ns, count - 1);
        recorder.record(elapsed_ns - self.fastest_ns * (count - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(strides: &[(u64, u64)], (count, mean, p50, max): (u64, f64, u64, u64)) {
        let (mut pace, mut recorder) = (Pace::new(), Recorder::new());
        for &(elapsed_ns, count) in strides {
            pace.record(&mut recorder, elapsed_ns, count);
        }
        let latency = recorder.latency().unwrap();
        assert_eq!((recorder.operations(), latency.p50, latency.max), (count, p50, max), "{strides:?}");
        assert!((latency.mean - mean).abs() < 1e-9, "{strides:?}: mean {}", latency.mean);
    }

    #[test]
    fn a_stride_keeps_its_sum_and_shows_its_stall() {
        check(&[(320, 16)], (16, 20.0, 20, 20));
        check(&[(320, 16), (5000, 16)], (32, 166.25, 20, 4700));
        check(&[(320, 16), (0, 0)], (16, 20.0, 20, 20));
    }

    #[test]
    fn a_stride_of_one_is_exact() {
        check(&[(300, 1), (100, 1), (500, 1)], (3, 300.0, 300, 500));
    }
}
