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
pub(crate) struct Silence {
    under_way: usize,
    since: Instant,
}

impl Silence {
    pub(crate) fn new(now: Instant) -> Self {
        Self { under_way: 0, since: now }
    }

    /// Adds arrived bytes. Returns the start of the gap that they end, if any.
    fn ends(&mut self, bytes: usize) -> Option<Instant> {
        self.under_way += bytes;
        (self.under_way == bytes).then_some(self.since)
    }

    /// Removes bytes that were forwarded or dropped.
    fn leave(&mut self, bytes: usize, now: Instant) {
        self.under_way -= bytes;
        if self.under_way == 0 {
            self.since = now;
        }
    }

    /// Returns the length of the current gap within the window, or zero if bytes are in transit.
    fn so_far(&self, window: Instant, now: Instant) -> Duration {
        if self.under_way > 0 {
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

    fn idle(&self, so_far: Duration, of: Duration) -> Idle {
        let idle = self.total + so_far;
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
    wire: Silence,
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
    silence: Silence,
    gaps: Gaps,
}

impl DirectionCounts {
    fn new(silence: Silence) -> Self {
        Self { bytes: 0, chunks: 0, writes: 0, buffered_max: 0, silence, gaps: Gaps::new() }
    }
}

impl Observer {
    pub(crate) fn new(now: Instant) -> Self {
        let silence = Silence::new(now);
        Self::in_window(now, ConnectionCounts::default(), [silence; 2], silence)
    }

    /// Starts a new window. Bytes in transit and open connections remain known.
    pub(crate) fn reset(&mut self, now: Instant) {
        let counts = ConnectionCounts { open: self.counts.open, ..ConnectionCounts::default() };
        let silences = [self.directions[0].silence, self.directions[1].silence];
        *self = Self::in_window(now, counts, silences, self.wire);
    }

    fn in_window(now: Instant, counts: ConnectionCounts, directions: [Silence; 2], wire: Silence) -> Self {
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
    pub(crate) fn arrived(
        &mut self,
        direction: Direction,
        connection: &mut Silence,
        bytes: usize,
        buffered: usize,
        now: Instant,
    ) {
        let counts = &mut self.directions[direction as usize];
        counts.bytes += bytes as u64;
        counts.chunks += 1;
        counts.buffered_max = counts.buffered_max.max(buffered);
        if let Some(since) = counts.silence.ends(bytes) {
            counts.gaps.record(since, self.window, now);
        }
        if let Some(since) = connection.ends(bytes) {
            self.connection_gaps.record(since, self.window, now);
        }
        if let Some(since) = self.wire.ends(bytes) {
            self.wire_gaps.record(since, self.window, now);
        }
    }

    /// Records bytes forwarded by one write.
    pub(crate) fn left(
        &mut self,
        direction: Direction,
        connection: &mut Silence,
        bytes: usize,
        now: Instant,
    ) {
        self.directions[direction as usize].writes += 1;
        self.gone(direction, connection, bytes, now);
    }

    /// Records bytes that are no longer in transit.
    pub(crate) fn gone(
        &mut self,
        direction: Direction,
        connection: &mut Silence,
        bytes: usize,
        now: Instant,
    ) {
        if bytes > 0 {
            self.directions[direction as usize].silence.leave(bytes, now);
            connection.leave(bytes, now);
            self.wire.leave(bytes, now);
        }
    }

    /// Records how much later than due a chunk left.
    pub(crate) fn was_late(&mut self, by: Duration) {
        self.lateness.saturating_record(by.as_nanos() as u64);
    }

    /// Records the end of a connection that was accepted at `accepted`.
    pub(crate) fn closed(&mut self, accepted: Instant, now: Instant) {
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
            idle: counts.gaps.idle(counts.silence.so_far(self.window, now), self.window(now)),
        }
    }

    pub(crate) fn wire(&self, now: Instant) -> Idle {
        self.wire_gaps.idle(self.wire.so_far(self.window, now), self.window(now))
    }

    /// Returns the idle time per connection. `open` are the open connections, with the times when they were accepted.
    pub(crate) fn connections<'a>(
        &self,
        open: impl Iterator<Item = (Instant, &'a Silence)>,
        now: Instant,
    ) -> Idle {
        let (mut so_far, mut of) = (Duration::ZERO, self.connections_open);
        for (accepted, silence) in open {
            so_far += silence.so_far(self.window, now);
            of += now.saturating_duration_since(accepted.max(self.window));
        }
        self.connection_gaps.idle(so_far, of)
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
    fn observed(chunks: &[(Direction, u32, u32)], start: Instant) -> (Observer, Silence) {
        let mut observer = Observer::new(start);
        observer.counts.open = 1;
        let mut connection = Silence::new(start);
        let mut events: Vec<(u32, bool, Direction)> = Vec::new();
        events.extend(chunks.iter().map(|(direction, comes, _)| (*comes, true, *direction)));
        events.extend(chunks.iter().map(|(direction, _, leaves)| (*leaves, false, *direction)));
        events.sort_by_key(|(at, ..)| *at);
        for (at, comes, direction) in events {
            let now = start + at * MS;
            if comes {
                observer.arrived(direction, &mut connection, 10, 10, now);
            } else {
                observer.left(direction, &mut connection, 10, now);
            }
        }
        (observer, connection)
    }

    fn check_idle(idle: &Idle, total: Duration, gaps: u64, longest: Duration) {
        assert_eq!(idle.idle_ns, total.as_nanos() as u64, "{idle:?}");
        assert_eq!(idle.gaps_ns.count, gaps, "{idle:?}");
        let off = Duration::from_nanos(idle.gaps_ns.max).abs_diff(longest);
        assert!(off <= longest / 100, "{idle:?}: the longest is not {longest:?}");
    }

    #[test]
    fn a_gap_is_from_the_last_byte_gone_to_the_next_that_comes() {
        use Direction::{Down, Up};
        let start = Instant::now();
        let (observer, connection) =
            observed(&[(Up, 1, 3), (Down, 2, 4), (Up, 9, 10), (Down, 13, 14)], start);
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
    fn a_window_counts_only_what_is_in_it() {
        use Direction::{Down, Up};
        let start = Instant::now();
        let (mut observer, mut connection) = observed(&[(Up, 1, 3)], start);
        observer.reset(start + 10 * MS);
        assert_eq!(observer.direction(Up, start + 10 * MS).bytes, 0);
        observer.arrived(Down, &mut connection, 7, 7, start + 12 * MS);
        let now = start + 20 * MS;
        // The gap started at 3, but the window at 10.
        check_idle(&observer.wire(now), 2 * MS, 1, 2 * MS);
        check_idle(&observer.connections([(start, &connection)].into_iter(), now), 2 * MS, 1, 2 * MS);
        assert_eq!((observer.direction(Down, now).bytes, observer.counts.open), (7, 1));
        observer.closed(start, now);
        assert_eq!((observer.connections_open, observer.counts.open), (10 * MS, 0));
    }
}
