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
    /// Starts that were to be earlier are not counted, ns of the run's clock.
    from_ns: u64,
    /// How long the clock was looked at.
    spun_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The number of each start, and when it was to be, ns of the run's clock.
    starts: VecDeque<(u64, u64)>,
    dropped: u64,
    /// Nobody takes any more.
    is_closed: bool,
}

impl Due {
    pub(crate) fn new(from_ns: u64) -> Self {
        Self { permits: Semaphore::new(0), waiting: Mutex::default(), from_ns, spun_ns: AtomicU64::new(0) }
    }

    /// The next start, once it is due: its number and its time. `None` when there are no more.
    pub(crate) async fn next(&self) -> Option<(u64, u64)> {
        self.permits.acquire().await.ok()?.forget();
        self.lock().starts.pop_front()
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
        let mut taken = 0;
        for &start in starts {
            if !waiting.is_closed && waiting.starts.len() < WAITING_MAX {
                waiting.starts.push_back(start);
                taken += 1;
            } else {
                waiting.dropped += u64::from(start.1 >= self.from_ns);
            }
        }
        drop(waiting);
        self.permits.add_permits(taken);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes each start, which has a number, due at its time, until `until_ns` of the run's clock, whose zero is `base`,
/// until there are no more, or until nobody takes any.
///
/// The runtime's own timers tick once in a millisecond, which at 10,000 calls a second would be ten at once.
/// `work` is another number whenever a call has begun or ended.
pub(crate) async fn pace(
    due: &Due,
    starts: impl Iterator<Item = (u64, u64)>,
    base: Instant,
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
    let timer = Timer::new()?;
    let mut starts = starts.take_while(|&(_, at_ns)| at_ns < until_ns).peekable();
    let mut ready = Vec::with_capacity(AT_ONCE);
    let mut last = 0;
    while let Some(&(_, next)) = starts.peek() {
        let now_ns = base.elapsed().as_nanos() as u64;
        if next > now_ns {
            if due.is_closed() {
                return Ok(());
            }
            let left_ns = next - now_ns;
            if left_ns > SPIN_NS_MAX && next - last >= APART_NS_MIN {
                timer.wait(left_ns - SPIN_NS_MAX).await?;
            } else {
                // Others have their turn meanwhile.
                let before = work();
                tokio::task::yield_now().await;
                if work() == before {
                    due.spun_ns.fetch_add(base.elapsed().as_nanos() as u64 - now_ns, Relaxed);
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
    use super::*;
    use crate::arrivals::{Arrivals, Spacing};

    #[tokio::test]
    async fn starts_are_due_at_their_times_and_in_their_order() {
        let due = Due::new(0);
        let arrivals = Arrivals::new("1000".parse().unwrap(), Spacing::Constant, 0);
        let base = Instant::now();
        pace(&due, (0..).zip(arrivals), base, 50_000_000, || 0).await.unwrap();
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
        let due = Due::new(0);
        let arrivals = Arrivals::new("1000".parse().unwrap(), Spacing::Constant, 0);
        let closing = async {
            due.next().await;
            due.close();
            due.dropped()
        };
        let pacing = pace(&due, (0..).zip(arrivals), Instant::now(), u64::MAX, || 0);
        let (paced, dropped) = tokio::join!(pacing, closing);
        paced.unwrap();
        assert!(due.is_empty());
        assert!(due.dropped() >= dropped);
    }

    #[tokio::test]
    async fn a_start_that_nobody_takes_waits_and_then_is_dropped() {
        let due = Due::new(0);
        due.push(&vec![(0, 0); WAITING_MAX + 3]);
        assert_eq!(due.dropped(), 3);
        due.close();
        assert_eq!(due.dropped(), WAITING_MAX as u64 + 3);
    }

    #[test]
    fn what_is_dropped_of_the_warm_up_is_not_counted() {
        let due = Due::new(20);
        due.push(&[(0, 0), (1, 10), (2, 20), (3, 30)]);
        due.close();
        assert_eq!(due.dropped(), 2);
    }
}
