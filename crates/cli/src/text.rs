//! Text results.

use std::fmt::Write;

use thalweg_link::{Distribution, Stats};
use thalweg_load::record::LoadResult;
use thalweg_measure::figures::{grouped, percent, throughput, time};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::counted;

use crate::rows::{Rows, quantiles};

/// Formats a result of `peer load` with one aligned figure per line.
pub(crate) fn load(result: &LoadResult) -> String {
    let settings = &result.settings;
    let operation = settings.call.operation();
    let what = match (&settings.method, settings.echo) {
        (None, Some(work)) => format!("{} by {}", work.shape, work.protocol),
        (Some(method), _) => {
            format!("{}, {}", method.path.trim_start_matches('/'), ByteSize(method.request.len() as u64))
        }
        (None, None) => format!("{}, {}", settings.call, ByteSize(settings.size_bytes)),
    };
    let mut rows = Rows::new(&format!(
        "{what}, {} in flight, closed loop, {} on {}",
        settings.in_flight,
        counted(u64::from(settings.connections), "connection"),
        settings.target,
    ));
    rows.measured(result.duration_ns, settings.warmup_ns);
    rows.row("rate", format!("{} {operation}/s", grouped(result.rate_per_s)));
    let seconds = result.duration_ns as f64 / 1e9;
    for (name, bytes) in [("sent", result.bytes_sent), ("received", result.bytes_received)] {
        if bytes > 0 {
            rows.row(name, format!("{} of payload", throughput(bytes as f64 / seconds)));
        }
    }
    if let Some(latency) = &result.latency_ns {
        rows.row("latency", quantiles(latency, latency.p95, ""));
    }
    for stage in &result.stages {
        let (p50, p99) = (time(stage.latency_ns.p50 as f64), time(stage.latency_ns.p99 as f64));
        rows.row(&stage.name, format!("{p50:>9} p50, {p99} p99"));
    }
    if let Some(pace) = &result.pace_ns {
        rows.row("pace mean", format!("{:>9} between messages of a stream", time(pace.mean)));
        let readings = counted(pace.messages_per_reading, "message");
        rows.row(
            "  largest gap",
            format!("{:>9} between clock readings, {readings}", time(pace.gap_max as f64)),
        );
    }
    let per = format!("each of {} {operation}", result.messages);
    rows.client_cpu(result.client_cpu_per_call.as_ref(), &per);
    rows.connections(&format!("{} requested", result.connections.asked), result.connections.established);
    rows.errors(&result.errors);
    for note in &result.notes {
        rows.row(if note.invalidates { "NOT VALID" } else { "note" }, note.text.clone());
    }
    rows.text
}

/// Formats the statistics of a link.
pub(crate) fn link(stats: &Stats) -> String {
    let mut text = format!("{} -> {}", stats.listen, stats.to);
    let Stats { connections, up, down, wire, lateness_ns, thread, .. } = stats;
    if stats.delay_ns > 0 || stats.jitter != "0s" {
        let _ = write!(text, ", {} one way", time(stats.delay_ns as f64));
    }
    if stats.jitter != "0s" {
        let _ = write!(text, " ± {}", stats.jitter);
    }
    if let Some(rate) = stats.rate_bytes_per_s {
        let _ = write!(text, ", {}", throughput(rate as f64));
    }
    let states = [(stats.stalled, ", STALLED"), (stats.refusing, ", REFUSING")];
    states.into_iter().filter(|(is_so, _)| *is_so).for_each(|(_, state)| text.push_str(state));

    let mut rows = Rows::new(&text);
    let quantiles = |of: &Distribution| match of.count {
        0 => "none".to_owned(),
        number => {
            let [p50, p99, max] = [of.p50, of.p99, of.max].map(|ns| time(ns as f64));
            format!("p50 {p50}, p99 {p99}, max {max} ({number} of them)")
        }
    };
    rows.row("measured", time(stats.window_ns as f64));
    let others = [
        (connections.ended, "ended"),
        (connections.reset, "reset"),
        (connections.cut, "cut"),
        (connections.failed, "failed"),
    ];
    let mut became = format!("{} accepted, {} open", connections.accepted, connections.open);
    for (number, what) in others.into_iter().filter(|(number, _)| *number > 0) {
        let _ = write!(became, ", {number} {what}");
    }
    rows.row("connections", became);
    for (name, direction) in [("up", up), ("down", down)] {
        let (bytes, chunks) = (grouped(direction.bytes as f64), grouped(direction.chunks as f64));
        let most = ByteSize(direction.buffered_bytes_max);
        rows.row(name, format!("{bytes} bytes in {chunks} chunks, at most {most} per connection in flight"));
    }
    rows.row("lateness", quantiles(lateness_ns));
    rows.row("wire idle", format!("{}, gaps {}", percent(wire.idle_share), quantiles(&wire.gaps_ns)));
    let cpu = time(thread.cpu_ns as f64);
    rows.row("its thread", format!("awake {}, {cpu} of processor time", percent(thread.busy_share)));
    if let Some(error) = &stats.last_error {
        rows.row("last error", error.clone());
    }
    rows.text
}
