//! Whether it pays to look for what comes before sleeping.

use std::time::Duration;

/// What is found so soon costs less than it would have to fall asleep and to be woken.
const EARLY: Duration = Duration::from_micros(30);
/// So many more late finds than early ones are borne.
const LATE_MAX: u32 = 32;
const SKIPPED_MIN: u32 = 4;
const SKIPPED_MAX: u32 = 4096;

/// Whether a look pays: with a few calls in flight, two quick ends spend more time on falling asleep and waking up,
/// some 20 µs each, than on calls.
///
/// It does where small things follow each other closely, and something came the last times that it looked. After a look
/// in vain, sleeps go without one: four, and twice as many each time. So a load of another kind loses one processor in
/// some thousands, and so do two ends that share one, which never find anything.
///
/// A find that came late would not pay if it stayed late. But where the peer slept, being woken is what made it late:
/// on some virtual machines that takes 60 µs and more. It looks as well when it is awake, and from then on both find
/// something early. So some late finds are borne, and what stays late counts as in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    /// So many sleeps go without a look.
    pub(super) skipped: u32,
    /// As many after the next look in vain.
    pub(super) to_skip: u32,
    /// How many more late finds there were than early ones, lately.
    late: u32,
}

impl Looks {
    pub(super) const NEW: Self = Self { skipped: 0, to_skip: 0, late: 0 };

    /// Nothing moves: whether to look.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        is_due
    }

    /// A look has found something, after so long.
    pub(super) fn note_found(&mut self, after: Duration) {
        match (after <= EARLY, self.late) {
            (true, 0) => self.to_skip /= 2,
            (true, _) => self.late -= 1,
            (false, LATE_MAX..) => {
                self.note_in_vain();
                self.late = LATE_MAX / 2;
            }
            (false, _) => self.late += 1,
        }
    }

    pub(super) fn note_in_vain(&mut self) {
        self.to_skip = (2 * self.to_skip).clamp(SKIPPED_MIN, SKIPPED_MAX);
        self.skipped = self.to_skip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_micros(80);

    /// How many of `sleeps` sleeps have a look before them, which finds something after what `after` says.
    fn looks(sleeps: u32, after: impl Fn(u32) -> Duration) -> u32 {
        let mut looks = Looks::NEW;
        let due = (0..sleeps).filter(|sleep| {
            let is_due = looks.is_due();
            if is_due {
                looks.note_found(after(*sleep));
            }
            is_due
        });
        due.count() as u32
    }

    #[test]
    fn late_finds_are_borne_until_both_ends_look() {
        assert_eq!(looks(10_000, |sleep| if sleep < LATE_MAX { LATE } else { Duration::ZERO }), 10_000);
        assert_eq!(looks(10_000, |sleep| if sleep % 2 == 0 { LATE } else { EARLY }), 10_000);
    }

    #[test]
    fn what_stays_late_is_looked_for_seldom() {
        assert!((100..1000).contains(&looks(10_000, |_| LATE)));
        assert!((100..2000).contains(&looks(10_000, |sleep| if sleep % 4 == 0 { EARLY } else { LATE })));
    }
}
