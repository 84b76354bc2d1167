//! Recent intervals for charts.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_load::Interval;
use thalweg_measure::distribution::Latency;

/// Number of dots on the widest terminal.
const POINTS_MAX: usize = 1024;

/// Last intervals, across the consecutive runs of a search.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<IntervalSample>);

#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalSample {
    /// Successful calls per second.
    pub(super) rate: f64,
    /// Successful starts per second. A scenario counts flows here, as its schedule does.
    pub(super) starts: f64,
    /// Scheduled starts per second.
    pub(super) scheduled: f64,
    pub(super) latency: Option<Latency>,
    /// Failed calls per second.
    pub(super) failed: f64,
    /// Calls in flight at the end, and usable connections.
    pub(super) in_flight: u64,
    pub(super) connections: u32,
}

impl History {
    /// Adds an interval of this length.
    pub(super) fn push(&mut self, interval: &Interval, lasted: Duration) {
        let seconds = lasted.as_secs_f64().max(1e-3);
        let rate = |count: f64| count / seconds;
        if self.0.len() == POINTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(IntervalSample {
            rate: rate(interval.ok as f64),
            starts: rate(interval.starts().ok as f64),
            scheduled: rate(interval.scheduled),
            latency: interval.latency_ns,
            failed: rate(interval.failed as f64),
            in_flight: interval.in_flight,
            connections: interval.connections,
        });
    }

    /// Returns the last intervals, at most `most`.
    pub(super) fn last(&self, most: usize) -> impl Iterator<Item = &IntervalSample> + Clone {
        self.0.iter().skip(self.0.len().saturating_sub(most))
    }
}
