//! Counters and measurements of a link, in constant memory.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::direction::Direction;
use crate::stats::{ConnectionCounts, DirectionStats, Distribution, Idle, Thread};

/// Maximum recorded time: one hour. Longer times are recorded as this.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
/// Significant digits of histograms: a precision of 1 %.
const DIGITS: u8 = 2;

/// Tracks when nothing is in transit: on the wire, in a direction or in a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleTracker {
    in_transit: usize,
    since: Instant,
}

impl IdleTracker {
    pub(crate) fn new(now: Instant) -> Self {
        Self { in_transit: 0, since: now }
    }

    /// Adds arrived bytes. Returns the start of the gap that they end, if any.
    fn add(&mut self, bytes: usize) -> Option<Instant> {
        self.in_transit += bytes;
        (self.in_transit == bytes).then_some(self.since)
    }

    /// Removes bytes that were forwarded or dropped.
    fn remove(&mut self, bytes: usize, now: Instant) {
        self.in_transit -= bytes;
        if self.in_transit == 0 {
            self.since = now;
        }
    }

    /// Returns the length of the current gap within the window, or zero if bytes are in transit.
    fn idle_time(&self, window: Instant, now: Instant) -> Duration {
        if self.in_transit > 0 {
            return Duration::ZERO;
        }
        now.saturating_duration_since(self.since.max(window))
    }
}

/// Completed gaps.
#[derive(Debug)]
struct Gaps {
    lengths: Histogram<u64>,
    total: Duration,
}

impl Gaps {
    fn new() -> Self {
        Self { lengths: empty_histogram(), total: Duration::ZERO }
    }

    fn record(&mut self, since: Instant, window: Instant, now: Instant) {
        let length = now.saturating_duration_since(since.max(window));
        self.lengths.saturating_record(length.as_nanos() as u64);
        self.total += length;
    }

    fn idle(&self, idle_time: Duration, of: Duration) -> Idle {
        let idle = self.total + idle_time;
        Idle {
            idle_ns: idle.as_nanos() as u64,
            idle_share: if of.is_zero() { 0.0 } else { (idle.as_secs_f64() / of.as_secs_f64()).min(1.0) },
            gaps_ns: Distribution::of(&self.lengths),
        }
    }
}

/// Everything counted and measured since the window started.
#[derive(Debug)]
pub(crate) struct Observer {
    window: Instant,
    pub(crate) counts: ConnectionCounts,
    directions: [DirectionCounts; 2],
    wire: IdleTracker,
    wire_gaps: Gaps,
    connection_gaps: Gaps,
    /// Total time that connections closed since were open in the window.
    connections_open: Duration,
    lateness: Histogram<u64>,
    /// Time that the thread slept.
    pub(crate) slept: Duration,
    cpu_at_window: Duration,
}

#[derive(Debug)]
struct DirectionCounts {
    bytes: u64,
    chunks: u64,
    writes: u64,
    buffered_max: usize,
    idle: IdleTracker,
    gaps: Gaps,
}

impl DirectionCounts {
    fn new(idle: IdleTracker) -> Self {
        Self { bytes: 0, chunks: 0, writes: 0, buffered_max: 0, idle, gaps: Gaps::new() }
    }
}

impl Observer {
    pub(crate) fn new(now: Instant) -> Self {
        let idle = IdleTracker::new(now);
        Self::starting_at(now, ConnectionCounts::default(), [idle; 2], idle)
    }

    /// Starts a new window. Bytes in transit and open connections remain known.
    pub(crate) fn reset(&mut self, now: Instant) {
        let counts = ConnectionCounts { open: self.counts.open, ..ConnectionCounts::default() };
        let trackers = [self.directions[0].idle, self.directions[1].idle];
        *self = Self::starting_at(now, counts, trackers, self.wire);
    }

