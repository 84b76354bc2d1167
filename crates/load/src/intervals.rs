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
    kept: Vec<Kept>,
    length: Duration,
    /// How many of the run's own intervals make one of those that are kept.
    width: usize,
    /// What has come since the last one that is complete.
    pending: Option<Kept>,
    pending_parts: usize,
}

#[derive(Clone, Debug)]
struct Kept {
    interval: Interval,
    /// Left out of those that are older than the last two, of which the percentiles are enough.
    latency: Option<Distribution>,
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
        let mut interval = Interval {
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
        let single = interval.clone();
        let mut latency = recent.latency.clone();
        if let Some(pending) = self.pending.take() {
            if let Some(earlier) = &pending.latency {
                latency.merge(earlier);
            }
            let in_flight = interval.in_flight;
            let mut joined = pending.interval;
            joined.add(&interval);
            interval = Interval { in_flight, latency_ns: latency.latency(), ..joined };
        }
        self.pending_parts += 1;
        let kept = Kept { interval, latency: Some(latency) };
        if self.pending_parts < self.width {
            self.pending = Some(kept);
            return single;
        }
        self.pending_parts = 0;
        // Histograms are large; the percentiles of older ones stay.
        if let Some(before) = self.kept.last_mut() {
            before.latency = None;
        }
        self.kept.push(kept);
        if self.kept.len() > INTERVALS_MAX {
            self.halve();
        }
        single
    }

    /// All of them; what is not complete is the last.
    pub(crate) fn all(&self) -> Vec<Interval> {
        self.kept.iter().chain(&self.pending).map(|kept| kept.interval.clone()).collect()
    }

    /// Two become one. Of their percentiles the worse ones stay, since their histograms are gone.
    fn halve(&mut self) {
        let pairs = self.kept.chunks(2).map(|pair| match pair {
            [one, other] => {
                let mut interval = one.interval.clone();
                interval.add(&other.interval);
                interval.in_flight = other.interval.in_flight;
                Kept { interval, latency: None }
            }
            [single, ..] => single.clone(),
            [] => unreachable!("chunks are not empty"),
        });
        self.kept = pairs.collect();
        self.width *= 2;
    }
}
