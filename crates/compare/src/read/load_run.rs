//! `thalweg.load-run`: a load on any method.

use thalweg_load::{Interval, LoadRun};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Latency;

use super::side_input::SideInput;
use crate::cell::{Calls, Cell, Conditions, Figures, Round};
use crate::figure::Figure;

/// Minimum length of an interval, relative to the configured one; a shorter remainder is dropped.
const WHOLE_SHARE_MIN: f64 = 0.5;

impl SideInput {
    /// Converts a run to one round with its intervals.
    pub(crate) fn of_run(run: &LoadRun) -> Self {
        let cell = cell_of_run(run, 0, None);
        Self { cells: vec![cell], machine: run.machine.clone(), versions: None, notes: unfinished(run) }
    }
}

/// Converts the run to a cell with one round of this number.
pub(super) fn cell_of_run(run: &LoadRun, number: u32, server_cpu_ns: Option<f64>) -> Cell {
    // Streams with a fixed duration are judged by their messages.
    let messages = run.timed_messages(run.messages_sent, run.messages_received);
    let latency = if messages.is_some() { &run.reply } else { &run.latency };
    let client_cpu = match messages {
        Some(messages) => {
            let used_ns = run.client_cpu.user_ns + run.client_cpu.system_ns;
            (messages > 0).then(|| used_ns / messages as f64)
        }
        None => run.client_cpu_per_call.map(|cpu| cpu_ns_per_finished_call(cpu, run.ok, run.failed)),
    };
    let figures = timed(latency.as_ref().map(|timing| timing.ns))
        .with(Figure::Rate, Some(run.messages_per_s().unwrap_or(run.rate_per_s)))
        .with(Figure::ClientCpu, client_cpu)
        .with(Figure::ServerCpu, server_cpu_ns);
    // Includes calls that never started.
    let starts = run.starts();
    Cell {
        conditions: conditions(run),
        is_open: run.schedule.is_some(),
        rounds: vec![Round {
            number,
            figures,
            calls: Calls { ok: starts.ok, failed: starts.failed, dropped: run.dropped },
            intervals: intervals(run),
            not_valid: run.not_valid.clone(),
        }],
        request_bytes: (run.messages_sent > 0).then(|| run.bytes_sent as f64 / run.messages_sent as f64),
    }
}

/// Returns a note if the run had not finished.
pub(super) fn unfinished(run: &LoadRun) -> Vec<String> {
    run.so_far.then(|| "the run had not finished".to_owned()).into_iter().collect()
}

fn conditions(run: &LoadRun) -> Conditions {
    let mut conditions = vec![
        ("method", run.method.clone()),
        ("type", run.kind.clone()),
        ("loop", run.loop_kind.clone()),
        ("in flight", run.in_flight.to_string()),
        ("connections", run.connections.to_string()),
    ];
    conditions.extend(run.share.map(|share| ("share", share.to_string())));
    conditions.extend(run.workers.clone().map(|workers| ("workers", workers)));
    conditions.extend(run.schedule.clone().map(|schedule| ("schedule", schedule)));
    conditions.extend(run.spacing.clone().map(|spacing| ("arrivals", spacing)));
    Conditions::new(conditions)
}

/// Spreads CPU time per successful call over all finished calls, because failed calls use CPU time, too.
pub(super) fn cpu_ns_per_finished_call(per_ok: CpuTime, ok: u64, failed: u64) -> f64 {
    (per_ok.user_ns + per_ok.system_ns) * ok as f64 / (ok + failed).max(1) as f64
}

/// Converts latencies to figures.
pub(super) fn timed(latency: Option<Latency>) -> Figures {
    let ns = |of: fn(&Latency) -> f64| latency.as_ref().map(of);
    Figures::default()
        .with(Figure::Mean, ns(|latency| latency.mean))
        .with(Figure::P50, ns(|latency| latency.p50 as f64))
        .with(Figure::P90, ns(|latency| latency.p90 as f64))
        .with(Figure::P95, latency.and_then(|latency| latency.p95).map(|ns| ns as f64))
        .with(Figure::P99, ns(|latency| latency.p99 as f64))
}

/// Returns the intervals of full length.
fn intervals(run: &LoadRun) -> Vec<Figures> {
    let ends = run.intervals.iter().skip(1).map(|next| next.at_ns).chain([run.duration_ns]);
    let lengths = run.intervals.iter().zip(ends);
    let figures = |(interval, end): (&Interval, u64)| {
        let length_ns = end.saturating_sub(interval.at_ns) as f64;
        let is_whole = length_ns >= run.interval_ns as f64 * WHOLE_SHARE_MIN && length_ns > 0.0;
        let messages = run.timed_messages(interval.messages_sent, interval.messages_received);
        let latency = if messages.is_some() { interval.reply_ns } else { interval.latency_ns };
        let rate = messages.unwrap_or(interval.ok) as f64 / (length_ns / 1e9);
        is_whole.then(|| timed(latency).with(Figure::Rate, Some(rate)))
    };
    lengths.filter_map(figures).collect()
}
