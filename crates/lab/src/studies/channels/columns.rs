//! Tables of a channels study, for its page and for a terminal.

use thalweg_measure::figures::{NO_BREAK_SPACE, count, percent, ratio_text, time};
use thalweg_measure::page::table::{Columns, Table, TableCell};

use super::analyse::Channels;
use super::findings::{StackVerdict, is_behind, several};
use super::numbers::{Best, LoadRow};
use crate::load::gathered::MergedCell;
use crate::load::verdict::{JudgedRatio, Verdict};
use crate::load::{IdleGaps, WireTraffic};

/// Busy share above which the hop may have been the bottleneck of what it watched.
const HOP_BUSY_SHARE: f64 = 0.8;

/// Returns the table of all figures, with a row per point.
pub(super) fn figures<'c>(
    verdicts: &[StackVerdict],
    points: impl Iterator<Item = &'c MergedCell<'c>>,
) -> Table {
    let over_one = |cell: &MergedCell<'_>| several(verdicts, cell)?.over_one.ratio;
    let direct = |ns: f64| if ns > 0.0 { time(ns) } else { "direct".to_owned() };
    let mut columns = Columns::<&MergedCell<'_>>::default()
        .words("Way", |cell| cell.line_label())
        .words("Call", |cell| cell.point.work.to_string())
        .figure("Round trip", direct, |cell| Some(cell.point.round_trip.as_nanos() as f64))
        .figure("In flight", whole, |cell| Some(cell.point.in_flight.into()))
        .field("Rate", |cell| TableCell::rate(cell.rate(), cell.rate_interval()))
        .field("÷ one", move |cell| TableCell::ratio(over_one(cell)))
        .field("p50", |cell| TableCell::with_interval(cell.latency_named("p50"), time, cell.p50_interval()));
    for name in ["p90", "p95", "p99", "p99.9", "max"] {
        columns = columns.figure(name, time, move |cell| cell.latency_named(name));
    }
    columns
        .figure("Connections", whole, |cell| cell.connections().map(f64::from))
        .figure("Client CPU", time, |cell| Some(cell.client()?.ns()))
        .figure("Server CPU", time, |cell| Some(cell.server()?.ns()))
        .figure("Client busy", percent, |cell| Some(cell.client()?.processors))
        .figure("Server busy", percent, |cell| Some(cell.server()?.processors))
        .figure("Client calls", hundredths, |cell| Some(cell.system_calls?.client_per_operation))
        .figure("Server calls", hundredths, |cell| Some(cell.system_calls?.server_per_operation))
        .figure("Wire idle", percent, |cell| Some(cell.wire?.all.share))
        .figure("Gaps p50", time, |cell| gap(&cell.wire?.all, |it| it.p50_ns))
        .figure("Gaps p99", time, |cell| gap(&cell.wire?.all, |it| it.p99_ns))
        .figure("Errors", count, |cell| Some(cell.errors() as f64))
        .table(points)
}

/// Returns the table of gaps between bytes, with a row per watched point.
pub(super) fn gaps(channels: &Channels<'_>) -> Table {
    let busy = |it: &WireTraffic| {
        let field = TableCell::figure(Some(it.hop_busy_share), percent);
        if it.hop_busy_share > HOP_BUSY_SHARE { field.class("failed") } else { field }
    };
    Columns::<(&MergedCell<'_>, &WireTraffic)>::default()
        .words("Way", |(cell, _)| cell.line_label())
        .words("Call", |(cell, _)| cell.point.work.to_string())
        .figure("In flight", whole, |(cell, _)| Some(cell.point.in_flight.into()))
        .figure("Silent", percent, |(_, wire)| Some(wire.all.share))
        .figure("Each connection", percent, |(_, wire)| Some(wire.each.share))
        .figure("Gaps", count, |(_, wire)| Some(wire.all.gaps as f64))
        .figure("p50", time, |(_, wire)| gap(&wire.all, |it| it.p50_ns))
        .figure("p90", time, |(_, wire)| gap(&wire.all, |it| it.p90_ns))
        .figure("p99", time, |(_, wire)| gap(&wire.all, |it| it.p99_ns))
        .figure("max", time, |(_, wire)| gap(&wire.all, |it| it.max_ns))
        .field("Distribution", |(_, wire)| distribution(&wire.all))
        .field("Hop awake", move |(_, wire)| busy(wire))
        .table(channels.points().filter_map(|cell| Some((cell, cell.wire?))))
}

fn gap(idle: &IdleGaps, ns: fn(&IdleGaps) -> u64) -> Option<f64> {
    (idle.gaps > 0).then_some(ns(idle) as f64)
}

/// Returns the gap histogram. A bucket's position follows from its bound: bounds start at 1 µs and grow by a quarter.
fn distribution(idle: &IdleGaps) -> TableCell {
    let index = |bound: u64| ((bound as f64 / 1000.0).max(1.0).ln() / 1.25_f64.ln()).round();
    let bar = |&(bound, gaps): &(u64, u64)| {
        (index(bound), gaps as f64, format!("up to {}: {gaps}", time(bound as f64)))
    };
    TableCell { bars: idle.buckets.iter().map(bar).collect(), ..TableCell::words("Gaps by length") }
}

/// Returns the table of a stack's loads, with the best number of connections and its gain.
pub(super) fn numbers(verdict: &StackVerdict) -> Table {
    let rows = &verdict.numbers.rows;
    let mut columns = Columns::<&LoadRow>::default()
        .figure("In flight", whole, |row| Some(row.in_flight.into()))
        .field("Best number", |row| best(row))
        .field("Several ÷ one", |row| {
            ratio(row.most_informative().map(|it| (&it.over_one, it.connections)), "with")
        });
    if rows.iter().any(|row| row.adaptive.is_some()) {
        columns = columns.field("Adaptive ÷ fixed", |row| {
            let word = if row.adaptive.as_ref().is_some_and(is_behind) { "behind" } else { "of" };
            ratio(row.adaptive.as_ref().map(|it| (&it.share, it.of)), word)
        });
    }
    Table { is_fixed: true, ..columns.table(rows) }
}

fn best(row: &LoadRow) -> TableCell {
    match &row.best {
        Best::Only => TableCell::figure(Some(1.0), whole),
        Best::One => TableCell::figure(Some(1.0), whole).class("best one"),
        Best::Several(it) => TableCell::figure(Some(it.connections.into()), whole).class("best several"),
        Best::CannotTell => TableCell::words("cannot tell").class("best open"),
    }
}

/// Formats `1.83 × (1.6–2.1) with 4`, with a question mark if a difference is possible but not shown.
fn ratio(compared: Option<(&JudgedRatio, u32)>, word: &str) -> TableCell {
    let Some((compared, connections)) = compared else { return TableCell::figure(None, whole) };
    let mark = if compared.verdict == Verdict::CannotTell { "? " } else { "" };
    let text = match compared.ratio {
        Some(ratio) if ratio.interval.is_none() => format!("{} (too few windows)", ratio_text(ratio)),
        Some(ratio) => ratio_text(ratio),
        None => "not measured".to_owned(),
    };
    let value = compared.ratio.map(|it| it.ratio);
    TableCell { value, ..TableCell::words(format!("{mark}{text} {word}{NO_BREAK_SPACE}{connections}")) }
}

fn whole(number: f64) -> String {
    number.to_string()
}

fn hundredths(number: f64) -> String {
    format!("{number:.2}")
}
