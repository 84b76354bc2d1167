//! All windows by size and cell, from which the page's figures derive.

use std::collections::BTreeSet;
use std::time::SystemTime;

use maud::{Markup, html};
use thalweg_measure::figures::{bound, count, percent, time};
use thalweg_measure::page::parts::scrolled;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::size::ByteSize;
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::anchor::anchor;
use crate::load::PointResult;
use crate::load::gathered::{MergedCell, gather_cells};
use crate::record::LoadResult;
use crate::studies::sizes::analysis::SizesAnalysis;

const COLUMNS: [&str; 8] =
    ["Cell", "Round", "At", "Rate", "Median or pace", "Waited: client, server", "Taken away", "Remark"];

/// Returns the windows of our own pair and of bare sockets, collapsed by size.
pub(super) fn section(study: &SizesAnalysis<'_>) -> Section {
    let SizesAnalysis { results, own, .. } = study;
    let sizes: BTreeSet<ByteSize> = own.iter().map(MergedCell::size).collect();
    let against_itself = gather_cells(results.aa.iter().map(|aa| &aa.window));
    let began = humantime::parse_rfc3339(&results.started).ok();
    let about = "The windows behind every figure of this page. A window’s time is that since the study began. \
                 “Waited” is the time in which threads were ready to run while others ran, as a share of the window \
                 and summed over threads; “taken away” is how often another thread took a thread’s processor. The \
                 kernel reports both for client and server, but not for the threads of a bare socket.";
    let mut blocks = vec![Block::about(about)];
    blocks.extend(sizes.into_iter().map(|size| {
        let of_size = own.iter().filter(|cell| cell.size() == size);
        folded(&size.to_string(), of_size, began, true)
    }));
    if !against_itself.is_empty() {
        let title = "Ours against ours, for the noise floor";
        blocks.push(folded(title, against_itself.iter(), began, false));
    }
    Section::new("windows", "Windows", "Windows", blocks)
}

fn folded<'a>(
    title: &str,
    cells: impl Iterator<Item = &'a MergedCell<'a>> + Clone,
    began: Option<SystemTime>,
    is_named: bool,
) -> Block {
    let windows: usize = cells.clone().map(|cell| cell.all.len()).sum();
    let table = html! {
        table.windows {
            thead { tr { @for name in COLUMNS { th scope="col" { (name) } } } }
            @for cell in cells { (cell_windows(cell, began, is_named)) }
        }
    };
    Block::Folded(format!("**{title}** · {windows} windows"), vec![Block::Raw(scrolled(&table))])
}

fn cell_windows(cell: &MergedCell<'_>, began: Option<SystemTime>, is_named: bool) -> Markup {
    let point = cell.point;
    let kind = cell.kind();
    let id = is_named.then(|| anchor(kind, point.transport, point.size_bytes));
    html! {
        tbody id=[id] {
            @for (index, window) in cell.all.iter().enumerate() {
                tr {
                    @if index == 0 {
                        th scope="rowgroup" rowspan=(cell.all.len()) {
                            (kind.label()) small { (point.transport) ", " (point.size_bytes) }
                        }
                    }
                    td { (window.round) }
                    (figures(window, began))
                }
            }
        }
    }
}

fn figures(window: &PointResult, began: Option<SystemTime>) -> Markup {
    let measured = window.measured();
    let typical = |it: &LoadResult| {
        it.latency_ns.map(|latency| latency.p50 as f64).or(it.pace_ns.map(|pace| pace.mean))
    };
    let or_none = |shown: Option<String>| shown.unwrap_or_else(|| "–".to_owned());
    html! {
        td { (or_none(measured.and_then(|it| Some(clock(seconds_since(it, began?)?))))) }
        td { (or_none(measured.map(|it| format!("{}/s", count(it.rate_per_s))))) }
        td { (or_none(measured.and_then(typical).map(time))) }
        td { (or_none(window.usage.as_ref().map(waited))) }
        td { (or_none(window.usage.as_ref().map(|usage| count(involuntary_switches(usage) as f64)))) }
        td { (bound(&remark(window))) }
    }
}

/// Returns a window's start in seconds since the study began.
pub(super) fn seconds_since(measured: &LoadResult, began: SystemTime) -> Option<f64> {
    let started = humantime::parse_rfc3339(&measured.started).ok()?;
    Some(started.duration_since(began).map_or(0.0, |since| since.as_secs_f64()))
}

/// Formats a time such as `3:04.5`.
fn clock(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round() as u64;
    format!("{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10)
}

/// Returns the share of a window in which this process's threads were runnable but waited. Above 1 if several waited
/// at once.
pub(super) fn waited_share(usage: &Usage, process: fn(&Usage) -> &ProcessUsage) -> f64 {
    process(usage).waited_ns as f64 / usage.window_ns.max(1) as f64
}

fn waited(usage: &Usage) -> String {
    let shares = [waited_share(usage, |it| &it.client), waited_share(usage, |it| &it.server)];
    shares.map(percent).join(", ")
}

/// Returns the involuntary context switches of client and server together.
pub(super) fn involuntary_switches(usage: &Usage) -> u64 {
    usage.client.involuntary_switches + usage.server.involuntary_switches
}

/// Returns why a window is not valid, or its notes; empty for most windows.
fn remark(window: &PointResult) -> String {
    if let Some(reason) = window.invalid_reason() {
        return format!("not valid: {reason}");
    }
    let notes = window.measured().into_iter().flat_map(|measured| &measured.notes);
    notes.map(|note| note.text.clone()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_seconds_and_tenths() {
        assert_eq!([0.04, 9.96, 61.25, 725.0].map(clock), ["0:00.0", "0:10.0", "1:01.3", "12:05.0"]);
    }
}
