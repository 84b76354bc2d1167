//! Whether and how long an idle connection busy-polls before it sleeps.
//!
//! The driver does not block its thread: after each try it yields to the other tasks, which may be the very ones that
//! would make the next call.

use std::cell::Cell;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use super::heuristic::Heuristic;
use super::load::nanoseconds;
use super::spin_backoff::SpinBackoff;
use super::thread_poller;
use super::tuning::{
    GAP_MAX, LARGE_LEN, MOVED_LEN_DECAY, MOVED_LEN_MAX, NEW_READS, SPIN_MAX, TRIES_PER_YIELD,
};
use super::wasted::add_wasted;
use super::yield_now::yield_now;

thread_local! {
    static IS_SPINNING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether reads of this thread ask the system directly, without waiting for a readiness event.
#[inline]
pub(crate) fn is_spinning() -> bool {
    IS_SPINNING.get()
}

/// Behaviour of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Sleeps.
    Off,
    /// Spins for this long, always.
    Fixed(Duration),
    /// Spins for up to [`SPIN_MAX`] where earlier spins succeeded: see [`SpinBackoff`].
    Adaptive,
}

/// Busy polling of one connection.
///
/// With few calls in flight, two fast ends spend more time on falling asleep and waking up, some 20 µs each, than on
/// calls. So an adaptive connection spins if small messages follow each other closely.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    mode: Mode,
    pace: Pace,
    /// Backoff of spins at its own socket. Spins for the thread share the thread's backoff.
    backoff: SpinBackoff,
    /// Bytes read and written since the last idle moment, and the recent maximum.
    moved_len: usize,
    moved_len_lately: usize,
    /// The current spin, which has received nothing so far.
    spin: Option<Spin>,
    tries: u32,
    /// 0 until the runtime's flavor is known.
    tries_per_yield: u32,
}

/// A spin that has received nothing so far. It uses the machine's clock even if a test has paused tokio's, since it
/// spends processor time.
#[derive(Clone, Copy, Debug)]
struct Spin {
    since: Instant,
    tried_at: Instant,
    scope: Scope,
}

/// Sockets that a spin polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The connection's own socket.
    Socket,
    /// All sockets of the thread, through the runtime, for all connections that the thread drives.
    Thread,
}

impl Spin {
    /// Returns whether the data arrived during the spin. Data found by a thread's first try was there before.
    fn has_succeeded(self) -> bool {
        self.scope == Scope::Socket || self.tried_at > self.since
    }
}

/// A connection on which nothing moves.
pub(crate) struct Idle<F> {
    /// Identifies the connection.
    pub(crate) identity: usize,
    /// Whether a large message is incomplete.
    pub(crate) is_amid_message: bool,
    /// Whether the thread drives no other connection.
    pub(crate) is_alone: bool,
    /// Returns whether something is expected.
    pub(crate) expects: F,
}

/// Whether reads follow each other closely ([`GAP_MAX`]), and have for some time: a new connection does not spin.
#[derive(Debug, Default)]
struct Pace {
    /// When something was last read, and whether that was close to the read before.
    read_at: Option<tokio::time::Instant>,
    is_close: bool,
    /// Polls that have read something.
    reads: u32,
}

impl Pace {
    #[inline]
    fn note_read(&mut self, polled_at: tokio::time::Instant) {
        if self.read_at != Some(polled_at) {
            let before = self.read_at.replace(polled_at);
            self.is_close =
                before.is_some_and(|before| polled_at.saturating_duration_since(before) < GAP_MAX);
            self.reads = self.reads.saturating_add(1);
        }
    }

    fn is_close(&self) -> bool {
        self.is_close && self.reads > NEW_READS
    }
}

impl BusyPoll {
    /// Busy-polls for `duration`, or adaptively when `None`.
    pub(crate) fn new(duration: Option<Duration>) -> Self {
        let mode = match duration {
            None => Mode::Adaptive,
            Some(Duration::ZERO) => Mode::Off,
            Some(duration) => Mode::Fixed(duration),
        };
        Self {
            mode,
            pace: Pace::default(),
            backoff: SpinBackoff::NEW,
            moved_len: 0,
            moved_len_lately: 0,
            spin: None,
            tries: 0,
            tries_per_yield: 0,
        }
    }