    fn starting_at(
        now: Instant,
        counts: ConnectionCounts,
        directions: [IdleTracker; 2],
        wire: IdleTracker,
    ) -> Self {
        Self {
            window: now,
            counts,
            directions: directions.map(DirectionCounts::new),
            wire,
            wire_gaps: Gaps::new(),
            connection_gaps: Gaps::new(),
            connections_open: Duration::ZERO,
            lateness: empty_histogram(),
            slept: Duration::ZERO,
            cpu_at_window: thread_cpu(),
        }
    }

    /// Records an arrived chunk. `buffered` bytes of its connection are in transit, including it.
    pub(crate) fn record_arrival(
        &mut self,
        direction: Direction,
        connection: &mut IdleTracker,
        bytes: usize,
        buffered: usize,
        now: Instant,
    ) {
        let counts = &mut self.directions[direction as usize];
        counts.bytes += bytes as u64;
        counts.chunks += 1;
        counts.buffered_max = counts.buffered_max.max(buffered);
        if let Some(since) = counts.idle.add(bytes) {
            counts.gaps.record(since, self.window, now);
        }
        if let Some(since) = connection.add(bytes) {
            self.connection_gaps.record(since, self.window, now);
        }
        if let Some(since) = self.wire.add(bytes) {
            self.wire_gaps.record(since, self.window, now);
        }
    }

    /// Records bytes forwarded by one write.
    pub(crate) fn record_write(
        &mut self,
        direction: Direction,
        connection: &mut IdleTracker,
        bytes: usize,
        now: Instant,
    ) {
        self.directions[direction as usize].writes += 1;
        self.record_removal(direction, connection, bytes, now);
    }

    /// Records bytes that are no longer in transit.
    pub(crate) fn record_removal(
        &mut self,
        direction: Direction,
        connection: &mut IdleTracker,
        bytes: usize,
        now: Instant,
    ) {
        if bytes > 0 {
            self.directions[direction as usize].idle.remove(bytes, now);
            connection.remove(bytes, now);
            self.wire.remove(bytes, now);
        }
    }

    /// Records how much later than due a chunk left.
    pub(crate) fn record_lateness(&mut self, by: Duration) {
        self.lateness.saturating_record(by.as_nanos() as u64);
    }

    /// Records the end of a connection that was accepted at `accepted`.
    pub(crate) fn record_close(&mut self, accepted: Instant, now: Instant) {
        self.counts.open -= 1;
        self.connections_open += now.saturating_duration_since(accepted.max(self.window));
    }

    pub(crate) fn window(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.window)
    }

    pub(crate) fn lateness(&self) -> Distribution {
        Distribution::of(&self.lateness)
    }

    pub(crate) fn direction(&self, direction: Direction, now: Instant) -> DirectionStats {
        let counts = &self.directions[direction as usize];
        DirectionStats {
            bytes: counts.bytes,
            chunks: counts.chunks,
            writes: counts.writes,
            buffered_bytes_max: counts.buffered_max as u64,
            idle: counts.gaps.idle(counts.idle.idle_time(self.window, now), self.window(now)),
        }
    }

    pub(crate) fn wire(&self, now: Instant) -> Idle {
        self.wire_gaps.idle(self.wire.idle_time(self.window, now), self.window(now))
    }

    /// Returns the idle time per connection. `open` are the open connections, with the times when they were accepted.
    pub(crate) fn connections<'a>(
        &self,
        open: impl Iterator<Item = (Instant, &'a IdleTracker)>,
        now: Instant,
    ) -> Idle {
        let (mut idle_time, mut of) = (Duration::ZERO, self.connections_open);
        for (accepted, idle) in open {
            idle_time += idle.idle_time(self.window, now);
            of += now.saturating_duration_since(accepted.max(self.window));
        }
        self.connection_gaps.idle(idle_time, of)
    }

    pub(crate) fn thread(&self, now: Instant) -> Thread {
        let window = self.window(now).as_secs_f64();
        let awake = (window - self.slept.as_secs_f64()).max(0.0);
        Thread {
            cpu_ns: thread_cpu().saturating_sub(self.cpu_at_window).as_nanos() as u64,
            busy_share: if window == 0.0 { 0.0 } else { awake / window },
        }
    }
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS).expect("the bounds are constants within range")
}

