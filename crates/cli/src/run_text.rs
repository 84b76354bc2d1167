//! The result of a load on any method, for people.

use std::fmt::Write;

use thalweg_load::{LoadRun, StepRun, Timing, scheduled};
use thalweg_measure::figures::{grouped, percent, throughput, time};
use thalweg_measure::wording::counted;
use thalweg_protobuf::printable;

use crate::bars::bars;

/// Bars of a histogram.
const BARS: usize = 12;
/// Letters of the longest bar.
const BAR_LENGTH: f64 = 40.0;

/// Short, aligned, one figure a line.
pub(crate) fn text(run: &LoadRun) -> String {
    let part = run.share.map_or(String::new(), |share| format!("part {share} of "));
    let name = run.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    let mut text = format!(
        "{name}{}, {}, {} on {}",
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
        counted(u64::from(run.connections), "connection"),
        run.targets.join(", "),
    );
    text = format!("{}\n\n", printable::line(&text));
    let mut row = |name: &str, value: String| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name:<14}{}", printable::line(&value));
    };
    if !run.tags.is_empty() {
        let tags: Vec<String> = run.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        row("tags", tags.join(", "));
    }
    let warm_up = if run.warmup_ns == 0 { "no".to_owned() } else { time(run.warmup_ns as f64) };
    row("measured", format!("{} after {warm_up} warm-up", time(run.duration_ns as f64)));
    let scheduled =
        run.scheduled_per_s.map_or(String::new(), |rate| format!(" of {} scheduled", grouped(rate)));
    if let (Some(lasts_ns), Some(rate)) = (run.stream_for_ns, run.messages_per_s()) {
        row("rate", format!("{} messages/s in streams of {}", grouped(rate), time(lasts_ns as f64)));
    } else if run.flows.is_some() {
        row("rate", format!("{} calls/s", grouped(run.rate_per_s)));
        row("flows", format!("{} flows/s{scheduled}", grouped(run.starts_per_s())));
    } else {
        row("rate", format!("{} calls/s{scheduled}", grouped(run.rate_per_s)));
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
        row(name, format!("{}{messages_per_s}, {rate}", counted(messages, "message")));
    }
    let what = if run.schedule.is_some() { "from the scheduled start" } else { "from the start" };
    for (name, timing, note) in [
        ("latency", &run.latency, what),
        ("service", &run.service, "from the actual start"),
        ("wait", &run.wait, "from the scheduled to the actual start"),
        ("first message", &run.first_message, ""),
        ("reply", &run.reply, "from a request of a stream to its response"),
        ("flow", &run.flow, "all steps of a flow, including think time"),
        ("failed", &run.failed_latency, "failed calls"),
    ] {
        if let Some(timing) = timing {
            row(name, quantiles(timing, note));
        }
    }
    if run.late + run.dropped > 0 {
        let unit = run.flows.map_or("", |_| " flows");
        row("late", format!("{}{unit} started more than 1 ms late, {} did not start", run.late, run.dropped));
    }
    match run.failed {
        0 => row("errors", "none".to_owned()),
        _ => run.errors.iter().for_each(|(code, count)| row("errors", format!("{count} {code}"))),
    }
    if let Some(cpu) = &run.client_cpu_per_call {
        let (user, system) = (time(cpu.user_ns), time(cpu.system_ns));
        row("client CPU", format!("{user} user + {system} system per call"));
    }
    let established = run.connections_established.map_or("?".to_owned(), |number| number.to_string());
    row("connections", format!("{} requested, {established} established", run.connections));
    run.not_valid.reasons.iter().for_each(|reason| row("NOT VALID", reason.text.clone()));
    run.notes.iter().for_each(|note| row("note", note.text.clone()));
    for gate in &run.gates {
        row(if gate.is_kept { "passed" } else { "FAILED" }, format!("{}: {}", gate.gate, gate.figure));
    }
    if let Some(search) = &run.search {
        let found = |rate| format!("{} {}s/s", grouped(rate), run.unit());
        let found = search.found_per_s.map_or("none".to_owned(), found);
        let conditions = search.conditions.join(", ");
        row(
            "highest rate",
            format!("{found} that meets {conditions}; the figures above are of the last rate"),
        );
        for tried in &search.tries {
            let kept = if tried.is_kept { "met" } else { "too high" };
            row("", format!("{:>9}/s  {kept}: {}", grouped(tried.rate_per_s), tried.figures.join(", ")));
        }
    }
    for step in &run.steps {
        let _ = writeln!(text, "\n{}", step_text(step));
    }
    if let Some(latency) = &run.latency {
        text.push_str(&histogram(latency));
    }
    text
}

/// `sign up, new  300 ok, 2 failed (2 CHECK)` and its latency below.
fn step_text(step: &StepRun) -> String {
    let errors: Vec<String> = step.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let errors = match step.failed {
        0 => String::new(),
        failed => format!(", {failed} failed ({})", errors.join(", ")),
    };
    let latency = step.latency.as_ref().map_or("none".to_owned(), |latency| quantiles(latency, ""));
    let title = format!("{}, {}: {} ok{errors}", step.flow, step.step, step.ok);
    format!("{}\n{:14}{latency}", printable::line(&title), "")
}

fn quantiles(timing: &Timing, note: &str) -> String {
    let ns = &timing.ns;
    let quantiles = [
        ("p50", Some(ns.p50)),
        ("p90", Some(ns.p90)),
        ("p95", timing.p95()),
        ("p99", Some(ns.p99)),
        ("p99.9", Some(ns.p99_9)),
        ("max", Some(ns.max)),
    ];
    let known = quantiles.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", time(ns? as f64))));
    let quantiles: Vec<String> = known.collect();
    let note = if note.is_empty() { String::new() } else { format!("; {note}") };
    format!("mean {}, {}{note}", time(ns.mean), quantiles.join(", "))
}

/// How many took how long.
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
