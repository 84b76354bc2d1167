//! A channels study in a terminal: best numbers, rates over calls in flight, what a point costs, and the verdicts.

use thalweg_measure::figures::{count, percent, ratio_text, time};
use thalweg_measure::text::{aligned, wrapped};

use super::analyse::{Cell, Line, Panel};
use super::analysis::ChannelsAnalysis;
use super::answer::answer;
use super::findings::Verdict;
use super::numbers::Best;
use crate::load::verdict::{Compared, Verdict as Ratios};
use crate::record::CallType;

/// The table of what a point costs is of the point nearest to so many calls in flight.
const IN_FLIGHT_TYPICAL: u32 = 64;

/// The headline, the tables of best numbers, rates and costs, and what limits whom.
pub(super) fn text(study: &ChannelsAnalysis<'_>) -> String {
    let ChannelsAnalysis { results, channels, verdicts, .. } = study;
    let mut text = answer(verdicts, &results.settings).map(|answer| wrapped(&answer)).unwrap_or_default();
    for verdict in verdicts {
        text += &best_numbers(verdict);
    }
    for panel in &channels.panels {
        text += &rates(panel, &channels.in_flight(panel.call));
    }
    for call in channels.calls() {
        if let Some(panel) = channels.panels.iter().find(|panel| panel.call == call) {
            text += &costs(panel, &channels.in_flight(call));
        }
    }
    for verdict in verdicts {
        text +=
            &wrapped(&format!("{}, {}: {} {}", verdict.stack, verdict.place(), verdict.text, verdict.advice));
    }
    text
}

/// Loads, the best number at each, and what it gains.
fn best_numbers(verdict: &Verdict) -> String {
    let rows = &verdict.numbers.rows;
    let has_adaptive = rows.iter().any(|row| row.adaptive.is_some());
    let mut lines =
        vec![["in flight", "best number", "several ÷ one", "adaptive ÷ fixed"].map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| {
        let best = match &row.best {
            Best::Only | Best::One => "1".to_owned(),
            Best::Several(several) => several.connections.to_string(),
            Best::CannotTell => "cannot tell".to_owned(),
        };
        let several = row.told().map(|it| with(&it.over_one, "with", it.connections));
        let adaptive = row.adaptive.as_ref().map(|it| with(&it.share, "of", it.of));
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![row.in_flight.to_string(), best, or_none(several), or_none(adaptive)]
    }));
    for line in lines.iter_mut().filter(|_| !has_adaptive) {
        line.pop();
    }
    format!("{}, {}: best number of connections\n{}\n", verdict.stack, verdict.place(), aligned(&lines))
}

/// `1.83 × (1.6–2.1) with 4`; a question mark where a difference may be there or not.
fn with(compared: &Compared, word: &str, connections: u32) -> String {
    let mark = if compared.verdict == Ratios::CannotTell { "? " } else { "" };
    let ratio = compared.ratio.map_or_else(|| "not measured".to_owned(), ratio_text);
    format!("{mark}{ratio} {word} {connections}")
}

fn rates(panel: &Panel, in_flight: &[u32]) -> String {
    let row = |name: String, cell: &dyn Fn(u32) -> Option<String>| -> Vec<String> {
        let cells = in_flight.iter().map(|&in_flight| cell(in_flight).unwrap_or_else(|| "-".to_owned()));
        std::iter::once(name).chain(cells).collect()
    };
    let mut rows = vec![row(String::new(), &|in_flight| Some(in_flight.to_string()))];
    for line in &panel.lines {
        rows.push(row(line.label(), &|in_flight| Some(rate(line.at(in_flight)?))));
    }
    if panel.ideal(1).is_some() {
        rows.push(row("ideal scaling".to_owned(), &|in_flight| panel.ideal(in_flight).map(count)));
    }
    let (call, network) = (panel.call, panel.network());
    format!("{call}, {network}: calls per second by calls in flight\n{}\n", aligned(&rows))
}

/// A rate, and how far its interval reaches to each side: `40.1 k ±12 %`.
fn rate(cell: &Cell) -> String {
    let reach = cell.rate_interval.map(|interval| interval.half_width().exp() - 1.0);
    let reach = reach.map(|reach| format!(" ±{}", percent(reach))).unwrap_or_default();
    format!("{}{reach}", count(cell.rate_per_s))
}

/// The figures of one number of calls in flight.
fn costs(panel: &Panel, in_flight: &[u32]) -> String {
    let Some(&typical) = in_flight.iter().min_by_key(|it| it.abs_diff(IN_FLIGHT_TYPICAL)) else {
        return String::new();
    };
    let heads = [
        "",
        "p50",
        "p99",
        "p99.9",
        "max",
        "connections",
        "client CPU",
        "server CPU",
        "system calls",
        "wire idle",
        "gaps p50",
        "p99",
    ];
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(panel.lines.iter().filter_map(|line| Some(cost_row(line, line.at(typical)?))));
    let operation = if panel.call == CallType::Unary { "call" } else { "round trip" };
    format!(
        "{}, {}, {typical} in flight; processor time and system calls (client + server) of one {operation}\n{}\n",
        panel.call,
        panel.network(),
        aligned(&rows)
    )
}

fn cost_row(line: &Line, cell: &Cell) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let latency = cell.latency;
    let wire = cell.wire.as_ref().map(|wire| &wire.all);
    let [p50, p99, p99_9, max] =
        [latency.p50, latency.p99, latency.p99_9, latency.max].map(|ns| time(ns as f64));
    vec![
        line.label(),
        p50,
        p99,
        p99_9,
        max,
        or_none(cell.connections.map(|connections| connections.to_string())),
        or_none(cell.client.map(|used| time(used.ns_per_operation))),
        or_none(cell.server.map(|used| time(used.ns_per_operation))),
        or_none(
            cell.system_calls
                .map(|it| format!("{:.2} + {:.2}", it.client_per_operation, it.server_per_operation)),
        ),
        or_none(wire.map(|idle| percent(idle.share))),
        or_none(wire.filter(|idle| idle.gaps > 0).map(|idle| time(idle.p50_ns as f64))),
        or_none(wire.filter(|idle| idle.gaps > 0).map(|idle| time(idle.p99_ns as f64))),
    ]
}
