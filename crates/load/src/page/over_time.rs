//! Time series of a run, with one value per interval.

use serde::Serialize;
use thalweg_measure::distribution::Latency;
use thalweg_measure::figures::short;

use crate::run::{Interval, LoadRun};

/// Reads a value of an interval.
type Figure = fn(&Interval) -> f64;

#[derive(Debug, Serialize)]
pub(super) struct OverTime {
    /// Starts of the intervals and end of the last one, in s.
    pub(super) edges: Vec<f64>,
    /// Scheduled calls per second, in a scenario flows, as for all rates here. `None` for a closed loop.
    scheduled: Option<Vec<Option<f64>>>,
    /// Calls per second that ended with OK. `None` if an interval is too short for a rate.
    ok: Vec<Option<f64>>,
    /// Failed calls per second.
    failed: Vec<Option<f64>>,
    /// Calls per second that started late.
    late: Vec<Option<f64>>,
    in_flight: Vec<u64>,
    /// In ns.
    p50: Vec<Option<u64>>,
    p90: Vec<Option<u64>>,
    p99: Vec<Option<u64>>,
    max: Vec<Option<u64>>,
}

/// Returns the time series, or `None` if the run has no interval.
pub(super) fn over_time(run: &LoadRun) -> Option<OverTime> {
    let intervals = &run.intervals;
    let last = intervals.last()?;
    // In an open loop, calls still finish after the last start.
    let drain_ns = if run.is_open() { run.drain_ns } else { 0 };
    let end_ns = run.duration_ns.min(last.at_ns + run.interval_ns).max(last.at_ns);
    let begins_ns: Vec<u64> = intervals.iter().map(|interval| interval.at_ns).collect();
    let ends_ns = |end_ns: u64| begins_ns.iter().skip(1).copied().chain([end_ns]);
    let lengths_ns = |end_ns: u64| {
        begins_ns.iter().zip(ends_ns(end_ns)).map(|(from, to)| to.saturating_sub(*from)).collect::<Vec<_>>()
    };
    let (start_lengths_ns, end_lengths_ns) = (lengths_ns(end_ns), lengths_ns(end_ns + drain_ns));
    let shortest_ns = if intervals.len() == 1 { 1 } else { run.interval_ns / 2 };
    let rates = |of: Figure, lengths_ns: &[u64]| {
        let rate = |(interval, ns): (&Interval, &u64)| {
            (*ns >= shortest_ns.max(1)).then(|| short(of(interval) * 1e9 / *ns as f64))
        };
        intervals.iter().zip(lengths_ns).map(rate).collect::<Vec<_>>()
    };
    let latencies = |of: fn(&Latency) -> u64| {
        intervals.iter().map(|interval| Some(of(interval.latency_ns.as_ref()?))).collect::<Vec<_>>()
    };
    // In an open loop, count the unit of the schedule.
    let (ok, failed): (Figure, Figure) = if run.is_open() {
        (|interval| interval.starts().ok as f64, |interval| interval.starts().failed as f64)
    } else {
        (|interval| interval.ok as f64, |interval| interval.failed as f64)
    };
    Some(OverTime {
        edges: begins_ns
            .iter()
            .copied()
            .chain([end_ns + drain_ns])
            .map(|ns| short(ns as f64 / 1e9))
            .collect(),
        scheduled: run.is_open().then(|| rates(|interval| interval.scheduled, &start_lengths_ns)),
        ok: rates(ok, &end_lengths_ns),
        failed: rates(failed, &end_lengths_ns),
        late: rates(|interval| interval.late as f64, &end_lengths_ns),
        in_flight: intervals.iter().map(|interval| interval.in_flight).collect(),
        p50: latencies(|ns| ns.p50),
        p90: latencies(|ns| ns.p90),
        p99: latencies(|ns| ns.p99),
        max: latencies(|ns| ns.max),
    })
}
