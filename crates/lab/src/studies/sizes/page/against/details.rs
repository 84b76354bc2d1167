//! Details of a field in tables of ratios: rates and latencies of both, and the ratio of each pair of windows.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, count, percent, ratio_text, time};
use thalweg_measure::page::chart::LineStyle;

use super::names::{line_name, line_style, socket};
use crate::load::gathered::MergedCell;
use crate::load::verdict::{JudgedRatio, Verdict};
use crate::studies::sizes::compare::{Against, ComparedCell, StacksCompared};

/// Width and margin of the strip of ratios, px.
const STRIP: (f64, f64) = (240.0, 6.0);

/// Returns the details. `peer`: index of the peer.
pub(super) fn details(
    comparison: &StacksCompared<'_>,
    cell: &ComparedCell<'_>,
    against: &Against<'_>,
    peer: usize,
) -> Markup {
    let ours = &comparison.ours;
    html! {
        b { (line_name((cell.kind, cell.transport))) ", " (cell.size) }
        (side(&line_style(ours, None), &cell.ours))
        (side(&line_style(&against.pair, Some(peer)), &against.theirs))
        @if let Some(reference) = cell.reference {
            (row(&socket(), Some(reference.rate_per_s)))
            p { (ours) " reaches " (percent(reference.share.ratio)) " of it" }
        }
        p {
            @match against.rate.ratio {
                Some(ratio) => {
                    strong { (bound(&ratio_text(ratio))) } ", " (ratio.pairs) " pairs of windows: "
                    (words(comparison, against.rate))
                }
                None => strong { (words(comparison, against.rate)) },
            }
        }
        @if let Some((median, ratio)) = against.median.and_then(|median| Some((median, median.ratio?))) {
            p { "median time " strong { (bound(&ratio_text(ratio))) } ": " (words(comparison, median)) }
        }
        (strip(&cell.ours, &against.theirs))
    }
}

fn row(style: &LineStyle, rate: Option<f64>) -> Markup {
    let rate = rate.map_or_else(|| "–".to_owned(), |rate| format!("{}/s", count(rate)));
    html! { div { i style={ "background:var(--" (style.colour) ")" } {} span { (style.name) } span { (rate) } } }
}

fn side(style: &LineStyle, cell: &MergedCell<'_>) -> Markup {
    let (left_out, all) = (cell.excluded(), cell.rounds.len());
    let mut reasons: Vec<&String> =
        cell.rounds.iter().filter_map(|window| window.outcome.as_ref().err()).collect();
    reasons.dedup();
    html! {
        (row(style, cell.rate()))
        @if let Some(it) = cell.latency() {
            p { "median " (time(it.p50 as f64)) ", p99 " (time(it.p99 as f64)) ", max " (time(it.max as f64)) }
        }
        @for (index, reason) in reasons.into_iter().enumerate() {
            p.failed {
                "left out: " @if index == 0 { (left_out) " of " (all) " windows: " } (reason)
            }
        }
        @if cell.limited() > 0 {
            p { (cell.limited()) " of " (all) " windows: its client was the limit" }
        }
    }
}

pub(super) fn words(comparison: &StacksCompared<'_>, compared: JudgedRatio) -> String {
    match compared.verdict {
        Verdict::Faster => format!("{} is faster", comparison.ours),
        Verdict::NoDifference => "no difference".to_owned(),
        Verdict::Slower => format!("{} is slower", comparison.ours),
        Verdict::CannotTell => {
            "cannot tell: the interval is too wide, or there are too few windows".to_owned()
        }
        Verdict::NotMeasured => "not measured".to_owned(),
    }
}

/// Draws a dot for the ratio of each round, to show the spread.
fn strip(ours: &MergedCell<'_>, theirs: &MergedCell<'_>) -> Markup {
    let rate =
        |cell: &MergedCell<'_>, index: usize| Some(cell.rounds.get(index)?.outcome.as_ref().ok()?.rate_per_s);
    let ratio = |index| Some(rate(ours, index)? / rate(theirs, index)?);
    let ratios: Vec<f64> = (0..ours.rounds.len()).filter_map(ratio).collect();
    if ratios.len() < 2 {
        return html! {};
    }
    let low = (ratios.iter().copied().fold(1.0, f64::min) * 0.97).ln();
    let high = (ratios.iter().copied().fold(1.0, f64::max) * 1.03).ln();
    let (width, margin) = STRIP;
    let x =
        |ratio: f64| format!("{:.0}", margin + (width - 2.0 * margin) * (ratio.ln() - low) / (high - low));
    let dot = |(index, ratio): (usize, &f64)| format!("M{} {}h0", x(*ratio), 10 + index % 2 * 6);
    let dots: String = ratios.iter().enumerate().map(dot).collect();
    html! {
        svg.strip { path.one d={ "M" (x(1.0)) " 2v22" } {} text x=(x(1.0)) y="33" { "1" } path d=(dots) {} }
    }
}
