//! Bounds against abusive peers, and the token buckets that enforce them.

use std::time::Instant;

use crate::setters::setters;

/// Bounds on work that costs a peer little. Honest heavy use does not reach the defaults. A peer that exceeds a bound
/// loses its connection with ENHANCE_YOUR_CALM. Only work that the peer caused counts.
///
/// # Resets
///
/// A client that opens streams and resets them immediately (Rapid Reset, CVE-2023-44487) evades the bound on concurrent
/// streams: a stream is free again before any work on it. This distinguishes it from a client with many cancellations.
/// So only a reset of an unanswered stream that arrived *within the same batch of input* takes a token. Streams that
/// live longer are limited by the bound on concurrent streams, and cancelling an answered call saves work.
///
/// Legitimate clients cause such resets too, when a lagging server reads a request together with its cancellation after
/// the deadline. The more concurrent calls, the more of them. The bucket is therefore proportional to the number of
/// streams: by default 40 × 256 = 10,240 at once and 4 × 256 = 1,024 a second. At a few microseconds each that is less
/// than 1 % of a core.
///
/// # Glitches
///
/// All else that is legal but useless, or wrong without endangering the connection, takes tokens from another bucket. A
/// PING, SETTINGS, PRIORITY, unknown frame, informational response or WINDOW_UPDATE costs one token, but frames that do
/// work pay for some in advance (see [`Limits::paid_control_frames_max`]). An empty or tiny DATA frame costs one too. A
/// stream error that the peer provoked (MadeYouReset, CVE-2025-8671) costs [`Limits::stream_error_cost`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Resets of unserved streams that a client may make at once, per stream that it may have open. Default: 40.
    pub resets_per_stream: u32,
    /// Resets of unserved streams regained per second, per stream that it may have open. Default: 4.
    pub resets_per_stream_per_s: u32,
    /// Minimum number of resets of unserved streams at once, however few streams may be open. Default: 1,000.
    pub resets_min: u32,
    /// Glitches that a peer may cause at once. Default: 10,000.
    pub glitches: u32,
    /// Glitches regained per second. Default: 330.
    pub glitches_per_s: u32,
    /// Glitches per stream error that the peer provoked. Default: 10, which allows 10,000 / 10 = 1,000 at once and 33 a
    /// second.
    pub stream_error_cost: u32,
    /// Maximum number of control frames paid for in advance. HEADERS and DATA of either side pay for two each and one
    /// more per 512 bytes, because compliant peers respond to DATA with window updates and PINGs. Default: 1,000.
    pub paid_control_frames_max: u32,
    /// DATA frames with fewer bytes count as a glitch unless they end the stream. Default: 5, the length of a gRPC
    /// message's prefix; no gRPC message is smaller.
    pub tiny_data_len: u32,
    /// Maximum number of CONTINUATION frames after a HEADERS frame. Default: 8.
    pub continuations_max: u32,
    /// Maximum length in bytes of a header block that arrives in parts. Default: 64 KiB, which exceeds the worst case
    /// of a list of 16 KiB with Huffman codes of 30 bits per octet.
    pub header_block_len_max: usize,
    /// Maximum number of entries of a SETTINGS frame. Default: 32.
    pub settings_entries_max: usize,
    /// Maximum number of acknowledgements and RST_STREAMs queued for a peer that provokes them and does not read.
    /// Default: 10,000.
    pub queued_replies_max: u32,
}

setters!(Limits {
    resets_per_stream: u32,
    resets_per_stream_per_s: u32,
    resets_min: u32,
    glitches: u32,
    glitches_per_s: u32,
    stream_error_cost: u32,
    paid_control_frames_max: u32,
    tiny_data_len: u32,
    continuations_max: u32,
    header_block_len_max: usize,
    settings_entries_max: usize,
    queued_replies_max: u32,
});

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            resets_per_stream: 40,
            resets_per_stream_per_s: 4,
            resets_min: 1000,
            glitches: 10_000,
            glitches_per_s: 330,
            stream_error_cost: 10,
            paid_control_frames_max: 1000,
            tiny_data_len: 5,
            continuations_max: 8,
            header_block_len_max: 64 << 10,
            settings_entries_max: 32,
            queued_replies_max: 10_000,
        }
    }
}

/// Tokens that refill with time.
///
/// Counts millionths of a token, so that no refill is lost to rounding: 33 tokens per second are 33 millionths per
/// microsecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    level: u64,
    capacity: u64,
    per_microsecond: u64,
    updated: Instant,
}

const TOKEN: u64 = 1_000_000;

impl TokenBucket {
    /// Creates a full bucket.
    pub(crate) fn new(tokens: u32, per_s: u32, now: Instant) -> TokenBucket {
        let capacity = u64::from(tokens) * TOKEN;
        TokenBucket { level: capacity, capacity, per_microsecond: u64::from(per_s), updated: now }
    }

    /// Takes `tokens`; returns false if there are not enough.
    pub(crate) fn take(&mut self, tokens: u32, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.updated).as_micros();
        if elapsed > 0 {
            let refill = u64::try_from(elapsed).unwrap_or(u64::MAX).saturating_mul(self.per_microsecond);
            self.level = self.level.saturating_add(refill).min(self.capacity);
            self.updated = now;
        }
        match self.level.checked_sub(u64::from(tokens) * TOKEN) {
            Some(left) => {
                self.level = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "no other way to get an Instant")]
        Instant::now()
    }

    #[test]
    fn bucket_gives_its_capacity_and_refills_with_time() {
        let t0 = start();
        let mut bucket = TokenBucket::new(1000, 33, t0);
        assert!((0..1000).all(|_| bucket.take(1, t0)));
        assert!(!bucket.take(1, t0));
        let t1 = t0 + Duration::from_secs(1);
        assert!(bucket.take(33, t1));
        assert!(!bucket.take(1, t1));
    }

    #[test]
    fn refill_loses_nothing_to_rounding() {
        let mut now = start();
        let mut bucket = TokenBucket::new(10, 1000, now);
        assert!(bucket.take(10, now));
        for _ in 0..1000 {
            now += Duration::from_micros(1);
            bucket.take(11, now);
        }
        assert!(bucket.take(1, now));
        assert!(!bucket.take(1, now));
    }

    #[test]
    fn refill_stops_at_capacity_and_ignores_earlier_times() {
        let t0 = start();
        let mut bucket = TokenBucket::new(2, 1000, t0 + Duration::from_secs(5));
        assert!(bucket.take(1, t0));
        assert!(bucket.take(2, t0 + Duration::from_secs(500)));
        assert!(!bucket.take(1, t0 + Duration::from_secs(500)));
    }
}
