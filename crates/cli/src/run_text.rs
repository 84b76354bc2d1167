//! Load results as text.

use std::fmt::Write;

use thalweg_load::{LoadRun, StepRun, Timing, scheduled};
use thalweg_measure::figures::{grouped, percent, throughput, time};
use thalweg_measure::wording::counted;
use thalweg_protobuf::printable;

use crate::bars::bars;
use crate::rows::{Rows, quantiles};

/// Bars in a histogram.
const BARS: usize = 12;
/// Characters in the longest bar.
const BAR_LENGTH: f64 = 40.0;

/// Formats a result with one aligned figure per line.
pub(crate) fn text(run: &LoadRun) -> String {
    let part = run.share.map_or(String::new(), |share| format!("part {share} of "));
    let name = run.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    let mut rows = Rows::new(&format!(
        "{name}{}, {}, {} {} {}",
        run.method,
        match &run.schedule {
            Some(schedule) => {
                format!("{part}{}, at most {} in flight", scheduled(schedule, run.unit()), run.in_flight)
            }
            None => match &run.workers {
                Some(workers) => format!("{part}{workers} in flight, closed loop"),
                None => format!("{part}{} in flight, closed loop", run.in_flight),
            },
        },
        run.connections_phrase(),
        if run.connections_phrase().ends_with("server") { "of" } else { "on" },
        run.targets.join(", "),
    ));
    if !run.tags.is_empty() {
        let tags: Vec<String> = run.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        rows.row("tags", tags.join(", "));
    }
    rows.measured(run.duration_ns, run.warmup_ns);
    let scheduled =
        run.scheduled_per_s.map_or(String::new(), |rate| format!(" of {} scheduled", grouped(rate)));
    if let (Some(lasts_ns), Some(rate)) = (run.stream_for_ns, run.messages_per_s()) {
        rows.row("rate", format!("{} messages/s in streams of {}", grouped(rate), time(lasts_ns as f64)));
    } else if run.flows.is_some() {
        rows.row("rate", format!("{} calls/s", grouped(run.rate_per_s)));
        rows.row("flows", format!("{} flows/s{scheduled}", grouped(run.starts_per_s())));
    } else {
        rows.row("rate", format!("{} calls/s{scheduled}", grouped(run.rate_per_s)));
    }
    let seconds = run.duration_ns as f64 / 1e9;
    for (name, messages, bytes) in
        [("sent", run.messages_sent, run.bytes_sent), ("received", run.messages_received, run.bytes_received)]
    {
        // An interrupted warm-up leaves no measured time.
        let rate = throughput(if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 });
        let messages_per_s = match run.kind.as_str() {
            "unary" => String::new(),
            _ if seconds <= 0.0 => String::new(),
            _ => format!(" ({}/s)", grouped(messages as f64 / seconds)),
        };
        rows.row(name, format!("{}{messages_per_s}, {rate}", counted(messages, "message")));
    }
    for (name, note, timing) in run.timings() {
        rows.row(name, quantiles(&timing.ns, timing.p95(), note));
    }
    if run.late + run.dropped > 0 {
        let unit = run.flows.map_or("", |_| " flows");
        rows.row(
            "late",
            format!("{}{unit} started more than 1 ms late, {} did not start", run.late, run.dropped),
        );
    }
    rows.errors(&run.errors);
    let attempts = run.attempts.text();
    if !attempts.is_empty() {
        rows.row("attempts", format!("{attempts} beyond the first ones"));
    }
    servers(run, &mut rows);
    rows.client_cpu(run.client_cpu_per_call.as_ref(), "per call");
    rows.connections(&run.requested_connections(), run.connections_established);
    run.not_valid.reasons.iter().for_each(|reason| rows.row("NOT VALID", reason.text.clone()));
    run.notes.iter().for_each(|note| rows.row("note", note.text.clone()));
    for condition in &run.conditions {
        rows.row(
            if condition.is_met { "passed" } else { "FAILED" },
            format!("{}: {}", condition.condition, condition.figure),
        );
    }
    if let Some(search) = &run.search {
        let found = |rate| format!("{} {}s/s", grouped(rate), run.unit());
        let found = search.found_per_s.map_or("none".to_owned(), found);
        let conditions = search.conditions.join(", ");
        rows.row(
            "highest rate",
            format!("{found} that meets {conditions}; the figures above are of the last rate"),
        );
        for tried in &search.tries {
            let result = if tried.is_met { "met" } else { "too high" };
            rows.row(
                "",
                format!("{:>9}/s  {result}: {}", grouped(tried.rate_per_s), tried.figures.join(", ")),
            );
        }
    }
    let mut text = rows.text;
    for step in &run.steps {
        let _ = writeln!(text, "\n{}", step_text(step));
    }
    if let Some(latency) = &run.latency {
        text.push_str(&histogram(latency));
    }
    text
}

/// Adds a line per server: `10.0.0.1:80  7500 calls (75.0 %), 750/s, 0 failed, p50 1 ms, p99 3 ms, max 9 ms`. One that
/// was neither called nor connected has only the reason: `10.0.0.2:80  not connected: …`.
fn servers(run: &LoadRun, rows: &mut Rows) {
    let width = run.servers.iter().map(|server| server.server.chars().count()).max().unwrap_or(0);
    for (at, (server, share, rate)) in run.balanced().enumerate() {
        let label = if at == 0 { "servers" } else { "" };
        let why = server.not_connected.as_ref().map(|why| format!("not connected: {why}"));
        if let Some(why) = why.as_ref().filter(|_| server.calls == 0 && server.attempts.text().is_empty()) {
            rows.row(label, format!("{:width$}  {why}", server.server));
            continue;
        }
        let more = [server.attempts.text(), why.unwrap_or_default()];
        let more = more.map(|it| if it.is_empty() { it } else { format!(", {it}") }).concat();
        let failed = server.failed.map_or(String::new(), |failed| format!(", {failed} failed"));
        let latency = server.times().map_or(String::new(), |times| {
            let [p50, p99, max] = times.map(|ns| time(ns as f64));
            format!(", p50 {p50}, p99 {p99}, max {max}")
        });
        let (name, share, rate) = (&server.server, percent(share), grouped(rate));
        let calls = counted(server.calls, "call");
        rows.row(label, format!("{name:width$}  {calls} ({share}), {rate}/s{failed}{latency}{more}"));
    }
}

/// Formats a step: `sign up, new  300 ok, 2 failed (2 CHECK)`, with its latency below.
fn step_text(step: &StepRun) -> String {
    let errors: Vec<String> = step.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let errors = match step.failed {
        0 => String::new(),
        failed => format!(", {failed} failed ({})", errors.join(", ")),
    };
    let latency =
        step.latency.as_ref().map_or("none".to_owned(), |latency| quantiles(&latency.ns, latency.p95(), ""));
    let title = format!("{}, {}: {} ok{errors}", step.flow, step.step, step.ok);
    format!("{}\n{:14}{latency}", printable::line(&title), "")
}

/// Formats the latency distribution.
fn histogram(timing: &Timing) -> String {
    let Some(distribution) = timing.distribution() else {
        return String::new();
    };
    let bars = bars(&distribution, &timing.ns, BARS);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;
    let mut text = "\n".to_owned();
    for (to, count) in bars {
        let length = (count as f64 / most * BAR_LENGTH).ceil() as usize;
        let share = percent(count as f64 / timing.count as f64);
        let _ = writeln!(text, "{:>10}  {:<40}  {count} ({share})", time(to as f64), "█".repeat(length));
    }
    text
}
