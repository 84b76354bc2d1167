//! Whether it pays to look for what comes before sleeping.

const SKIPPED_MIN: u32 = 4;
const SKIPPED_MAX: u32 = 4096;

/// Whether a look pays: with a few calls in flight, two quick ends spend more time on falling asleep and waking up,
/// some 20 µs each, than on calls.
///
/// It does where small things follow each other closely, and something came the last times that it looked. After a look
/// in vain, sleeps go without one: four, and twice as many each time. So a load of another kind loses one processor in
/// some thousands, and so do two ends that share one, which never find anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    /// So many sleeps go without a look.
    pub(super) skipped: u32,
    /// As many after the next look in vain.
    pub(super) to_skip: u32,
}

impl Looks {
    pub(super) const NEW: Self = Self { skipped: 0, to_skip: 0 };

    /// Nothing moves: whether to look.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        is_due
    }

    pub(super) fn note_found(&mut self) {
        self.to_skip /= 2;
    }

    pub(super) fn note_in_vain(&mut self) {
        self.to_skip = (2 * self.to_skip).clamp(SKIPPED_MIN, SKIPPED_MAX);
        self.skipped = self.to_skip;
    }
}
