//! Hands calls to workers when they are due.

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

/// Maximum due starts not yet taken by a worker. More are dropped, and counted.
const WAITING_MAX: usize = 1 << 20;

/// Queue of due starts.
#[derive(Debug)]
pub(crate) struct Due {
    /// One permit for each start in `waiting`.
    permits: Semaphore,
    waiting: Mutex<Waiting>,
    /// Starts that workers have completed.
    done: AtomicU64,
    workers: u64,
    /// Earlier starts are not counted; ns of the run's clock.
    from_ns: u64,
    /// Time spent spinning on the clock.
    spun_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Number and due time of each start, in ns of the run's clock.
    starts: VecDeque<(u64, u64)>,
    /// Starts taken by workers.
    taken: u64,
    dropped: u64,
    /// Starts due while no worker was free for them.
    delayed: u64,
    /// Whether no more starts are taken.
    is_closed: bool,
}

impl Due {
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

    /// Waits for the next due start and returns its number and time. Returns `None` when there are no more.
    pub(crate) async fn next(&self) -> Option<(u64, u64)> {
        self.permits.acquire().await.ok()?.forget();
        let mut waiting = self.lock();
        let start = waiting.starts.pop_front();
        waiting.taken += u64::from(start.is_some());
        start
    }

    /// Marks one taken start as completed.
    pub(crate) fn done(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    /// Returns the number of completed starts.
    pub(crate) fn ended(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Returns whether all due starts have been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().starts.is_empty()
    }

    /// Ends the queue and drops the waiting starts.
    pub(crate) fn close(&self) {
        self.permits.close();
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let counted = waiting.starts.iter().filter(|(_, at_ns)| *at_ns >= self.from_ns).count();
        waiting.dropped += counted as u64;
        waiting.starts.clear();
    }

    /// Returns the number of due starts not yet taken.
    pub(crate) fn waiting(&self) -> u64 {
        self.lock().starts.len() as u64
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Returns the number of starts that were due while all workers were busy.
    pub(crate) fn delayed(&self) -> u64 {
        self.lock().delayed
    }

    /// Returns the time spent spinning for the next start, which is no cost of calls.
    pub(crate) fn spun(&self) -> Duration {
        Duration::from_nanos(self.spun_ns.load(Relaxed))
    }

    fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Adds due starts. Starts beyond the limit, or after the queue was closed, are dropped.
    fn push(&self, starts: &[(u64, u64)]) {
        let mut waiting = self.lock();
        let in_flight = waiting.taken.saturating_sub(self.ended());
        let mut pushed = 0;
        for &start in starts {
            let counts = u64::from(start.1 >= self.from_ns);
            let has_room = in_flight + (waiting.starts.len() as u64) < self.workers;
            if !waiting.is_closed && !has_room {
                waiting.delayed += counts;
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

/// Clock and timer of a run.
pub(crate) trait Clock: Sync {
    /// Returns the ns since the clock began.
    fn now_ns(&self) -> u64;

    fn wait(&self, ns: u64) -> impl Future<Output = io::Result<()>> + Send;
}

/// The system clock with a kernel timer.
pub(crate) struct RunClock {
    base: Instant,
    timer: Timer,
}

impl RunClock {
    /// Creates a clock that starts at `base`.
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

/// Makes each numbered start due at its time, until `until_ns` of the run's clock, the last start, or the end of the
/// queue.
///
/// The runtime's own timers tick once per millisecond, which at 10,000 calls/s would be ten at once. The value of
/// `work` changes whenever a flow has started or finished.
pub(crate) async fn pace(
    due: &Due,
    starts: impl Iterator<Item = (u64, u64)>,
    clock: &impl Clock,
    until_ns: u64,
    work: impl Fn() -> u64,
) -> io::Result<()> {
    /// Maximum starts made due before yielding to other tasks.
    const BATCH_STARTS_MAX: usize = 1024;
    /// Lead of the timer, since an idle processor takes this long to wake. The rest is spun on the clock.
    const SPIN_NS_MAX: u64 = 60_000;
    /// No timer is set for starts closer than this: setting it would take longer than it saves.
    const TIMER_NS_MIN: u64 = 200_000;
    let mut starts = starts.take_while(|&(_, at_ns)| at_ns < until_ns).peekable();
    let mut ready = Vec::with_capacity(BATCH_STARTS_MAX);
    let mut last = 0;
    while let Some(&(_, next)) = starts.peek() {
        let now_ns = clock.now_ns();
        if next > now_ns {
            if due.is_closed() {
                return Ok(());
            }
            let left_ns = next - now_ns;
            if left_ns > SPIN_NS_MAX && next - last >= TIMER_NS_MIN {
                clock.wait(left_ns - SPIN_NS_MAX).await?;
            } else {
                // Run other tasks meanwhile.
                let before = work();
                tokio::task::yield_now().await;
                if work() == before {
                    due.spun_ns.fetch_add(clock.now_ns() - now_ns, Relaxed);
                }
            }
            continue;
        }
        ready.clear();
        while ready.len() < BATCH_STARTS_MAX
            && let Some(start) = starts.next_if(|&(_, at_ns)| at_ns <= now_ns)
        {
            ready.push(start);
            last = start.1;
        }
        due.push(&ready);
        if ready.len() == BATCH_STARTS_MAX {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Sleeps until `time` with a kernel timer. Without one, the resolution is 1 ms.
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

/// A kernel timer, exact to a few microseconds.
struct Timer(AsyncFd<Descriptor>);

/// Wrapper for tokio's traits.
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
        // SAFETY: the timer owns its descriptor, which stays open and the same until the timer is dropped; `AsyncFd`
        // owns the timer.
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

    /// Advances by 1 µs per reading, and oversleeps each wait by 50 µs, the time an idle processor takes to wake.
    struct Simulated(AtomicU64);

    impl Clock for Simulated {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(1000, Relaxed)
        }

        async fn wait(&self, ns: u64) -> io::Result<()> {
            // Run all ready tasks first.
            yield_now().await;
            self.0.fetch_add(ns + 50_000, Relaxed);
            Ok(())
        }
    }

    /// Returns due and actual times of all starts in ns, by a clock that other programs cannot delay.
    async fn actual_starts(schedule: &Schedule, seconds: u64) -> Vec<(u64, u64)> {
        let (due, clock) = (Due::new(0, 1), Simulated(AtomicU64::new(0)));
        let arrivals = Arrivals::new(schedule.clone(), Spacing::Constant, 0);
        let pacing = async {
            pace(&due, (0..).zip(arrivals), &clock, seconds * SECOND, || 0).await.unwrap();
            yield_now().await;
            due.close();
        };
        let taking = unconstrained(async {
            let mut actual_starts = Vec::new();
            while let Some((_, at_ns)) = due.next().await {
                actual_starts.push((at_ns, clock.0.load(Relaxed)));
            }
            actual_starts
        });
        tokio::join!(pacing, taking).1
    }

    const SECOND: u64 = 1_000_000_000;

    /// Checks each second, since a ramp that lags and catches up at its end has the same total.
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
            let actual_starts = actual_starts(&schedule, seconds).await;
            for second in 0..seconds {
                let within = |at_ns: u64| at_ns / SECOND == second;
                let count = actual_starts.iter().filter(|(_, began_ns)| within(*began_ns)).count() as f64;
                let asked =
                    schedule.starts_before((second + 1) as f64) - schedule.starts_before(second as f64);
                // For few calls, a start at the edge of a second is more than 1 %.
                let off = (count - asked).abs();
                assert!(off <= (asked / 100.0).max(1.5), "{text}: {count} of {asked} in second {second}");
            }
            let late = actual_starts.iter().map(|(at_ns, began_ns)| began_ns.checked_sub(*at_ns).unwrap());
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

    /// Simulates an interrupt: due starts are dropped, and later ones are not part of the run.
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
    async fn untaken_start_waits_then_is_dropped() {
        let due = Due::new(0, 1);
        due.push(&vec![(0, 0); WAITING_MAX + 3]);
        assert_eq!(due.dropped(), 3);
        due.close();
        assert_eq!(due.dropped(), WAITING_MAX as u64 + 3);
    }

    #[test]
    fn dropped_starts_of_warm_up_are_not_counted() {
        let due = Due::new(20, 1);
        due.push(&[(0, 0), (1, 10), (2, 20), (3, 30)]);
        due.close();
        assert_eq!((due.dropped(), due.delayed()), (2, 2));
    }

    #[tokio::test]
    async fn starts_are_delayed_while_all_workers_are_busy() {
        let due = Due::new(0, 2);
        // Both workers are free, and a third start waits.
        due.push(&[(0, 0), (1, 0), (2, 0)]);
        assert_eq!(due.delayed(), 1);
        for number in 0..2 {
            assert_eq!(due.next().await, Some((number, 0)));
        }
        // One worker is free again, and will take the waiting start.
        due.done();
        due.push(&[(3, 1)]);
        assert_eq!(due.delayed(), 2);
        for number in 2..4 {
            assert_eq!(due.next().await, Some((number, number / 3)));
            due.done();
        }
        due.done();
        due.push(&[(4, 2), (5, 2)]);
        assert_eq!(due.delayed(), 2, "both are free again");
        due.close();
        due.push(&[(6, 3)]);
        assert_eq!((due.delayed(), due.dropped()), (2, 3));
    }
}
