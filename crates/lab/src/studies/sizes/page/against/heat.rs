//! Table of ratios to one peer, coloured by verdict.

use maud::{Markup, html};
use thalweg_measure::figures::{interval_figure, ratio_figure};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Ratio;

use super::details::details;
use crate::load::Kind;
use crate::load::Transport;
use crate::load::verdict::{JudgedRatio, Verdict};
use crate::stack::Pair;
use crate::studies::sizes::compare::{Against, Aggregate, ComparedCell, StacksCompared};

/// Ratio, in either direction, from which a cell has the deepest colour.
const DEEPEST: f64 = 8.0;
/// Number of sizes above which a table is set more tightly.
const SIZES_WIDE: usize = 9;

pub(super) fn table(comparison: &StacksCompared<'_>, (peer, pair): (usize, &Pair)) -> Markup {
    let ours = &comparison.ours;
    let sizes = comparison.sizes();
    let aggregates = comparison.aggregates();
    html! {
        table.heat.many[sizes.len() > SIZES_WIDE] {
            caption {
                "Rates of " (ours) " divided by those of " (pair) ", over message sizes, with the 95 % interval"
            }
            thead {
                tr {
                    th scope="col" { "Calls" }
                    @for size in &sizes { th scope="col" { (size) } }
                    th scope="col" { "All sizes" }
                }
            }
            tbody {
                @for (index, line) in comparison.lines().into_iter().enumerate() {
                    @let all = aggregates.iter().find(|it| it.pair == *pair && (it.kind, it.transport) == line);
                    (rows(&HeatLine { comparison, pair, peer, index, kind: line.0, transport: line.1 }, &sizes, all))
                }
            }
        }
    }
}

/// A kind of call over a transport, compared with one pair.
struct HeatLine<'a> {
    comparison: &'a StacksCompared<'a>,
    pair: &'a Pair,
    /// Index of the pair among peers.
    peer: usize,
    index: usize,
    kind: Kind,
    transport: Transport,
}

/// Returns the row of a line's rates, and for lone calls that of median latencies.
fn rows(line: &HeatLine<'_>, sizes: &[ByteSize], all: Option<&Aggregate>) -> Markup {
    let all = all.map(|it| Ratio { ratio: it.mean, interval: it.interval, pairs: 0 });
    html! {
        (row(line, sizes, &line.transport.to_string(), true, all))
        @if line.kind == Kind::LONE_CALL {
            (row(line, sizes, &format!("{}, median time: lower is better", line.transport), false, None))
        }
    }
}

fn row(line: &HeatLine<'_>, sizes: &[ByteSize], label: &str, is_rate: bool, all: Option<Ratio>) -> Markup {
    html! {
        tr {
            th scope="row" { (line.kind.label()) " " small { (label) } }
            @for &size in sizes {
                @match cell_at(line, size) {
                    Some((cell, against)) => (heat_cell(line, cell, against, is_rate)),
                    None => td {},
                }
            }
            td.all {
                @if let Some(all) = all { (figure(all, "mixed")) }
            }
        }
    }
}

fn cell_at<'a>(line: &HeatLine<'a>, size: ByteSize) -> Option<(&'a ComparedCell<'a>, &'a Against<'a>)> {
    let cell = line.comparison.line(line.kind, line.transport).find(|cell| cell.size == size)?;
    Some((cell, cell.against(line.pair)?))
}

/// Returns a ratio with its interval below, or `word` without one.
fn figure(ratio: Ratio, word: &str) -> Markup {
    html! {
        b { (ratio_figure(ratio.ratio)) }
        small { (interval_figure(ratio).as_deref().unwrap_or(word)) }
    }
}

/// Returns a cell coloured by its verdict, which a sign and a word also state.
fn heat_cell(line: &HeatLine<'_>, cell: &ComparedCell<'_>, against: &Against<'_>, is_rate: bool) -> Markup {
    let compared = if is_rate { Some(against.rate) } else { against.median };
    let has_failed = cell.ours.excluded() + against.theirs.excluded() > 0;
    let details = details(line.comparison, cell, against, line.peer);
    field(compared, has_failed, Some((format!("line={}", line.index), details)))
}

/// Returns a field of a table of ratios. `more`: the choice made by a click, and the details shown on hover.
pub(super) fn field(
    compared: Option<JudgedRatio>,
    has_failed: bool,
    more: Option<(String, Markup)>,
) -> Markup {
    let Some(compared) = compared else { return html! { td {} } };
    let word = compared.verdict.name();
    coloured(
        compared,
        more,
        &html! {
            @match compared.ratio {
                Some(ratio) => (figure(ratio, word)),
                None => { b { "–" } small { (word) } }
            }
            @if has_failed { em title="some windows failed" { "!" } }
        },
    )
}

/// Returns a field with the colour and sign of its verdict.
pub(super) fn coloured(compared: JudgedRatio, more: Option<(String, Markup)>, content: &Markup) -> Markup {
    let (class, sign) = match compared.verdict {
        Verdict::Faster => ("faster", "▲"),
        Verdict::NoDifference => ("same", "="),
        Verdict::Slower => ("slower", "▼"),
        Verdict::CannotTell => ("open", "?"),
        Verdict::NotMeasured => ("open", ""),
    };
    let depth = compared.ratio.map_or(0.0, depth);
    html! {
        td class=(class) style=(format!("--d:{depth:.2}")) data-sets=[more.as_ref().map(|(sets, _)| sets)] {
            i aria-hidden="true" { (sign) }
            span.unseen { (compared.verdict.name()) ", " }
            (content)
            @if let Some((_, details)) = more { template { (details) } }
        }
    }
}

/// Returns a cell's colour depth, 0..1. It follows the end of the interval nearest to 1, so an uncertain large ratio
/// is pale.
fn depth(ratio: Ratio) -> f64 {
    let ends = ratio.interval.map_or([ratio.ratio; 2], |interval| [interval.low, interval.high]);
    let nearest = ends.map(|end| end.ln().abs()).into_iter().fold(f64::INFINITY, f64::min);
    (nearest / DEEPEST.ln()).clamp(0.12, 1.0)
}
