//! Slow-method detection: which methods' calls get tasks from the start.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How much of the processor a method's handlers take: tells slow methods from quick ones.
///
/// A handler that keeps the processor for more than [`SLOW`] adds to the score, one that does not takes a little away;
/// above the threshold calls get tasks. So a pause of the machine changes nothing, and a method that has become quick
/// comes back.
#[derive(Debug, Default)]
pub(super) struct HandlerCost {
    score: AtomicI32,
}

/// Longer than this, and the other calls of the connection are better off elsewhere. A spawn and its wake-up cost some
/// µs.
const SLOW: Duration = Duration::from_micros(100);
const SLOW_PENALTY: i32 = 16;
/// Two slow calls in a row are enough.
const SCORE_SLOW: i32 = 20;
/// From here it takes some 100 quick calls to come back.
const SCORE_MAX: i32 = 120;

impl HandlerCost {
    #[inline]
    pub(super) fn is_quick(&self) -> bool {
        self.score.load(Ordering::Relaxed) < SCORE_SLOW
    }

    /// Takes note of a poll that began at `clock`, and moves `clock` on.
    #[inline]
    pub(super) fn note(&self, clock: &mut Instant) {
        let now = Instant::now();
        let took = now - std::mem::replace(clock, now);
        let score = self.score.load(Ordering::Relaxed);
        // Calls of several threads may overwrite each other's note: it is a tendency, not a count.
        if took > SLOW {
            self.score.store((score + SLOW_PENALTY).min(SCORE_MAX), Ordering::Relaxed);
        } else if score > 0 {
            self.score.store(score - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_methods_get_tasks_and_come_back() {
        let cost = HandlerCost::default();
        let note = |took: Duration| {
            cost.note(&mut Instant::now().checked_sub(took).expect("the clock is not young"));
        };
        note(Duration::from_millis(5));
        assert!(cost.is_quick(), "one slow call may be the machine's fault");
        note(Duration::from_millis(5));
        assert!(!cost.is_quick());
        (0..SCORE_MAX).for_each(|_| note(Duration::ZERO));
        assert!(cost.is_quick());
    }
}
