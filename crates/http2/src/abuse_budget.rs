//! Tracks the costs that a peer causes against the bounds in [`Limits`](crate::Limits).

use std::time::Instant;

use crate::config::Config;
use crate::error::ConnectionError;
use crate::limits::TokenBucket;
use crate::violation::Violation;

/// Bytes of a useless header block per glitch.
const USELESS_BLOCK_BYTES: usize = 256;
/// Bytes of names copied within the HPACK table per glitch.
const COPIED_NAME_BYTES: usize = 16 << 10;

/// Streams above the limit that a client may open before it has seen our SETTINGS. A client with thousands of calls
/// waiting for its connection does this.
const EARLY_REFUSALS: u32 = 1000;

/// Remaining cost allowance of the peer. Exceeding it ends the connection with ENHANCE_YOUR_CALM.
#[derive(Debug)]
pub(crate) struct AbuseBudget {
    resets: TokenBucket,
    glitches: TokenBucket,
    stream_error_cost: u32,
    /// Control frames already paid for by frames that do work.
    paid_control_frames: u32,
    paid_control_frames_max: u32,
    /// Acknowledgements and RST_STREAMs in the output that the peer provoked.
    queued_replies: u32,
    queued_replies_max: u32,
    /// Streams that may still be refused free of charge while the peer has not acknowledged SETTINGS.
    early_refusals_left: u32,
}

impl AbuseBudget {
    pub(crate) fn new(config: &Config, now: Instant) -> AbuseBudget {
        let limits = &config.limits;
        let streams = config.max_concurrent_streams;
        let resets = TokenBucket::new(
            limits.resets_per_stream.saturating_mul(streams).max(limits.resets_min),
            limits.resets_per_stream_per_s.saturating_mul(streams),
            now,
        );
        AbuseBudget {
            resets,
            glitches: TokenBucket::new(limits.glitches, limits.glitches_per_s, now),
            stream_error_cost: limits.stream_error_cost,
            paid_control_frames: 0,
            paid_control_frames_max: limits.paid_control_frames_max,
            queued_replies: 0,
            queued_replies_max: limits.queued_replies_max,
            early_refusals_left: EARLY_REFUSALS,
        }
    }

    /// Charges a useless or wrong action of the peer.
    #[cold]
    pub(crate) fn glitch(&mut self, violation: Violation, now: Instant) -> Result<(), ConnectionError> {
        self.spend_glitches(1, violation, now)
    }

    /// Charges a stream error that the peer provoked.
    #[cold]
    pub(crate) fn stream_error(&mut self, violation: Violation, now: Instant) -> Result<(), ConnectionError> {
        self.spend_glitches(self.stream_error_cost, violation, now)
    }

    /// Charges a header block that was decoded only to keep the HPACK table in sync, because it is too large or its
    /// stream is not open. `copied_names_len` is the number of name bytes it copied within the table.
    #[cold]
    pub(crate) fn useless_block(
        &mut self,
        len: usize,
        copied_names_len: usize,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let cost = len / USELESS_BLOCK_BYTES + copied_names_len / COPIED_NAME_BYTES;
        self.spend_glitches(u32::try_from(cost).unwrap_or(u32::MAX), Violation::HeadersUseless, now)
    }

    /// Returns whether a stream may be refused free of charge because the peer cannot know the limit yet.
    #[cold]
    pub(crate) fn take_early_refusal(&mut self) -> bool {
        let left = self.early_refusals_left.checked_sub(1);
        self.early_refusals_left = left.unwrap_or(0);
        left.is_some()
    }

    fn spend_glitches(
        &mut self,
        cost: u32,
        violation: Violation,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        if self.glitches.take(cost, now) { Ok(()) } else { Err(ConnectionError::calm(violation)) }
    }

    /// Charges a reset of an unanswered stream that arrived in the same batch of input.
    pub(crate) fn unserved_reset(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if self.resets.take(1, now) { Ok(()) } else { Err(ConnectionError::calm(Violation::ResetsExceeded)) }
    }

    /// Charges a frame that does no work: one that was paid for, or else a glitch.
    pub(crate) fn control_frame(
        &mut self,
        violation: Violation,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        match self.paid_control_frames.checked_sub(1) {
            Some(left) => {
                self.paid_control_frames = left;
                Ok(())
            }
            None => self.glitch(violation, now),
        }
    }

    /// Credits a frame of `len` bytes that does work, in either direction, toward later control frames.
    #[inline]
    pub(crate) fn pay_for_control_frames(&mut self, len: usize) {
        let paid = self.paid_control_frames + 2 + (len / 512) as u32;
        self.paid_control_frames = paid.min(self.paid_control_frames_max);
    }

    /// Counts a queued reply that the peer provoked. The output drains as fast as the peer reads, so a peer that
    /// provokes replies without reading them is detected here.
    pub(crate) fn count_reply(&mut self) -> Result<(), ConnectionError> {
        self.queued_replies += 1;
        if self.queued_replies > self.queued_replies_max {
            return Err(ConnectionError::calm(Violation::RepliesUnread));
        }
        Ok(())
    }

    /// Resets the count of replies, because the output was taken.
    #[inline]
    pub(crate) fn note_output_taken(&mut self) {
        self.queued_replies = 0;
    }
}
