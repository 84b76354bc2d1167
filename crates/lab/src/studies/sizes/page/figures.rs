//! The table of all figures of our own pair, and that of the spikes.

use maud::{Markup, html};
use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::page::parts::{field, scrolled, sorting_head, sure_field};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Interval;

use super::anchor::anchor;
use crate::load::gathered::{Windows, gathered};
use crate::load::{Kind, LabResults, Transport, Work};
use crate::record::{LoadResult, Spike};
use crate::studies::sizes::lines::{Analysis, Cell, Line};

/// Of each line of calls the wait that lies farthest from what is typical beside it, farthest first.
pub(super) fn spikes_table(analysis: &Analysis) -> Markup {
    let typical_ns = |cell: &Cell| cell.typical_ns().unwrap_or_default();
    let ratio = |cell: &Cell, spike: Spike| spike.took_ns as f64 / typical_ns(cell).max(1.0);
    let mut spikes: Vec<(&Line, &Cell, Spike)> = analysis
        .calls()
        .filter_map(|line| {
            let all = line.cells.iter().filter_map(|cell| Some((line, cell, *cell.spikes.first()?)));
            all.max_by(|(_, a, s), (_, b, t)| ratio(a, *s).total_cmp(&ratio(b, *t)))
        })
        .collect();
    spikes.sort_by(|(_, a, s), (_, b, t)| ratio(b, *t).total_cmp(&ratio(a, *s)));
    scrolled(&html! {
        table {
            thead {
                tr {
                    @for head in ["Work", "Wait", "Size", "Transport", "Typical there", "Wait / typical", "After"] {
                        th scope="col" { (head) }
                    }
                }
            }
            tbody {
                @for (line, cell, spike) in spikes {
                    tr {
                        th scope="row" { (linked(line.kind, line.transport, cell.size)) }
                        td { (time(spike.took_ns as f64)) }
                        td { (cell.size) }
                        td { (line.transport) }
                        td { (time(typical_ns(cell))) }
                        td { (count(ratio(cell, spike))) " ×" }
                        td { (time(spike.at_ns as f64)) }
                    }
                }
            }
        }
    })
}

/// The columns of the table of all figures behind its first one. Words stand to the left.
const COLUMNS: [(&str, bool); 23] = [
    ("Transport", true),
    ("Size", false),
    ("Rate", false),
    ("Throughput", false),
    ("Of socket", false),
    ("Median", false),
    ("p90", false),
    ("p95", false),
    ("p99", false),
    ("p99.9", false),
    ("p99.99", false),
    ("Max", false),
    ("Mean", false),
    ("Min", false),
    ("Pace", false),
    ("Largest gap", false),
    ("CPU", false),
    ("Operations", false),
    ("Calls", false),
    ("Errors", false),
    ("Connections", false),
    ("Measured for", false),
    ("Notes", true),
];

pub(super) fn figures_table(results: &LabResults, analysis: &Analysis) -> Markup {
    let ours = results.reference();
    let gathered = gathered(&results.points);
    let own = gathered.iter().filter(|windows| windows.pair.is_none_or(|pair| *pair == ours));
    scrolled(&html! {
        table {
            thead {
                tr {
                    (sorting_head("Work", None))
                    @for (name, words) in COLUMNS { (sorting_head(name, words.then_some("words"))) }
                }
            }
            tbody {
                @for windows in own { (row(windows, analysis)) }
            }
        }
    })
}

fn row(windows: &Windows<'_>, analysis: &Analysis) -> Markup {
    let point = windows.point;
    let kind = Kind::of(point);
    let label = kind.label();
    let class = matches!(point.work, Work::Socket(_)).then_some("reference");
    html! {
        tr class=[class] data-transport=(point.transport) data-kind=(label) {
            th scope="row" { (linked(kind, point.transport, point.size_bytes)) }
            td.words { (point.transport) }
            (field(Some(point.size_bytes.0 as f64), |_| point.size_bytes.to_string()))
            @if let Some(measured) = windows.merged() {
                (measured_fields(&measured, windows, analysis))
            } @else {
                td.words.failed colspan=(COLUMNS.len() - 2) { "no valid window: " (windows.why_not()) }
            }
        }
    }
}

/// A kind's name that leads to the windows of its cell.
fn linked(kind: Kind, transport: Transport, size: ByteSize) -> Markup {
    html! { a href={ "#" (anchor(kind, transport, size)) } { (kind.label()) } }
}

fn measured_fields(measured: &LoadResult, windows: &Windows<'_>, analysis: &Analysis) -> Markup {
    let point = windows.point;
    let kind = Kind::of(point);
    let line = analysis.line(kind, point.transport);
    let cell = line.and_then(|line| line.at(point.size_bytes));
    let share = cell.and_then(|cell| cell.share_of_socket);
    let ends = |interval: Option<Interval>, show: fn(f64) -> String| {
        interval.map(|Interval { low, high }| format!("{} – {}", show(low), show(high)))
    };
    let bytes_per_s = measured.rate_per_s * point.size_bytes.0 as f64;
    let cpu = measured.client_cpu_per_call.map(|cpu| cpu.user_ns + cpu.system_ns);
    let latency = measured.latency_ns;
    let latencies = [
        latency.map(|l| l.p90 as f64),
        latency.and_then(|l| l.p95).map(|ns| ns as f64),
        latency.map(|l| l.p99 as f64),
        latency.map(|l| l.p99_9 as f64),
        latency.map(|l| l.p99_99 as f64),
        latency.map(|l| l.max as f64),
        latency.map(|l| l.mean),
        latency.map(|l| l.min as f64),
        measured.pace_ns.map(|pace| pace.mean),
        measured.pace_ns.map(|pace| pace.gap_max as f64),
        cpu,
    ];
    let connections = measured.connections;
    let shown_connections = |established: f64| {
        if connections.established == Some(connections.asked) {
            established.to_string()
        } else {
            format!("{established} of {}", connections.asked)
        }
    };
    let errors = measured.error_count();
    let shown_errors = match errors {
        0 => "0".to_owned(),
        _ => measured.errors.iter().map(|(code, n)| format!("{n} {code}")).collect::<Vec<_>>().join(", "),
    };
    html! {
        (sure_field(
            Some(measured.rate_per_s),
            |rate| format!("{}/s", count(rate)),
            ends(cell.and_then(|cell| cell.rate_interval), count),
        ))
        (field(Some(bytes_per_s), throughput))
        (field(share, percent))
        (sure_field(
            latency.map(|latency| latency.p50 as f64),
            time,
            ends(cell.and_then(|cell| cell.p50_interval), time),
        ))
        @for latency in latencies { (field(latency, time)) }
        (field(Some(measured.messages as f64), count))
        (field(Some(measured.calls as f64), count))
        (field(Some(errors as f64), |_| shown_errors))
        (field(connections.established.map(f64::from), shown_connections))
        (field(Some(measured.duration_ns as f64), time))
        td.words { (notes(measured, windows).join("; ")) }
    }
}

/// What was noted, and how many windows are not in the figures.
fn notes(measured: &LoadResult, windows: &Windows<'_>) -> Vec<String> {
    let mut notes: Vec<String> = measured.notes.iter().map(|note| note.text.clone()).collect();
    let (all, valid) = (windows.all.len(), windows.valid().count());
    if valid < all {
        notes.push(format!("{} of {all} windows are not valid: {}", all - valid, windows.why_not()));
    }
    notes
}
