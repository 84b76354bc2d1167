//! Decides from earlier spins whether to spin before sleeping.

use super::tuning::SKIPPED;

/// Skips spins after wasted ones: first the next four sleeps, then twice as many each time.
///
/// Two ends that share one processor never receive anything by spinning, and soon hardly try.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpinBackoff {
    /// Number of sleeps left to skip.
    pub(super) skips_left: u32,
    /// Number of sleeps to skip after the next wasted spin.
    pub(super) next_skips: u32,
}

impl SpinBackoff {
    pub(super) const NEW: Self = Self { skips_left: 0, next_skips: 0 };

    /// Called when nothing moved. Returns whether to spin.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.skips_left == 0;
        self.skips_left = self.skips_left.saturating_sub(1);
        is_due
    }

    pub(super) fn note_success(&mut self) {
        self.next_skips /= 2;
    }

    pub(super) fn note_wasted(&mut self) {
        self.next_skips = (2 * self.next_skips).clamp(*SKIPPED.start(), *SKIPPED.end());
        self.skips_left = self.next_skips;
    }
}
