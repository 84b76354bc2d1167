//! A run over time, a number for each interval.

use serde::Serialize;
use thalweg_measure::distribution::Latency;
use thalweg_measure::figures::short;

use crate::run::{Interval, LoadRun};

/// What an interval has of something.
type Figure = fn(&Interval) -> f64;

#[derive(Debug, Serialize)]
pub(super) struct OverTime {
    /// Where intervals begin, s, and where the last one ends.
    pub(super) edges: Vec<f64>,
    /// Calls a second that were to begin, of a scenario flows, as all figures beside it; none for a closed loop.
    scheduled: Option<Vec<Option<f64>>>,
    /// Calls a second that ended with OK; none in an interval that is too short for a rate.
    ok: Vec<Option<f64>>,
    /// Those that failed.
    failed: Vec<Option<f64>>,
    /// Those that had begun late.
    late: Vec<Option<f64>>,
    in_flight: Vec<u64>,
    /// ns.
    p50: Vec<Option<u64>>,
    p90: Vec<Option<u64>>,
    p99: Vec<Option<u64>>,
    max: Vec<Option<u64>>,
}

/// `None` of a run without an interval.
pub(super) fn over_time(run: &LoadRun) -> Option<OverTime> {
    let intervals = &run.intervals;
    let last = intervals.last()?;
    // In an open loop calls still end when none begins any more.
    let drain_ns = if run.is_open() { run.drain_ns } else { 0 };
    let end_ns = run.duration_ns.min(last.at_ns + run.interval_ns).max(last.at_ns);
    let begins_ns: Vec<u64> = intervals.iter().map(|interval| interval.at_ns).collect();
    let ends_ns = |end_ns: u64| begins_ns.iter().skip(1).copied().chain([end_ns]);
    let lengths_ns = |end_ns: u64| {
        begins_ns.iter().zip(ends_ns(end_ns)).map(|(from, to)| to.saturating_sub(*from)).collect::<Vec<_>>()
    };
    let (begun_in_ns, ended_in_ns) = (lengths_ns(end_ns), lengths_ns(end_ns + drain_ns));
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
    // Beside a schedule stands what it counts.
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
        scheduled: run.is_open().then(|| rates(|interval| interval.scheduled, &begun_in_ns)),
        ok: rates(ok, &ended_in_ns),
        failed: rates(failed, &ended_in_ns),
        late: rates(|interval| interval.late as f64, &ended_in_ns),
        in_flight: intervals.iter().map(|interval| interval.in_flight).collect(),
        p50: latencies(|ns| ns.p50),
        p90: latencies(|ns| ns.p90),
        p99: latencies(|ns| ns.p99),
        max: latencies(|ns| ns.max),
    })
}
