//! Results for people.

use std::fmt::Write;

use thalweg_link::{Distribution, Stats};
use thalweg_load::record::LoadResult;
use thalweg_measure::figures::{grouped, percent, throughput, time};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::counted;
use thalweg_protobuf::printable;

/// A result of `load`: short, aligned, one figure a line.
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
    let mut text = format!(
        "{what}, {} in flight, closed loop, {} on {}\n\n",
        settings.in_flight,
        counted(u64::from(settings.connections), "connection"),
        settings.target,
    );
    let mut row = |name: &str, value: String| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{:<14}{}", printable::line(name), printable::line(&value));
    };
    let warm_up = match settings.warmup_ns {
        0 => "no".to_owned(),
        warmup_ns => time(warmup_ns as f64),
    };
    row("measured", format!("{} after {warm_up} warm-up", time(result.duration_ns as f64)));
    row("rate", format!("{} {operation}/s", grouped(result.rate_per_s)));
    let seconds = result.duration_ns as f64 / 1e9;
    for (name, bytes) in [("sent", result.bytes_sent), ("received", result.bytes_received)] {
        if bytes > 0 {
            row(name, format!("{} of payload", throughput(bytes as f64 / seconds)));
        }
    }
    if let Some(latency) = &result.latency_ns {
        for (name, ns) in [
            ("latency mean", latency.mean),
            ("        min", latency.min as f64),
            ("        p50", latency.p50 as f64),
            ("        p90", latency.p90 as f64),
            ("        p99", latency.p99 as f64),
            ("        p99.9", latency.p99_9 as f64),
            ("        p99.99", latency.p99_99 as f64),
            ("        max", latency.max as f64),
        ] {
            row(name, format!("{:>9}", time(ns)));
        }
    }
    for stage in &result.stages {
        let (p50, p99) = (time(stage.latency_ns.p50 as f64), time(stage.latency_ns.p99 as f64));
        row(&stage.name, format!("{p50:>9} p50, {p99} p99"));
    }
    if let Some(pace) = &result.pace_ns {
        row("pace mean", format!("{:>9} from message to message of a stream", time(pace.mean)));
        let readings = counted(pace.messages_per_reading, "message");
        row(
            "  largest gap",
            format!("{:>9} between two readings of the clock, {readings}", time(pace.gap_max as f64)),
        );
    }
    if let Some(cpu) = &result.client_cpu_per_call {
        let (user, system) = (time(cpu.user_ns), time(cpu.system_ns));
        row("client CPU", format!("{user} user + {system} system, each of {} {operation}", result.messages));
    }
    let established = result.connections.established.map_or("?".to_owned(), |number| number.to_string());
    row("connections", format!("{} requested, {established} established", result.connections.asked));
    match result.error_count() {
        0 => row("errors", "none".to_owned()),
        _ => result.errors.iter().for_each(|(code, number)| row("errors", format!("{number} {code}"))),
    }
    for note in &result.notes {
        row(if note.invalidates { "NOT VALID" } else { "note" }, note.text.clone());
    }
    text
}

/// What a link has done.
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
    text.push_str("\n\n");

    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14}{}", printable::line(&value));
    };
    let quantiles = |of: &Distribution| match of.count {
        0 => "none".to_owned(),
        number => {
            let [p50, p99, max] = [of.p50, of.p99, of.max].map(|ns| time(ns as f64));
            format!("p50 {p50}, p99 {p99}, max {max} ({number} of them)")
        }
    };
    row("measured", time(stats.window_ns as f64));
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
    row("connections", became);
    for (name, direction) in [("up", up), ("down", down)] {
        let (bytes, chunks) = (grouped(direction.bytes as f64), grouped(direction.chunks as f64));
        let most = ByteSize(direction.buffered_bytes_max);
        row(name, format!("{bytes} bytes in {chunks} chunks, at most {most} of a connection under way"));
    }
    row("lateness", quantiles(lateness_ns));
    row("wire idle", format!("{}, gaps {}", percent(wire.idle_share), quantiles(&wire.gaps_ns)));
    let cpu = time(thread.cpu_ns as f64);
    row("its thread", format!("awake {}, {cpu} of processor time", percent(thread.busy_share)));
    if let Some(error) = &stats.last_error {
        row("last error", error.clone());
    }
    text
}
