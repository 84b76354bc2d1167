//! Messages that are long, and what bounds their bytes under way: the server's window of a connection, and the client's
//! link, which all lanes share.
//!
//! A lane moves at most its window in a round trip. **Example:** 64 KiB and 5 ms are 13 MB/s: 200 calls/s with messages
//! of 64 KiB, and 95 lanes for a link of 10 Gbit/s (1.25 GB/s); 4 MiB and 5 ms are 839 MB/s, and two lanes.
//!
//! The messages of a lane go one after the other, and what the server has read it permits again at once, as much as a
//! poll reads. Real servers wait until half a window was read, and streams take turns and have windows of their own:
//! that makes a lane slower by up to a half, and no number of lanes better than another. Answers are short: of a window
//! of our own that is too small, the policy hears no more than that calls take long.

use super::Lane;
use super::costs::Costs;

/// Bytes of messages in a row, of which the first may have gone in part.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    bytes: u64,
    /// Of the first message, so many have gone.
    begun: u64,
}

impl Stretch {
    pub(super) fn push(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes up to so many bytes and messages of `each` bytes; says how many messages these end, and the bytes.
    pub(super) fn take(&mut self, each: u64, bytes_max: u64, messages_max: usize) -> (usize, u64) {
        let bytes = self.bytes.min(bytes_max).min(messages_max as u64 * each - self.begun);
        let gone = self.begun + bytes;
        self.bytes -= bytes;
        self.begun = gone % each;
        ((gone / each) as usize, bytes)
    }
}

/// The way out of the client.
#[derive(Debug, Default)]
pub(super) struct Link {
    free_ns: u64,
}

impl Link {
    /// When the last of these bytes is on its way, if they come at `at_ns`.
    pub(super) fn carry(&mut self, at_ns: u64, bytes: u64, byte_ps: u64) -> u64 {
        // Lanes on several cores write past each other.
        if byte_ps == 0 {
            return at_ns;
        }
        self.free_ns = self.free_ns.max(at_ns) + bytes * byte_ps / 1_000;
        self.free_ns
    }
}

impl Lane {
    /// What a poll writes: as much as the window permits. Says how many requests that ends, and the bytes.
    pub(super) fn take_output(&mut self, costs: &Costs) -> (usize, u64) {
        let bytes_max = self.window_bytes.min(costs.turn_bytes_max);
        let (calls, bytes) = self.output_bytes.take(costs.call_bytes, bytes_max, self.output);
        self.window_bytes -= bytes;
        (calls, bytes)
    }

    /// The sum of the times since when so many of the requests that wait have done so.
    pub(super) fn take_output_since(&mut self, calls: usize) -> u128 {
        if calls == 0 {
            return 0;
        }
        let since = self.output_since_ns * calls as u128 / self.output as u128;
        self.output_since_ns -= since;
        self.output -= calls;
        since
    }

    /// Whether the window keeps output back.
    pub(super) fn is_blocked(&self) -> bool {
        self.window_bytes == 0 && !self.output_bytes.is_empty()
    }

    /// Counts the time in which the window kept output back, as the real sampler does: up to now.
    pub(super) fn count_blocked(&mut self, now_ns: u64) {
        if let Some(since_ns) = &mut self.blocked_since_ns {
            self.sample.blocked_ns += now_ns - std::mem::replace(since_ns, now_ns);
        }
    }
}
