//! Summary sentence, description of the load, and key figures.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, percent, time};
use thalweg_measure::wording::counted;

use super::figures::integer;
use crate::run::LoadRun;

pub(super) fn loop_name(run: &LoadRun) -> &'static str {
    if run.is_open() { "Load, open loop" } else { "Load, closed loop" }
}

/// Returns the rate and the latency.
pub(super) fn headline(run: &LoadRun) -> String {
    let Some(latency) = &run.latency else {
        return match run.failed {
            0 => "No call finished".to_owned(),
            failed => format!("No call succeeded: {} failed", integer(failed as f64)),
        };
    };
    let rate = match run.scheduled_per_s {
        Some(scheduled) => {
            let (rate, unit) = (integer(run.starts_per_s()), run.unit());
            format!("{rate} of {} scheduled {unit}s/s", integer(scheduled))
        }
        None => format!("{} calls/s with {} in flight", integer(run.rate_per_s), run.in_flight),
    };
    // The duration of a stream is configured, not measured.
    let (rate, latency) = match run.messages_per_s() {
        Some(messages) => {
            (format!("{} messages/s with {} in flight", integer(messages), run.in_flight), run.reply.as_ref())
        }
        None => (rate, Some(latency)),
    };
    let latency = latency
        .map(|latency| format!("; p50 {}, p99 {}", time(latency.ns.p50 as f64), time(latency.ns.p99 as f64)));
    let failed = match run.failed {
        0 => String::new(),
        _ => format!("; {} failed", percent(run.failed_share())),
    };
    format!("{rate}{}{failed}", latency.unwrap_or_default())
}

/// Describes method, targets and load.
pub(super) fn lede(run: &LoadRun) -> Markup {
    let in_flight = counted(u64::from(run.in_flight), "call");
    html! {
        @if let Some(name) = &run.name { strong { (name) } ": " }
        code { (run.method) }
        @if run.kind != "scenario" { " (" (run.kind) ")" } @else { ", a scenario," }
        " on "
        @for (index, target) in run.targets.iter().enumerate() {
            @if index > 0 { ", " }
            code { (target) }
        }
        @if let Some(share) = run.share { ", part " (share) " of a distributed load," }
        @if let Some(schedule) = &run.schedule {
            ", schedule " code { (schedule) }
            @if let Some(spacing) = &run.spacing { ", " (spacing) " arrivals" }
            ", up to " (in_flight) " in flight"
        } @else {
            " by " (counted(u64::from(run.in_flight), "worker"))
            @if let Some(workers) = &run.workers { "; active: " code { (workers) } }
        }
        " over " (run.connections_phrase()) "."
        @for (key, value) in &run.tags { " " code { (key) "=" (value) } }
    }
}

pub(super) fn cards(run: &LoadRun) -> Markup {
    let seconds = time(run.duration_ns as f64);
    let rate = match run.scheduled_per_s {
        Some(scheduled) if scheduled > 0.0 => {
            let unit = run.flows.map_or("", |_| " flows");
            format!("{} of {}{unit} scheduled", percent(run.starts_per_s() / scheduled), integer(scheduled))
        }
        _ => format!("{} calls in {seconds}", integer(run.ok as f64)),
    };
    let quantiles = run
        .latency
        .as_ref()
        .map(|latency| latency.ns)
        .map_or([None; 4], |ns| [ns.p50, ns.p99, ns.p99_9, ns.max].map(Some));
    let from = if run.is_open() { "from the scheduled start" } else { "from the start" };
    let kept = run.conditions.iter().filter(|condition| condition.is_met).count();
    let (verdict, figure) =
        if kept == run.conditions.len() { (" kept", "passed") } else { (" broken", "failed") };
    let failed = format!("{} of {} calls", integer(run.failed as f64), integer(run.calls() as f64));
    html! {
        (card("", "Rate", &format!("{}/s", integer(run.rate_per_s)), &rate))
        @for (name, ns) in ["p50", "p99", "p99.9", "Max"].into_iter().zip(quantiles) {
            (card("", name, &ns.map_or("–".to_owned(), |ns| time(ns as f64)), from))
        }
        (card(if run.failed == 0 { "" } else { " broken" }, "Errors", &errors(run), &failed))
        @if !run.conditions.is_empty() {
            (card(verdict, "Conditions", figure, &format!("{kept} of {} passed", run.conditions.len())))
        }
    }
}

/// A card as on other pages, with a verdict.
fn card(verdict: &str, title: &str, figure: &str, detail: &str) -> Markup {
    html! {
        div class={ "card" (verdict) } {
            h2 { (title) }
            p.figure { (bound(figure)) }
            p { (bound(detail)) }
        }
    }
}

fn errors(run: &LoadRun) -> String {
    match run.calls() {
        0 => "–".to_owned(),
        _ => percent(run.failed_share()),
    }
}
