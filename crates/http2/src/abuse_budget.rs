//! What a peer may cost: the state of the bounds in [`Limits`](crate::Limits).

use std::time::Instant;

use crate::config::Config;
use crate::error::ConnectionError;
use crate::limits::TokenBucket;
use crate::violation::Violation;

/// A header block that is of no use costs a glitch for this many bytes.
const USELESS_BLOCK_BYTES: usize = 256;
/// And one for this many bytes of names that it has copied within the HPACK table.
const COPIED_NAME_BYTES: usize = 16 << 10;

/// A client may open as many streams too many, before it has seen our SETTINGS, as one that has had thousands of calls
/// wait for its connection.
const EARLY_REFUSALS: u32 = 1000;

/// What a peer may still cost before the connection ends with ENHANCE_YOUR_CALM.
#[derive(Debug)]
pub(crate) struct AbuseBudget {
    resets: TokenBucket,
    glitches: TokenBucket,
    stream_error_cost: u32,
    /// Control frames that frames which do work have paid for.
    paid_control_frames: u32,
    paid_control_frames_max: u32,
    /// Acknowledgements and RST_STREAMs in the output that the peer provoked.
    queued_replies: u32,
    queued_replies_max: u32,
    /// Streams that may still be refused for nothing while the peer has not acknowledged SETTINGS.
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

    /// The peer did something that is useless or wrong.
    #[cold]
    pub(crate) fn glitch(&mut self, violation: Violation, now: Instant) -> Result<(), ConnectionError> {
        self.spend_glitches(1, violation, now)
    }

    /// The peer provoked a stream error.
    #[cold]
    pub(crate) fn stream_error(&mut self, violation: Violation, now: Instant) -> Result<(), ConnectionError> {
        self.spend_glitches(self.stream_error_cost, violation, now)
    }

    /// A header block was decoded for nothing but the HPACK table's sake, since it is larger than what is accepted, or
    /// of no stream that is open. It had so many bytes of names copied within the table.
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

    /// Whether a stream may be refused for nothing because the peer cannot know the bound yet.
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

    /// The peer reset a stream that came in the same batch of input, and that was not answered.
    pub(crate) fn unserved_reset(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if self.resets.take(1, now) { Ok(()) } else { Err(ConnectionError::calm(Violation::ResetsExceeded)) }
    }

    /// The peer sent a frame that does no work: it is paid for, or it is a glitch.
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

    /// A frame of `len` bytes did work, in either direction: it pays for control frames to come.
    #[inline]
    pub(crate) fn pay_for_control_frames(&mut self, len: usize) {
        let paid = self.paid_control_frames + 2 + (len / 512) as u32;
        self.paid_control_frames = paid.min(self.paid_control_frames_max);
    }

    /// A reply goes into the output that the peer provoked. The output is taken as fast as the peer reads, so
    /// a peer that provokes replies and does not read them is found out here.
    pub(crate) fn count_reply(&mut self) -> Result<(), ConnectionError> {
        self.queued_replies += 1;
        if self.queued_replies > self.queued_replies_max {
            return Err(ConnectionError::calm(Violation::RepliesUnread));
        }
        Ok(())
    }

    /// The output was taken, and all replies with it.
    #[inline]
    pub(crate) fn note_output_taken(&mut self) {
        self.queued_replies = 0;
    }
}
