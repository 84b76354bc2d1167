//! Totals of a connection's work. They only grow: the difference between two samples shows how busy it is.

use std::time::Duration;

use tokio::time::Instant;

/// Kept under the connection's lock, where most of the work happens anyway. Times are in nanoseconds, which are
/// cheaper to add than [`Duration`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Sampled time that the driver was busy. Polls in which nothing moved are not counted.
    pub(crate) busy_ns: u64,
    /// Unary calls whose callers have the response.
    pub(crate) responses: u64,
    /// Total duration of the timed unary calls, and their number.
    pub(crate) calls_ns: u64,
    pub(crate) timed: u64,
    /// Calls that ended, and DATA frames of streams, in both directions.
    pub(crate) completed: u64,
    /// Time from output being available to its being taken for the socket, over `waits` samples.
    pub(crate) waited_ns: u64,
    pub(crate) waits: u64,
    /// Time in which the connection's window held back data.
    pub(crate) blocked_ns: u64,
}

impl Load {
    /// Returns the work done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            busy_ns: self.busy_ns - before.busy_ns,
            responses: self.responses - before.responses,
            calls_ns: self.calls_ns - before.calls_ns,
            timed: self.timed - before.timed,
            completed: self.completed - before.completed,
            waited_ns: self.waited_ns - before.waited_ns,
            waits: self.waits - before.waits,
            blocked_ns: self.blocked_ns - before.blocked_ns,
        }
    }

    /// Counts a timed call that has its response.
    pub(crate) fn note_call(&mut self, sent_at: Instant, now: Instant) {
        self.calls_ns += nanoseconds(sent_at, now);
        self.timed += 1;
    }

    /// Counts one sample of how long output waited.
    pub(crate) fn note_wait(&mut self, nanoseconds: u64) {
        self.waited_ns += nanoseconds;
        self.waits += 1;
    }

    /// Returns the average number of unary calls in flight over `seconds`: the number answered in the duration of one
    /// call (Little's law).
    pub(crate) fn mean_unary_in_flight(&self, seconds: f64) -> f64 {
        let each_s = self.calls_ns as f64 / 1e9 / (self.timed.max(1)) as f64;
        each_s * self.responses as f64 / seconds
    }

    /// Returns the mean time that output waited; zero without a sample.
    pub(crate) fn mean_wait(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.checked_div(self.waits).unwrap_or(0))
    }
}

/// Returns the nanoseconds between two times; 0 if they are reversed. 2^64 ns are 584 years.
#[inline]
pub(crate) fn nanoseconds(from: Instant, to: Instant) -> u64 {
    let between = to.saturating_duration_since(from);
    between.as_secs() * 1_000_000_000 + u64::from(between.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means() {
        let before =
            Load { responses: 5, calls_ns: 77, timed: 1, waited_ns: 50, waits: 5, ..Load::default() };
        let now =
            Load { responses: 1005, calls_ns: 20_000_077, timed: 11, waited_ns: 950, waits: 8, ..before };
        let load = now.since(&before);
        // 1000 calls of 2 ms each in half a second.
        assert!((load.mean_unary_in_flight(0.5) - 4.0).abs() < 1e-9);
        assert_eq!(load.mean_wait(), Duration::from_nanos(300));
        assert!(Load::default().mean_unary_in_flight(1.0).abs() < 1e-9);
        assert_eq!(Load::default().mean_wait(), Duration::ZERO);
    }
}
