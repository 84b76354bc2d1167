//! Long messages, and the limits of their bytes in transit: the server's connection window, and the client's link,
//! which all lanes share.
//!
//! A lane moves at most its window per round trip. **Example:** 64 KiB and 5 ms are 13 MB/s. These are 200 calls/s with
//! messages of 64 KiB; a link of 10 Gbit/s (1.25 GB/s) needs 95 lanes. 4 MiB and 5 ms are 839 MB/s, so it needs two.
//!
//! A lane sends its messages one after the other, and the server returns window credit after each poll. Real servers
//! wait until half a window has been read, and streams take turns and have their own windows. That slows a lane down by
//! up to a half, but does not change which number of lanes is best. Responses are short: if our own window is too
//! small, the policy only sees long calls.

use super::Lane;
use super::costs::Costs;

/// Consecutive bytes of messages, of which the first may be partly sent.
#[derive(Debug, Default)]
pub(super) struct MessageBytes {
    bytes: u64,
    /// Sent bytes of the first message.
    first_sent: u64,
}

impl MessageBytes {
    pub(super) fn push(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes up to this many bytes and messages of `each` bytes. Returns how many messages are now complete, and the
    /// bytes.
    pub(super) fn take(&mut self, each: u64, bytes_max: u64, messages_max: usize) -> (usize, u64) {
        let bytes = self.bytes.min(bytes_max).min(messages_max as u64 * each - self.first_sent);
        let sent_bytes = self.first_sent + bytes;
        self.bytes -= bytes;
        self.first_sent = sent_bytes % each;
        ((sent_bytes / each) as usize, bytes)
    }
}

/// The client's outgoing link.
#[derive(Debug, Default)]
pub(super) struct Link {
    free_ns: u64,
}

impl Link {
    /// Returns when the last of these bytes has left, if they arrive at `at_ns`.
    pub(super) fn carry(&mut self, at_ns: u64, bytes: u64, byte_ps: u64) -> u64 {
        // Lanes on several cores do not write in order of time.
        if byte_ps == 0 {
            return at_ns;
        }
        self.free_ns = self.free_ns.max(at_ns) + bytes * byte_ps / 1_000;
        self.free_ns
    }
}

impl Lane {
    /// Takes the output that the window allows in one poll. Returns how many requests are now complete, and the bytes.
    pub(super) fn take_output(&mut self, costs: &Costs) -> (usize, u64) {
        let bytes_max = self.window_bytes.min(costs.turn_bytes_max);
        let (calls, bytes) = self.output_bytes.take(costs.call_bytes, bytes_max, self.output);
        self.window_bytes -= bytes;
        (calls, bytes)
    }

    /// Removes this many waiting requests, and returns the sum of the times since when they waited.
    pub(super) fn take_output_since(&mut self, calls: usize) -> u128 {
        if calls == 0 {
            return 0;
        }
        let since = self.output_since_ns * calls as u128 / self.output as u128;
        self.output_since_ns -= since;
        self.output -= calls;
        since
    }

    /// Returns whether the window blocks output.
    pub(super) fn is_blocked(&self) -> bool {
        self.window_bytes == 0 && !self.output_bytes.is_empty()
    }

    /// Counts the time in which the window blocked output up to now, like the real sampler.
    pub(super) fn count_blocked(&mut self, now_ns: u64) {
        if let Some(since_ns) = &mut self.blocked_since_ns {
            self.sample.blocked_ns += now_ns - std::mem::replace(since_ns, now_ns);
        }
    }
}
