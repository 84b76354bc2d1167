//! Detects slow methods, whose calls get tasks from the start.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Mean CPU time of a method's handlers, which separates slow methods from quick ones.
///
/// The mean counts because it delays other calls of the connection. A handler of a few µs that takes 20 ms in one of
/// thirty calls is as slow as one that always takes 700 µs. A pause of the machine changes the mean only a little, and
/// a method that becomes quick again is detected.
#[derive(Debug, Default)]
pub struct HandlerCost {
    /// Mean of the last calls in ns. Threads may overwrite each other's updates, so it is approximate.
    mean_ns: AtomicU64,
    /// A rough time was too long for a quick handler, so the next one is timed from its start.
    is_doubtful: AtomicBool,
}

/// Start time of a handler.
#[derive(Debug)]
pub(super) struct Stopwatch {
    since: Instant,
    /// `since` is earlier than the handler's start, or the start of an earlier handler.
    is_rough: bool,
    /// Number of untimed handlers that ran since then.
    untimed: u32,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { since: Instant::now(), is_rough: false, untimed: 0 }
    }

    /// Starts at a known earlier time. Reading the clock takes 25 ns, and a call some hundred.
    pub(super) fn rough(since: Instant) -> Self {
        Self { since, is_rough: true, untimed: 0 }
    }
}

/// Mean above which handlers run in tasks. A spawn and its wake-up cost some µs.
const MEAN_SLOW_NS: u64 = 100_000;
/// Times below this are not recorded, so quick methods do not write to state shared between threads.
const QUICK_NS: u64 = 8_000;
/// Maximum number of quick handlers in sequence without reading the clock.
const UNTIMED_MAX: u32 = 3;
/// Maximum time counted per call. One pause of the machine does not make a method slow. A method that becomes quick
/// again is detected after at most about 1,400 calls.
const TOOK_NS_MAX: u64 = 20_000_000;
/// The mean covers roughly the last 2⁸ calls.
const MEAN_SHIFT: u32 = 8;

impl HandlerCost {
    #[inline]
    pub(super) fn is_quick(&self) -> bool {
        self.mean_ns.load(Ordering::Relaxed) < MEAN_SLOW_NS
    }

    /// Prepares the stopwatch for a handler.
    #[inline]
    pub(super) fn begin(&self, watch: &mut Stopwatch) {
        if watch.is_rough && self.is_doubtful.load(Ordering::Relaxed) {
            *watch = Stopwatch::start();
        }
    }

    /// Records a poll that began when `watch` was started, and restarts it.
    #[inline]
    pub(super) fn note(&self, watch: &mut Stopwatch) {
        let now = Instant::now();
        let Stopwatch { since, is_rough, untimed } =
            std::mem::replace(watch, Stopwatch { since: now, is_rough: false, untimed: 0 });
        let took = now.saturating_duration_since(since);
        let mean_ns = self.mean_ns.load(Ordering::Relaxed);
        let quick = Duration::from_nanos(QUICK_NS * u64::from(1 + untimed));
        if mean_ns > QUICK_NS || took > quick {
            self.note_long(mean_ns, took, is_rough);
        } else if !is_rough && self.is_doubtful.load(Ordering::Relaxed) {
            self.is_doubtful.store(false, Ordering::Relaxed);
        }
    }

    /// Like [`note`](Self::note), when another handler runs next. While handlers are quick, the clock is read once for
    /// several of them. Such a time is rough; if it is long, the next handlers are timed one by one.
    #[inline]
    pub(super) fn note_before_next(&self, watch: &mut Stopwatch) {
        let is_settled =
            self.mean_ns.load(Ordering::Relaxed) <= QUICK_NS && !self.is_doubtful.load(Ordering::Relaxed);
        if is_settled && watch.untimed < UNTIMED_MAX {
            watch.untimed += 1;
            watch.is_rough = true;
        } else {
            self.note(watch);
        }
    }

    #[cold]
    fn note_long(&self, mean_ns: u64, took: Duration, is_rough: bool) {
        self.is_doubtful.store(true, Ordering::Relaxed);
        if is_rough {
            return;
        }
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).min(TOOK_NS_MAX);
        let fresh_ns = mean_ns - (mean_ns >> MEAN_SHIFT) + (took_ns >> MEAN_SHIFT);
        self.mean_ns.store(fresh_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(cost: &HandlerCost, took: Duration) {
        cost.note(&mut Stopwatch { since: ago(took), is_rough: false, untimed: 0 });
    }

    fn ago(took: Duration) -> Instant {
        Instant::now().checked_sub(took).expect("the clock is not young")
    }

    /// A rough time alone changes nothing.
    #[test]
    fn rough_long_time_is_measured_again() {
        let cost = HandlerCost::default();
        let check_restarts = |expected: bool| {
            let mut watch = Stopwatch::rough(ago(Duration::from_secs(1)));
            cost.begin(&mut watch);
            assert_eq!(watch.is_rough, !expected);
            cost.note(&mut watch);
        };
        for _ in 0..10 {
            check_restarts(false);
            check_restarts(true);
        }
        assert!(cost.is_quick());
        (0..3).for_each(|_| note(&cost, Duration::from_secs(1)));
        assert!(!cost.is_quick());
        check_restarts(true);
        check_restarts(true);
    }

    /// Slow handlers of one batch are detected as soon as the clock is read.
    #[test]
    fn slow_batch_is_timed_call_by_call() {
        let cost = HandlerCost::default();
        let mut watch = Stopwatch { since: ago(Duration::from_secs(1)), is_rough: false, untimed: 0 };
        for untimed in 1..=UNTIMED_MAX {
            cost.note_before_next(&mut watch);
            assert_eq!((watch.untimed, watch.is_rough), (untimed, true));
        }
        cost.note_before_next(&mut watch);
        assert_eq!((watch.untimed, watch.is_rough), (0, false), "the clock was read");
        assert!(cost.is_quick(), "that it was one of them counts for nothing");
        watch.since = ago(Duration::from_secs(1));
        cost.note_before_next(&mut watch);
        assert_eq!(watch.untimed, 0, "it was timed");
    }

    #[test]
    fn slow_methods_get_tasks_and_come_back() {
        let cost = HandlerCost::default();
        note(&cost, Duration::from_secs(1));
        assert!(cost.is_quick(), "one slow call may be the machine's fault");
        note(&cost, Duration::from_secs(1));
        assert!(!cost.is_quick());
        (0..1000).for_each(|_| note(&cost, Duration::from_secs(1)));
        let calls = (0..).take_while(|_| {
            note(&cost, Duration::ZERO);
            !cost.is_quick()
        });
        let calls = calls.count();
        assert!((1000..1500).contains(&calls), "{calls}");
    }

    /// The few slow calls count, because others wait for them.
    #[test]
    fn a_heavy_tail_is_slow() {
        let is_slow = |share: usize, took: Duration| {
            let cost = HandlerCost::default();
            for call in 0..2000 {
                note(&cost, if call % 100 < share { took } else { Duration::from_micros(2) });
            }
            !cost.is_quick()
        };
        assert!(is_slow(4, Duration::from_millis(20)));
        assert!(is_slow(100, Duration::from_micros(200)));
        assert!(!is_slow(100, Duration::from_micros(50)));
        assert!(!is_slow(1, Duration::from_micros(500)));
    }
}
