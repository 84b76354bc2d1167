//! The intervals that charts have.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_load::Interval;
use thalweg_measure::distribution::Latency;

/// As many as the widest terminal has dots.
const POINTS_MAX: usize = 1024;

/// The last intervals, also of runs one after the other.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<Past>);

/// An interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    /// Calls a second that ended with OK.
    pub(super) rate: f64,
    /// The same, of a scenario flows, as its schedule counts.
    pub(super) starts: f64,
    /// Those that were to begin.
    pub(super) scheduled: f64,
    pub(super) latency: Option<Latency>,
    /// Calls a second that did not end with OK.
    pub(super) failed: f64,
    /// Calls under way at its end, and connections that took calls.
    pub(super) in_flight: u64,
    pub(super) connections: u32,
}

impl History {
    /// It lasted so long.
    pub(super) fn push(&mut self, interval: &Interval, lasted: Duration) {
        let seconds = lasted.as_secs_f64().max(1e-3);
        let rate = |count: f64| count / seconds;
        if self.0.len() == POINTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Past {
            rate: rate(interval.ok as f64),
            starts: rate(interval.starts().ok as f64),
            scheduled: rate(interval.scheduled),
            latency: interval.latency_ns,
            failed: rate(interval.failed as f64),
            in_flight: interval.in_flight,
            connections: interval.connections,
        });
    }

    /// The last of them, at most so many.
    pub(super) fn last(&self, most: usize) -> impl Iterator<Item = &Past> + Clone {
        self.0.iter().skip(self.0.len().saturating_sub(most))
    }
}
