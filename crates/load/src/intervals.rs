//! A run over time.

use std::time::Duration;

use thalweg_measure::distribution::Distribution;
use thalweg_measure::histogram::Histogram;

use crate::run::Interval;
use crate::tally::Recent;

/// Maximum number of kept intervals, an even number. Beyond it pairs are merged, so that a run of days has no more.
const INTERVALS_MAX: usize = 3600;

/// State at the end of an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalEnd {
    pub(crate) in_flight: u64,
    /// Connections that accepted calls.
    pub(crate) connections: u32,
}

#[derive(Debug)]
pub(crate) struct Intervals {
    kept: Vec<Interval>,
    length: Duration,
    /// Whether flows are counted apart from calls.
    has_flows: bool,
    /// Number of the run's own intervals in one kept interval.
    width: usize,
    /// The incomplete interval after the last complete one.
    pending: Option<Interval>,
    pending_parts: usize,
}

impl Intervals {
    pub(crate) fn new(length: Duration, has_flows: bool) -> Self {
        Self { kept: Vec::new(), length, has_flows, width: 1, pending: None, pending_parts: 0 }
    }

    /// Returns the length of a kept interval.
    pub(crate) fn length(&self) -> Duration {
        self.length * self.width as u32
    }

    /// Adds an interval of the run that has ended.
    pub(crate) fn push(&mut self, at_ns: u64, recent: &Recent, scheduled: f64, end: IntervalEnd) -> Interval {
        let IntervalEnd { in_flight, connections } = end;
        let flows = self.has_flows.then_some(recent.flows);
        let single = Interval {
            at_ns,
            scheduled,
            ok: recent.ok,
            failed: recent.failed,
            flows,
            late: recent.late,
            in_flight,
            connections,
            latency_ns: recent.latency.latency(),
            histogram: coarse(&recent.latency),
            messages_sent: recent.traffic.sent,
            messages_received: recent.traffic.received,
            bytes_sent: recent.traffic.bytes_sent,
            bytes_received: recent.traffic.bytes_received,
            reply_ns: recent.replies.latency(),
            reply_histogram: coarse(&recent.replies),
            servers: recent.servers.clone(),
        };
        let interval = match self.pending.take() {
            None => single.clone(),
            Some(mut interval) => {
                interval.append(&single);
                interval
            }
        };
        self.pending_parts += 1;
        if self.pending_parts < self.width {
            self.pending = Some(interval);
        } else {
            self.pending_parts = 0;
            self.keep(interval);
        }
        single
    }

    fn keep(&mut self, interval: Interval) {
        self.kept.push(interval);
        if self.kept.len() >= INTERVALS_MAX {
            self.halve();
        }
    }

    /// Returns all intervals, including the incomplete last one.
    pub(crate) fn all(&self) -> Vec<Interval> {
        self.kept.iter().chain(&self.pending).cloned().collect()
    }

    /// Merges pairs in place, to avoid a second copy.
    fn halve(&mut self) {
        let mut is_second = false;
        self.kept.dedup_by(|interval, before| {
            is_second = !is_second;
            if is_second {
                before.append(interval);
            }
            is_second
        });
        self.width *= 2;
    }
}

fn coarse(times: &Distribution) -> Option<Histogram> {
    (!times.is_empty()).then(|| times.coarse_histogram())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Flows, ServerInterval};
    use crate::traffic::Traffic;

    #[test]
    fn intervals_of_long_run_are_merged_without_loss() {
        let mut intervals = Intervals::new(Duration::from_secs(1), true);
        let count = 3 * INTERVALS_MAX as u64 + 1;
        let mut all = Distribution::new();
        for number in 0..count {
            let mut latency = Distribution::new();
            latency.record(1000 + number);
            all.record(1000 + number);
            let traffic = Traffic { sent: 1, received: 2, bytes_sent: 3, bytes_received: 4 };
            let flows = Flows { started: 3, ok: 1, failed: 2 };
            let server = ServerInterval { server: "a:1".to_owned(), calls: 2, failed: 1 };
            let (replies, servers) = (latency.clone(), vec![server]);
            let recent = Recent { replies, latency, ok: 1, failed: 1, flows, late: 2, traffic, servers };
            let end = IntervalEnd { in_flight: number, connections: number as u32 + 1 };
            intervals.push(number * 1_000_000_000, &recent, 5.0, end);
        }
        assert_eq!(intervals.length(), Duration::from_secs(4));
        let kept = intervals.all();
        assert_eq!(kept.len(), count.div_ceil(4) as usize);
        assert_eq!(kept.iter().map(|interval| interval.ok).sum::<u64>(), count);
        assert_eq!(kept[1].at_ns, 4_000_000_000);
        assert_eq!((kept[1].ok, kept[1].late, kept[1].in_flight, kept[1].connections), (4, 8, 7, 8));
        assert_eq!(kept[1].flows, Some(Flows { started: 12, ok: 4, failed: 8 }));
        assert_eq!(kept[1].servers, [ServerInterval { server: "a:1".to_owned(), calls: 8, failed: 4 }]);
        let latency = kept[1].latency_ns.unwrap();
        assert_eq!((latency.min, latency.max), (1004, 1007));
        assert!((1004..=1007).contains(&latency.p50), "to two digits: {}", latency.p50);
        let mut joined = kept[0].clone();
        kept[1..].iter().for_each(|interval| joined.append(interval));
        assert_eq!(joined.histogram, Some(all.coarse_histogram()));
        assert_eq!((joined.reply_ns, &joined.reply_histogram), (joined.latency_ns, &joined.histogram));
        assert_eq!((joined.messages_sent, joined.messages_received), (count, 2 * count));
        assert_eq!((joined.bytes_sent, joined.bytes_received), (3 * count, 4 * count));
    }
}
