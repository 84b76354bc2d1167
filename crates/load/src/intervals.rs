//! A run over time.

use std::time::Duration;

use thalweg_lab::record::Distribution;

use crate::run::Interval;
use crate::tally::Recent;

/// Intervals that are kept. Beyond it two become one, so that a run of days has no more.
const INTERVALS_MAX: usize = 3600;

/// The intervals of a run.
#[derive(Debug)]
pub(crate) struct Intervals {
    kept: Vec<Interval>,
    length: Duration,
    /// How many of the run's own intervals make one of those that are kept.
    width: usize,
    /// What has come since the last one that is complete, with its latencies.
    pending: Option<(Interval, Distribution)>,
    pending_parts: usize,
}

impl Intervals {
    pub(crate) fn new(length: Duration) -> Self {
        Self { kept: Vec::new(), length, width: 1, pending: None, pending_parts: 0 }
    }

    /// How long one of those that are kept is.
    pub(crate) fn length(&self) -> Duration {
        self.length * self.width as u32
    }

    /// An interval of the run has ended.
    pub(crate) fn push(&mut self, at_ns: u64, recent: &Recent, in_flight: u64, scheduled: f64) -> Interval {
        let single = Interval {
            at_ns,
            scheduled,
            ok: recent.ok,
            failed: recent.failed,
            late: recent.late,
            in_flight,
            latency_ns: recent.latency.latency(),
            bytes_sent: recent.bytes_sent,
            bytes_received: recent.bytes_received,
        };
        if self.width == 1 {
            self.keep(single.clone());
            return single;
        }
        let (interval, latency) = match self.pending.take() {
            None => (single.clone(), recent.latency.clone()),
            Some((mut interval, mut latency)) => {
                latency.merge(&recent.latency);
                interval.add(&single);
                (interval.in_flight, interval.latency_ns) = (in_flight, latency.latency());
                (interval, latency)
            }
        };
        self.pending_parts += 1;
        if self.pending_parts < self.width {
            self.pending = Some((interval, latency));
        } else {
            self.pending_parts = 0;
            self.keep(interval);
        }
        single
    }

    fn keep(&mut self, interval: Interval) {
        self.kept.push(interval);
        if self.kept.len() > INTERVALS_MAX {
            self.halve();
        }
    }

    /// All of them; what is not complete is the last.
    pub(crate) fn all(&self) -> Vec<Interval> {
        self.kept.iter().chain(self.pending.iter().map(|(interval, _)| interval)).cloned().collect()
    }

    /// Two become one. Of their percentiles the worse ones stay, since their histograms are gone.
    fn halve(&mut self) {
        let pairs = self.kept.chunks(2).map(|pair| match pair {
            [one, other] => {
                let mut interval = one.clone();
                interval.add(other);
                interval.in_flight = other.in_flight;
                interval
            }
            [single, ..] => single.clone(),
            [] => unreachable!("chunks are not empty"),
        });
        self.kept = pairs.collect();
        self.width *= 2;
    }
}