    /// Returns whether the connection spins, so that this poll of its driver is a try.
    #[inline]
    pub(crate) fn is_spinning(&self) -> bool {
        self.spin.is_some()
    }

    /// Starts a poll of the driver. Its first read is a try if the connection spins at its socket.
    #[inline]
    pub(crate) fn start_poll(&self) {
        if self.spin.is_some_and(|spin| spin.scope == Scope::Socket) {
            IS_SPINNING.set(true);
        }
    }

    /// Ends a poll of the driver.
    #[inline]
    pub(crate) fn end_poll(&self) {
        if self.spin.is_some() {
            IS_SPINNING.set(false);
        }
    }

    /// Notes a write: the next try that receives nothing starts another spin.
    #[inline]
    pub(crate) fn note_wrote(&mut self, written: usize) {
        self.moved_len += written;
        self.end_spin();
    }

    /// Notes a read in the poll that started at `polled_at`.
    #[inline]
    pub(crate) fn note_read(&mut self, read: usize, polled_at: tokio::time::Instant) {
        self.moved_len += read;
        if let Some(spin) = self.end_spin()
            && spin.has_succeeded()
        {
            self.with_backoff(spin.scope, SpinBackoff::note_success);
        }
        if self.mode == Mode::Adaptive {
            self.pace.note_read(polled_at);
            thread_poller::note_read();
        }
    }

    #[inline]
    fn end_spin(&mut self) -> Option<Spin> {
        let spin = self.spin.take()?;
        IS_SPINNING.set(false);
        Some(spin)
    }

    /// Called when nothing moved. Returns whether to try again instead of sleeping. `now` is called only if it may try
    /// again.
    #[inline]
    pub(crate) fn tries_again(
        &mut self,
        idle: Idle<impl FnOnce() -> bool>,
        now: impl FnOnce() -> Instant,
    ) -> bool {
        let (limit, scope) = match (self.mode, self.spin) {
            (Mode::Off, _) => return false,
            (Mode::Fixed(limit), _) => (limit, Scope::Socket),
            (Mode::Adaptive, Some(spin)) => (SPIN_MAX, spin.scope),
            (Mode::Adaptive, None) => {
                let before = self.moved_len_lately - self.moved_len_lately / MOVED_LEN_DECAY;
                let amid = if idle.is_amid_message { LARGE_LEN } else { 0 };
                self.moved_len_lately = std::mem::take(&mut self.moved_len).max(before).max(amid);
                let is_own = idle.is_alone
                    || thread_poller::is_one_of_few(idle.identity)
                    || !Heuristic::ThreadPoller.is_on();
                let scope = if is_own { Scope::Socket } else { Scope::Thread };
                if self.moved_len_lately > MOVED_LEN_MAX
                    || !self.pace.is_close()
                    || !(idle.expects)()
                    || !self.with_backoff(scope, SpinBackoff::is_due)
                {
                    return false;
                }
                (SPIN_MAX, scope)
            }
        };
        self.spins_on(idle.identity, limit, scope, now())
    }

    /// Ends the spin without counting it as success or waste.
    pub(crate) fn stop(&mut self) {
        if self.end_spin().is_some_and(|spin| spin.scope == Scope::Thread) {
            thread_poller::end();
        }
    }

    fn spins_on(&mut self, identity: usize, limit: Duration, scope: Scope, now: Instant) -> bool {
        let started = Spin { since: now, tried_at: now, scope };
        let read = match scope {
            Scope::Socket => Some(false),
            Scope::Thread => thread_poller::go_on(identity, self.spin.is_none(), now),
        };
        let Some(has_read) = read else {
            // Another connection spins for the thread.
            self.spin = None;
            return false;
        };
        let Some(spin) = &mut self.spin else {
            self.spin = Some(started);
            return true;
        };
        if has_read {
            if std::mem::replace(spin, started).has_succeeded() {
                self.with_backoff(scope, SpinBackoff::note_success);
            }
            return true;
        }
        add_wasted(nanoseconds(spin.tried_at.into(), now.into()));
        spin.tried_at = now;
        if now.saturating_duration_since(spin.since) < limit {
            return true;
        }
        if scope == Scope::Thread {
            thread_poller::end();
        }
        self.end_spin();
        self.with_backoff(scope, SpinBackoff::note_wasted);
        false
    }

