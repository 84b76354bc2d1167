//! Lets workers have calls when these are due.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Semaphore;

/// Starts that are due and that no worker has taken. Beyond it they are dropped, and counted.
const WAITING_MAX: usize = 1 << 20;

/// Starts that are due.
#[derive(Debug)]
pub(crate) struct Due {
    /// As many permits as there are starts in `waiting`.
    permits: Semaphore,
    waiting: Mutex<Waiting>,
    /// Workers that have done what they took.
    done: AtomicU64,
    workers: u64,
    /// Starts that were to be earlier are not counted, ns of the run's clock.
    from_ns: u64,
    /// How long the clock was looked at.
    spun_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The number of each start, and when it was to be, ns of the run's clock.
    starts: VecDeque<(u64, u64)>,
    /// Workers have taken so many.
    taken: u64,
    dropped: u64,
    /// Those that were due when all workers were at work, or soon would be.
    held_back: u64,
    /// Nobody takes any more.
    is_closed: bool,
}

impl Due {
    /// For so many workers.
    pub(crate) fn new(from_ns: u64, workers: u32) -> Self {
        Self {
            permits: Semaphore::new(0),
            waiting: Mutex::default(),
            done: AtomicU64::new(0),
            workers: u64::from(workers),
            from_ns,
            spun_ns: AtomicU64::new(0),
        }
    }

    /// The next start, once it is due: its number and its time. `None` when there are no more.
    pub(crate) async fn next(&self) -> Option<(u64, u64)> {
        self.permits.acquire().await.ok()?.forget();
        let mut waiting = self.lock();
        let start = waiting.starts.pop_front();
        waiting.taken += u64::from(start.is_some());
        start
    }

    /// What a worker has taken is done.
    pub(crate) fn done(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    /// Starts that are done.
    pub(crate) fn ended(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Whether all starts that are due have been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().starts.is_empty()
    }

    /// There are no more: what waits is dropped.
    pub(crate) fn close(&self) {
        self.permits.close();
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let counted = waiting.starts.iter().filter(|(_, at_ns)| *at_ns >= self.from_ns).count();
        waiting.dropped += counted as u64;
        waiting.starts.clear();
    }

    /// Starts that are due and that nobody has taken yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.lock().starts.len() as u64
    }

    /// Starts that were due and never taken.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Starts that were due when as many were under way as there are workers.
    pub(crate) fn held_back(&self) -> u64 {
        self.lock().held_back
    }

    /// How long the clock was looked at for the next start: processor time that says nothing of calls.
    pub(crate) fn spun(&self) -> Duration {
        Duration::from_nanos(self.spun_ns.load(Relaxed))
    }

    fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// These are due. Those for which there is no room, and those that nobody takes any more, are dropped.
    fn push(&self, starts: &[(u64, u64)]) {
        let mut waiting = self.lock();
        let under_way = waiting.taken.saturating_sub(self.ended());
        let mut pushed = 0;
        for &start in starts {
            let counts = u64::from(start.1 >= self.from_ns);
            let has_room = under_way + (waiting.starts.len() as u64) < self.workers;
            if !waiting.is_closed && !has_room {
                waiting.held_back += counts;
            }
            if !waiting.is_closed && waiting.starts.len() < WAITING_MAX {
                waiting.starts.push_back(start);
                pushed += 1;
            } else {
                waiting.dropped += counts;
            }
        }
        drop(waiting);
        self.permits.add_permits(pushed);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock of a run, and what wakes at its times.
pub(crate) trait Clock: Sync {
    /// ns since it began.
    fn now_ns(&self) -> u64;

    /// Waits for so long.
    fn wait(&self, ns: u64) -> impl Future<Output = io::Result<()>> + Send;
}

/// The machine's, with the kernel's timer.
pub(crate) struct RunClock {
    base: Instant,
    timer: Timer,
}

impl RunClock {
    /// Its zero is `base`.
    pub(crate) fn new(base: Instant) -> io::Result<Self> {
        Ok(Self { base, timer: Timer::new()? })
    }
}

impl Clock for RunClock {
    fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    fn wait(&self, ns: u64) -> impl Future<Output = io::Result<()>> + Send {
        self.timer.wait(ns)
    }
}

/// Makes each start, which has a number, due at its time, until `until_ns` of the run's clock, until there are no more,
/// or until nobody takes any.
///
/// The runtime's own timers tick once in a millisecond, which at 10,000 calls a second would be ten at once.
/// `work` is another number whenever a flow has begun or ended.
pub(crate) async fn pace(
    due: &Due,
    starts: impl Iterator<Item = (u64, u64)>,
    clock: &impl Clock,
    until_ns: u64,
    work: impl Fn() -> u64,
) -> io::Result<()> {
    /// Starts that are made due at once, at the most, so that others have their turn.
    const AT_ONCE: usize = 1024;
    /// The timer is set so much too early, since an idle processor takes as long to wake; for the rest the clock is
    /// looked at.
    const SPIN_NS_MAX: u64 = 60_000;
    /// Where starts lie closer together no timer is set: it would take longer than it saves.
    const APART_NS_MIN: u64 = 200_000;
    let mut starts = starts.take_while(|&(_, at_ns)| at_ns < until_ns).peekable();
    let mut ready = Vec::with_capacity(AT_ONCE);
    let mut last = 0;
    while let Some(&(_, next)) = starts.peek() {
        let now_ns = clock.now_ns();
        if next > now_ns {
            if due.is_closed() {
                return Ok(());
            }
            let left_ns = next - now_ns;
            if left_ns > SPIN_NS_MAX && next - last >= APART_NS_MIN {
                clock.wait(left_ns - SPIN_NS_MAX).await?;
            } else {
                // Others have their turn meanwhile.
                let before = work();
                tokio::task::yield_now().await;
                if work() == before {
                    due.spun_ns.fetch_add(clock.now_ns() - now_ns, Relaxed);
                }
            }
            continue;
        }
        ready.clear();
        while ready.len() < AT_ONCE
            && let Some(start) = starts.next_if(|&(_, at_ns)| at_ns <= now_ns)
        {
            ready.push(start);
            last = start.1;
        }
        due.push(&ready);
        if ready.len() == AT_ONCE {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Sleeps until this time, by the kernel's timer; where there is none, to a millisecond.
pub(crate) async fn sleep_until(time: Instant) {
    let left = time.saturating_duration_since(Instant::now());
    let slept = match Timer::new() {
        Ok(timer) => timer.wait(left.as_nanos() as u64).await,
        Err(error) => Err(error),
    };
    if slept.is_err() {
        tokio::time::sleep_until(time.into()).await;
    }
}

/// The kernel's timer, exact to some microseconds.
struct Timer(AsyncFd<Descriptor>);

/// As tokio asks for it.
struct Descriptor(TimerFd);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Timer {
    fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: the timer owns its descriptor, which is open and the same until the timer is dropped; `AsyncFd` owns
        // the timer.
        let registered = unsafe { AsyncFd::register_with_interest(Descriptor(timer), Interest::READABLE) };
        Ok(Self(registered?))
    }

    async fn wait(&self, ns: u64) -> io::Result<()> {
        let after = TimeSpec::nanoseconds(i64::try_from(ns.max(1)).unwrap_or(i64::MAX));
        self.0.get_ref().0.set(Expiration::OneShot(after), TimerSetTimeFlags::empty())?;
        loop {
            let mut ready = self.0.readable().await?;
            match self.0.get_ref().0.wait() {
                Ok(()) => return Ok(()),
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{coop::unconstrained, yield_now};

    use super::*;
    use crate::arrivals::{Arrivals, Spacing};
    use crate::schedule::Schedule;

    /// It goes on by a microsecond when it is read, and when it is waited for, by 50 µs more than was asked for, which
    /// an idle processor takes to wake.
    struct Simulated(AtomicU64);

    impl Clock for Simulated {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(1000, Relaxed)
        }

        async fn wait(&self, ns: u64) -> io::Result<()> {
            // What is ready now runs now.
            yield_now().await;
            self.0.fetch_add(ns + 50_000, Relaxed);
            Ok(())
        }
    }

    /// When starts are to begin and when they do, ns, by a clock that no other program can hold up.
    async fn begun(schedule: &Schedule, seconds: u64) -> Vec<(u64, u64)> {
        let (due, clock) = (Due::new(0, 1), Simulated(AtomicU64::new(0)));
        let arrivals = Arrivals::new(schedule.clone(), Spacing::Constant, 0);
        let pacing = async {
            pace(&due, (0..).zip(arrivals), &clock, seconds * SECOND, || 0).await.unwrap();
            yield_now().await;
            due.close();
        };
        let taking = unconstrained(async {
            let mut begun = Vec::new();
            while let Some((_, at_ns)) = due.next().await {
                begun.push((at_ns, clock.0.load(Relaxed)));
            }
            begun
        });
        tokio::join!(pacing, taking).1
    }

    const SECOND: u64 = 1_000_000_000;

    /// Not over the whole run alone: a ramp that lagged behind and caught up at its end would have as many calls.
    #[tokio::test]
    async fn each_second_has_the_calls_of_its_part_of_the_schedule() {
        for (text, seconds) in [
            ("100..2000/4s", 4),
            ("100..5000/60s", 62),
            ("5000..100/4s", 5),
            ("0..1000/2s", 3),
            ("200..1000+200/1s", 6),
            ("300/2s,4000..400/3s,50k/1s", 6),
        ] {
            let schedule: Schedule = text.parse().unwrap();
            let begun = begun(&schedule, seconds).await;
            for second in 0..seconds {
                let within = |at_ns: u64| at_ns / SECOND == second;
                let count = begun.iter().filter(|(_, began_ns)| within(*began_ns)).count() as f64;
                let asked = schedule.begun_after((second + 1) as f64) - schedule.begun_after(second as f64);
                // Of few calls one more or less is more than a hundredth: starts lie between two seconds.
                let off = (count - asked).abs();
                assert!(off <= (asked / 100.0).max(1.5), "{text}: {count} of {asked} in second {second}");
            }
            let late = begun.iter().map(|(at_ns, began_ns)| began_ns.checked_sub(*at_ns).unwrap());
            let latest = late.max().unwrap();
            assert!(latest < 100_000, "{text}: {latest} ns late");
        }
    }

    #[tokio::test]
    async fn starts_are_due_at_their_times_and_in_their_order() {
        let due = Due::new(0, 1);
        let arrivals = Arrivals::new("1000".parse().unwrap(), Spacing::Constant, 0);
        let base = Instant::now();
        pace(&due, (0..).zip(arrivals), &RunClock::new(base).unwrap(), 50_000_000, || 0).await.unwrap();
        assert!(base.elapsed().as_nanos() >= 49_000_000, "the last is due at 49 ms");
        for number in 0..40 {
            assert_eq!(due.next().await, Some((number, number * 1_000_000)));
        }
        due.close();
        assert_eq!(due.next().await, None);
        assert_eq!(due.dropped(), 10);
    }

    /// As after an interrupt: what was due is dropped, and what comes later is none of the run.
    #[tokio::test]
    async fn pacing_ends_when_nobody_takes_starts() {
        let due = Due::new(0, 1);
        let arrivals = Arrivals::new("1000".parse().unwrap(), Spacing::Constant, 0);
        let closing = async {
            due.next().await;
            due.close();
            due.dropped()
        };
        let clock = RunClock::new(Instant::now()).unwrap();
        let pacing = pace(&due, (0..).zip(arrivals), &clock, u64::MAX, || 0);
        let (paced, dropped) = tokio::join!(pacing, closing);
        paced.unwrap();
        assert!(due.is_empty());
        assert!(due.dropped() >= dropped);
    }

    #[tokio::test]
    async fn a_start_that_nobody_takes_waits_and_then_is_dropped() {
        let due = Due::new(0, 1);
        due.push(&vec![(0, 0); WAITING_MAX + 3]);
        assert_eq!(due.dropped(), 3);
        due.close();
        assert_eq!(due.dropped(), WAITING_MAX as u64 + 3);
    }

    #[test]
    fn what_is_dropped_of_the_warm_up_is_not_counted() {
        let due = Due::new(20, 1);
        due.push(&[(0, 0), (1, 10), (2, 20), (3, 30)]);
        due.close();
        assert_eq!((due.dropped(), due.held_back()), (2, 2));
    }

    #[tokio::test]
    async fn starts_that_find_all_workers_at_work_are_held_back() {
        let due = Due::new(0, 2);
        // Both workers are free, and one more start waits.
        due.push(&[(0, 0), (1, 0), (2, 0)]);
        assert_eq!(due.held_back(), 1);
        for number in 0..2 {
            assert_eq!(due.next().await, Some((number, 0)));
        }
        // One has come back, and will take the one that waits.
        due.done();
        due.push(&[(3, 1)]);
        assert_eq!(due.held_back(), 2);
        for number in 2..4 {
            assert_eq!(due.next().await, Some((number, number / 3)));
            due.done();
        }
        due.done();
        due.push(&[(4, 2), (5, 2)]);
        assert_eq!(due.held_back(), 2, "both are free again");
        due.close();
        due.push(&[(6, 3)]);
        assert_eq!((due.held_back(), due.dropped()), (2, 3));
    }
}
