//! Bounds against abusive peers: what they are, and the token buckets that keep them.

use std::time::Instant;

use crate::setters::setters;

/// What a peer may cost beyond what it pays for. Each bound has a default that honest heavy use does not
/// meet; what breaks one ends the connection with ENHANCE_YOUR_CALM. Only what the peer caused counts.
///
/// # Resets
///
/// A client that opens streams and resets them at once (Rapid Reset, CVE-2023-44487) gets round the bound on
/// concurrent streams: a stream is free again before anything was done with it. What tells it from a client
/// with many cancels is just that. So only a reset of a stream that came and went *within one batch of
/// input*, unanswered, takes a token: streams that lived longer were in use while they did, and the bound on
/// concurrent streams bounds them; cancelling an answered call spares work. Honest clients come to such
/// resets too when the server lags behind their deadlines and reads the request together with its
/// cancellation, and the more so the more calls run side by side. The bucket is therefore as large as the
/// streams may be many: with the defaults 40 × 256 = 10,240 at once and 4 × 256 = 1,024 a second. At a few
/// microseconds each that is less than 1 % of a core.
///
/// # Glitches
///
/// All else that is legal and useless, or wrong without endangering the connection, takes tokens of one
/// bucket. A PING, SETTINGS, PRIORITY, unknown frame, informational head or WINDOW_UPDATE costs one token,
/// but frames that do work pay for some beforehand (see [`Limits::paid_control_frames_max`]). An empty DATA
/// frame costs one, a tiny one too. A stream error that the peer provoked (MadeYouReset, CVE-2025-8671) costs
/// [`Limits::stream_error_cost`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many resets of unserved streams a client may make at once, for each stream that it may have open.
    pub resets_per_stream: u32,
    /// How many of them come back per second, for each stream that it may have open.
    pub resets_per_stream_per_s: u32,
    /// How many resets of unserved streams are allowed at least, however few streams may be open.
    pub resets_min: u32,
    /// How many glitches a peer may make at once.
    pub glitches: u32,
    /// How many of them come back per second.
    pub glitches_per_s: u32,
    /// How many glitches a stream error counts that the peer provoked: 10,000 / 10 = 1,000 at once, 33 a
    /// second.
    pub stream_error_cost: u32,
    /// HEADERS and DATA of either side pay for control frames to come, two each and one more per 512 bytes:
    /// honest peers answer DATA with window updates and PINGs. At most this many are paid for beforehand.
    pub paid_control_frames_max: u32,
    /// DATA frames with fewer bytes count as a glitch unless they end the stream. 5 is a gRPC message's
    /// prefix, so no message is so small.
    pub tiny_data_len: u32,
    /// How many CONTINUATION frames may follow a HEADERS frame.
    pub continuations_max: u32,
    /// How long a header block may be that does not come at once, in bytes. What a list of 16 KiB takes at worst,
    /// Huffman codes of 30 bits for each octet, is less than the default.
    pub header_block_len_max: usize,
    /// How many entries a SETTINGS frame may have.
    pub settings_entries_max: usize,
    /// How many acknowledgements and RST_STREAMs may wait for a peer that provokes them and does not read.
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

/// Tokens that come back with time.
///
/// It holds millionths of a token, so that no refill is lost to rounding: 33 tokens a second are 33
/// millionths a microsecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    level: u64,
    capacity: u64,
    per_microsecond: u64,
    updated: Instant,
}

const TOKEN: u64 = 1_000_000;

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(tokens: u32, per_s: u32, now: Instant) -> TokenBucket {
        let capacity = u64::from(tokens) * TOKEN;
        TokenBucket { level: capacity, capacity, per_microsecond: u64::from(per_s), updated: now }
    }

    /// Takes `tokens`; false if there are not so many.
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
        #[expect(clippy::disallowed_methods, reason = "an Instant can be had from nowhere else")]
        Instant::now()
    }

    #[test]
    fn bucket_gives_what_it_holds_and_what_time_brings_back() {
        let t0 = start();
        let mut bucket = TokenBucket::new(1000, 33, t0);
        assert!((0..1000).all(|_| bucket.take(1, t0)));
        assert!(!bucket.take(1, t0));
        let t1 = t0 + Duration::from_secs(1);
        assert!(bucket.take(33, t1));
        assert!(!bucket.take(1, t1));
    }

    #[test]
    fn bucket_loses_no_time_to_many_short_intervals() {
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
    fn bucket_never_holds_more_than_its_capacity_and_time_never_runs_back() {
        let t0 = start();
        let mut bucket = TokenBucket::new(2, 1000, t0 + Duration::from_secs(5));
        assert!(bucket.take(1, t0));
        assert!(bucket.take(2, t0 + Duration::from_secs(500)));
        assert!(!bucket.take(1, t0 + Duration::from_secs(500)));
    }
}
