//! The table of all figures of our own pair, and that of the spikes.

use super::{concat, escaped, short};
use crate::analyse::windows::{Windows, exclusion, gathered};
use crate::analyse::{Analysis, Cell, Kind, Line};
use crate::figures::{count, percent, throughput, time};
use crate::plan::Work;
use crate::record::{LoadResult, Spike};
use crate::results::LabResults;
use crate::stack::Pair;

/// Of each line of calls the wait that lies farthest from the median beside it, farthest first.
pub(super) fn spikes_table(analysis: &Analysis) -> String {
    let ratio = |cell: &Cell, spike: Spike| spike.latency_ns as f64 / cell.latency.p50.max(1) as f64;
    let mut spikes: Vec<(&Line, &Cell, Spike)> = analysis
        .calls()
        .filter_map(|line| {
            let all = line.cells.iter().filter_map(|cell| Some((line, cell, *cell.spikes.first()?)));
            all.max_by(|(_, a, s), (_, b, t)| ratio(a, *s).total_cmp(&ratio(b, *t)))
        })
        .collect();
    spikes.sort_by(|(_, a, s), (_, b, t)| ratio(b, *t).total_cmp(&ratio(a, *s)));
    let rows = concat(spikes.into_iter().map(|(line, cell, spike)| {
            format!(
                r#"<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} ×</td><td>{}</td></tr>"#,
                escaped(&line.kind.label()),
                time(spike.latency_ns as f64),
                cell.size,
                line.transport,
                time(cell.latency.p50 as f64),
                count(ratio(cell, spike)),
                time(spike.at_ns as f64)
            )
        }));
    let heads = ["Wait", "Size", "Transport", "Median there", "Wait / median", "After"];
    let heads = heads.map(|head| format!(r#"<th scope="col">{head}</th>"#)).concat();
    format!(
        r#"<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">Work</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"#
    )
}

/// The columns of the table of all figures behind its first one. Words stand to the left.
const COLUMNS: [(&str, bool); 20] = [
    ("Transport", true),
    ("Size", false),
    ("Rate", false),
    ("Throughput", false),
    ("Of socket", false),
    ("Median", false),
    ("p90", false),
    ("p99", false),
    ("p99.9", false),
    ("p99.99", false),
    ("Max", false),
    ("Mean", false),
    ("Min", false),
    ("CPU", false),
    ("Operations", false),
    ("Calls", false),
    ("Errors", false),
    ("Connections", false),
    ("Measured for", false),
    ("Notes", true),
];

pub(super) fn figures_table(results: &LabResults, analysis: &Analysis) -> String {
    let heads = COLUMNS.map(|(name, words)| {
        let class = if words { r#" class="words""# } else { "" };
        format!(r#"<th scope="col"{class}><button type="button">{name}</button></th>"#)
    });
    let heads = heads.concat();
    let ours = Pair::ours();
    let gathered = gathered(&results.points);
    let own = gathered.iter().filter(|windows| windows.pair.is_none_or(|pair| *pair == ours));
    let rows = concat(own.map(|windows| row(windows, analysis)));
    format!(
        r#"<div class="scroll" tabindex="0"><table><thead><tr><th scope="col"><button type="button">Work</button></th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"#
    )
}

fn row(windows: &Windows<'_>, analysis: &Analysis) -> String {
    let point = windows.point;
    let kind = Kind { work: point.work, in_flight: point.in_flight };
    let class = if matches!(point.work, Work::Socket(_)) { r#" class="limit""# } else { "" };
    let label = escaped(&kind.label());
    let figures = if let Some(measured) = windows.merged() {
        measured_cells(&measured, windows, analysis)
    } else {
        let reasons = distinct(windows.failures()).join("; ");
        format!(r#"<td class="words failed" colspan="{}">{}</td>"#, COLUMNS.len() - 2, escaped(&reasons))
    };
    format!(
        r#"<tr{class} data-transport="{transport}" data-kind="{label}"><th scope="row">{label}</th><td class="words">{transport}</td>{size}{figures}</tr>"#,
        transport = point.transport,
        size = cell(Some(point.size_bytes.0 as f64), |_| point.size_bytes.to_string()),
    )
}

fn measured_cells(measured: &LoadResult, windows: &Windows<'_>, analysis: &Analysis) -> String {
    let point = windows.point;
    let kind = Kind { work: point.work, in_flight: point.in_flight };
    let line = analysis.line(kind, point.transport);
    let share = line.and_then(|line| line.at(point.size_bytes)?.share_of_socket);
    let bytes_per_s = measured.rate_per_s * point.size_bytes.0 as f64;
    let cpu = measured.client_cpu_per_call.map(|cpu| cpu.user_ns + cpu.system_ns);
    let latency = measured.latency_ns;
    let latencies = [
        latency.map(|l| l.p50 as f64),
        latency.map(|l| l.p90 as f64),
        latency.map(|l| l.p99 as f64),
        latency.map(|l| l.p99_9 as f64),
        latency.map(|l| l.p99_99 as f64),
        latency.map(|l| l.max as f64),
        latency.map(|l| l.mean),
        latency.map(|l| l.min as f64),
        cpu,
    ];
    let notes = notes(measured, windows);
    let connections = measured.connections;
    let established = connections.established.map_or("?".to_owned(), |n| n.to_string());
    let errors = measured.error_count();
    let shown_errors = match errors {
        0 => "0".to_owned(),
        _ => measured.errors.iter().map(|(code, n)| format!("{n} {code}")).collect::<Vec<_>>().join(", "),
    };
    [
        cell(Some(measured.rate_per_s), |rate| format!("{}/s", count(rate))),
        cell(Some(bytes_per_s), throughput),
        cell(share, percent),
        latencies.map(|latency| cell(latency, time)).concat(),
        cell(Some(measured.messages as f64), count),
        cell(Some(measured.calls as f64), count),
        cell(Some(errors as f64), |_| shown_errors),
        cell(connections.established.map(f64::from), |_| {
            if connections.established == Some(connections.asked) {
                established
            } else {
                format!("{established} of {}", connections.asked)
            }
        }),
        cell(Some(measured.duration_ns as f64), time),
        format!(r#"<td class="words">{}</td>"#, escaped(&notes.join("; "))),
    ]
    .concat()
}

/// What was noted, and how many windows are not in the figures.
fn notes(measured: &LoadResult, windows: &Windows<'_>) -> Vec<String> {
    let mut notes: Vec<String> = measured.notes.iter().map(|note| note.text.clone()).collect();
    let (all, good) = (windows.all.len(), windows.good().count());
    if good > 0 && good < all {
        let reasons = distinct(windows.all.iter().filter_map(|window| exclusion(window)));
        notes.push(format!(
            "{} of {all} windows are not in these figures: {}",
            all - good,
            reasons.join("; ")
        ));
    }
    notes
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// A cell that sorts by its value, whatever unit it is shown in.
fn cell(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(value) => format!(r#"<td data-v="{}">{}</td>"#, short(value), escaped(&show(value))),
        None => r#"<td data-v="">–</td>"#.to_owned(),
    }
}