    fn with_backoff<R>(&mut self, scope: Scope, change: impl FnOnce(&mut SpinBackoff) -> R) -> R {
        match scope {
            Scope::Socket => change(&mut self.backoff),
            Scope::Thread => thread_poller::with_backoff(change),
        }
    }

    /// Lets the other tasks of the thread run, and the runtime poll from time to time, before the task is polled again.
    pub(crate) fn yield_between_tries(&mut self, cx: &mut Context<'_>) {
        if self.tries_per_yield == 0 {
            self.tries_per_yield = match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
                Ok(RuntimeFlavor::CurrentThread) => TRIES_PER_YIELD,
                // On several threads, a task that wakes itself makes the runtime wake another thread to share the
                // work.
                _ => 1,
            };
        }
        self.tries = self.tries.wrapping_add(1);
        let is_for_thread = self.spin.is_some_and(|spin| spin.scope == Scope::Thread);
        if is_for_thread || self.tries.is_multiple_of(self.tries_per_yield) {
            let _: Poll<()> = yield_now(cx);
        } else {
            cx.waker().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSE: Duration = Duration::from_micros(50);

    /// A connection with a clock of its own.
    struct Tested {
        busy_poll: BusyPoll,
        started: Instant,
        now: Instant,
        identity: usize,
        is_alone: bool,
    }

    impl Tested {
        fn new(duration: Option<Duration>) -> Self {
            let now = Instant::now();
            Self { busy_poll: BusyPoll::new(duration), started: now, now, identity: 1, is_alone: true }
        }

        /// A connection with enough close reads to spin.
        fn close() -> Self {
            let mut tested = Self::new(None);
            for _ in 0..=NEW_READS {
                tested.reads_after(CLOSE);
            }
            tested
        }

        /// One of several connections of this thread.
        fn close_beside_others(identity: usize) -> Self {
            Self { identity, is_alone: false, ..Self::close() }
        }

        fn reads_after(&mut self, gap: Duration) {
            self.now += gap;
            self.busy_poll.note_read(40, self.now.into());
        }

        fn tries_again_if(&mut self, expects: bool) -> bool {
            let (identity, is_alone, now) = (self.identity, self.is_alone, self.now);
            let idle = Idle { identity, is_amid_message: false, is_alone, expects: || expects };
            self.busy_poll.tries_again(idle, || now)
        }

        fn tries_again(&mut self) -> bool {
            self.tries_again_if(true)
        }

        fn waste_spin(&mut self) {
            self.now += SPIN_MAX;
            assert!(!self.tries_again());
        }
    }

    /// Returns how many of `sleeps` sleeps were preceded by a spin. Data arrives after each `gap`, during the spin if
    /// `finds` returns true.
    fn spins(gap: Duration, sleeps: u32, finds: impl Fn(u32) -> bool) -> u32 {
        let mut tested = Tested::new(None);
        let mut spins = 0;
        for sleep in 0..sleeps {
            tested.now = tested.started + gap * sleep;
            tested.reads_after(Duration::ZERO);
            if tested.tries_again() {
                spins += 1;
                if !finds(sleep) {
                    tested.waste_spin();
                }
            }
        }
        spins
    }

    #[test]
    fn spins_that_succeed_go_on() {
        assert_eq!(spins(CLOSE, 1000, |_| true), 1000 - NEW_READS);
        assert!(spins(CLOSE, 1000, |sleep| sleep % 4 != 0) > 200, "one in four is wasted");
    }

    #[test]
    fn wasted_spins_become_rare() {
        assert!((5..40).contains(&spins(CLOSE, 100_000, |_| false)));
        assert_eq!(spins(Duration::from_millis(1), 1000, |_| true), 0, "reads are far apart");
    }

    #[test]
    fn new_connection_does_not_spin() {
        let mut tested = Tested::new(None);
        for _ in 0..NEW_READS {
            tested.reads_after(CLOSE);
            // The second read of a poll does not count.
            tested.reads_after(Duration::ZERO);
            assert!(!tested.tries_again());
        }
        tested.reads_after(CLOSE);
        assert!(!tested.tries_again_if(false), "nothing is expected");
        assert!(tested.tries_again());
    }

    #[test]
    fn connection_with_large_messages_does_not_spin() {
        let mut tested = Tested::close();
        tested.busy_poll.note_wrote(64 * 1024);
        assert!(!tested.tries_again());
        for round in 0..4 {
            tested.reads_after(CLOSE);
            assert!(!tested.tries_again(), "there was a large one {round} small ones ago");
        }
        for _ in 4..20 {
            tested.reads_after(CLOSE);
            tested.tries_again();
        }
        assert!(tested.busy_poll.is_spinning(), "the large one is forgotten");
    }

    #[test]
    fn write_ends_a_spin_without_judging_it() {
        let mut tested = Tested::close();
        tested.busy_poll.backoff.next_skips = 8;
        assert!(tested.tries_again());
        tested.busy_poll.note_wrote(40);
        assert_eq!((tested.busy_poll.backoff.next_skips, tested.busy_poll.backoff.skips_left), (8, 0));
        assert!(tested.tries_again());
        tested.reads_after(CLOSE);
        assert_eq!(tested.busy_poll.backoff.next_skips, 4);
    }

    /// Two connections of a thread that has not spun yet.
    fn two_beside_others() -> (Tested, Tested) {
        thread_poller::end();
        thread_poller::with_backoff(|backoff| *backoff = SpinBackoff::NEW);
        let (one, mut other) = (Tested::close_beside_others(1), Tested::close_beside_others(2));
        other.now = one.now;
        (one, other)
    }

    fn next_skips_of_thread() -> u32 {
        thread_poller::with_backoff(|backoff| backoff.next_skips)
    }

    #[test]
    fn one_connection_spins_for_its_thread() {
        let (mut one, mut other) = two_beside_others();
        assert!(one.tries_again());
        assert!(!other.tries_again(), "another one spins");
        one.now += Duration::from_nanos(1);
        assert!(one.tries_again());

        // A read of the other is a success, and the spin starts again.
        thread_poller::with_backoff(|backoff| backoff.next_skips = 8);
        one.now += SPIN_MAX;
        other.reads_after(CLOSE);
        assert!(one.tries_again());
        assert_eq!(next_skips_of_thread(), 4);

        one.waste_spin();
        assert_eq!(next_skips_of_thread(), 8);
        // A spin wasted for one connection was wasted for all, including later ones.
        for _ in 0..8 {
            assert!(!other.tries_again());
        }
        assert!(Tested::close_beside_others(3).tries_again(), "nobody else does now");
    }

    #[test]
    fn bytes_available_before_the_spin_are_no_success() {
        let (mut one, mut other) = two_beside_others();
        thread_poller::with_backoff(|backoff| backoff.next_skips = 8);
        assert!(one.tries_again());
        other.reads_after(CLOSE);
        assert!(one.tries_again());
        assert_eq!(next_skips_of_thread(), 8);
    }

    #[test]
    fn stale_poller_is_replaced() {
        let (mut gone, mut other) = two_beside_others();
        assert!(gone.tries_again());
        // The connection has moved to another thread, or is over.
        other.now += Duration::from_millis(2);
        gone.now = other.now;
        assert!(other.tries_again());
        assert!(!gone.tries_again(), "it has come back");
        assert!(other.tries_again());
    }

    #[test]
    fn fixed_duration_is_kept() {
        let mut never = Tested { busy_poll: BusyPoll::new(Some(Duration::ZERO)), ..Tested::close() };
        for _ in 0..=NEW_READS {
            never.reads_after(CLOSE);
        }
        assert!(!never.tries_again());
        let mut always = Tested::new(Some(Duration::from_millis(1)));
        assert!(always.tries_again_if(false));
        always.now += Duration::from_micros(999);
        assert!(always.tries_again_if(false));
        always.now += Duration::from_micros(1);
        assert!(!always.tries_again_if(false));
    }
}