/// Returns the CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = |of: TimeVal| {
        Duration::new(of.tv_sec().unsigned_abs(), 0) + Duration::from_micros(of.tv_usec().unsigned_abs())
    };
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns an observer of one connection with these chunks: (direction, ms of arrival, ms of leaving).
    fn observe(chunks: &[(Direction, u32, u32)], start: Instant) -> (Observer, IdleTracker) {
        let mut observer = Observer::new(start);
        observer.counts.open = 1;
        let mut connection = IdleTracker::new(start);
        let mut events: Vec<(u32, bool, Direction)> = Vec::new();
        events.extend(chunks.iter().map(|(direction, arrives, _)| (*arrives, true, *direction)));
        events.extend(chunks.iter().map(|(direction, _, leaves)| (*leaves, false, *direction)));
        events.sort_by_key(|(at, ..)| *at);
        for (at, arrives, direction) in events {
            let now = start + at * MS;
            if arrives {
                observer.record_arrival(direction, &mut connection, 10, 10, now);
            } else {
                observer.record_write(direction, &mut connection, 10, now);
            }
        }
        (observer, connection)
    }

    fn check_idle(idle: &Idle, total: Duration, gaps: u64, longest: Duration) {
        assert_eq!(idle.idle_ns, total.as_nanos() as u64, "{idle:?}");
        assert_eq!(idle.gaps_ns.count, gaps, "{idle:?}");
        let error = Duration::from_nanos(idle.gaps_ns.max).abs_diff(longest);
        assert!(error <= longest / 100, "{idle:?}: the longest is not {longest:?}");
    }

    #[test]
    fn gap_lasts_from_last_departure_to_next_arrival() {
        use Direction::{Down, Up};
        let start = Instant::now();
        let (observer, connection) = observe(&[(Up, 1, 3), (Down, 2, 4), (Up, 9, 10), (Down, 13, 14)], start);
        let now = start + 20 * MS;
        // 0 to 1, 4 to 9, 10 to 13, and from 14 on, until 20.
        check_idle(&observer.wire(now), 15 * MS, 3, 5 * MS);
        check_idle(&observer.connections([(start, &connection)].into_iter(), now), 15 * MS, 3, 5 * MS);
        // Up alone: 0 to 1, 3 to 9, and 10 to 20; down alone: 0 to 2, 4 to 13, and 14 to 20.
        check_idle(&observer.direction(Up, now).idle, 17 * MS, 2, 6 * MS);
        check_idle(&observer.direction(Down, now).idle, 17 * MS, 2, 9 * MS);
        let share = observer.wire(now).idle_share;
        assert!((share - 0.75).abs() < 1e-9, "{share}");
    }

    #[test]
    fn window_excludes_time_before_its_start() {
        use Direction::{Down, Up};
        let start = Instant::now();
        let (mut observer, mut connection) = observe(&[(Up, 1, 3)], start);
        observer.reset(start + 10 * MS);
        assert_eq!(observer.direction(Up, start + 10 * MS).bytes, 0);
        observer.record_arrival(Down, &mut connection, 7, 7, start + 12 * MS);
        let now = start + 20 * MS;
        // The gap started at 3, but the window at 10.
        check_idle(&observer.wire(now), 2 * MS, 1, 2 * MS);
        check_idle(&observer.connections([(start, &connection)].into_iter(), now), 2 * MS, 1, 2 * MS);
        assert_eq!((observer.direction(Down, now).bytes, observer.counts.open), (7, 1));
        observer.record_close(start, now);
        assert_eq!((observer.connections_open, observer.counts.open), (10 * MS, 0));
    }
}
