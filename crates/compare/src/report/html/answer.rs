//! The verdict and the figures behind it.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, ratio_figure};
use thalweg_measure::wording::counted;

use super::table::{bound_value, class};
use crate::report::model::{FigureComparison, Report};
use crate::report::words;

/// Returns the page's title.
pub(super) fn title(reports: &[Report]) -> String {
    match reports {
        [] => "Nothing was compared".to_owned(),
        [one] => answer(one),
        [first, ..] => format!("{} compared with {}", counted(reports.len() as u64, "result"), first.a),
    }
}

/// Formats the part that is visible without scrolling.
pub(super) fn hero(reports: &[Report], now: &str) -> Markup {
    html! {
        section.hero {
            p.eyebrow { "Comparison · " (now.split('T').next().unwrap_or_default()) }
            h1 {
                @for (number, report) in reports.iter().enumerate() {
                    @if reports.len() > 1 {
                        a.answer href={ "#comparison-" (number) } { (bound(&answer(report))) }
                    } @else {
                        (bound(&answer(report)))
                    }
                }
            }
            @if let Some(first) = reports.first() { (lede(reports, first)) }
            div.cards { @for report in reports { (cards(report)) } }
        }
    }
}

fn answer(report: &Report) -> String {
    format!("{} against {}: {}", report.b, report.a, report.headline())
}

/// Formats what was compared, and on which machine.
fn lede(reports: &[Report], first: &Report) -> Markup {
    let load = match first.cells.as_slice() {
        [one] => one.conditions.line(),
        several => counted(several.len() as u64, "load"),
    };
    let others = if let [one] = reports { one.b.as_str() } else { "each other one" };
    html! {
        p.lede { (load) "; " (bound(&words::method(first))) }
        p.lede.small {
            b { (first.a) } " is the base: ratios are " (others) " ÷ " (first.a) "."
            @if let Some(machine) = words::machine_and_version(first) { " " (machine) "." }
        }
    }
}

/// Returns the figures over all loads, or those of the only load.
pub(super) fn figures(report: &Report) -> &[FigureComparison] {
    if report.overall.is_empty() {
        report.cells.first().map_or(&[][..], |cell| &cell.figures)
    } else {
        &report.overall
    }
}

/// Formats a card for each judged figure.
fn cards(report: &Report) -> Markup {
    html! {
        @for compared in figures(report).iter().filter(|compared| compared.is_gated) { (card(report, compared)) }
    }
}

fn card(report: &Report, compared: &FigureComparison) -> Markup {
    let over = if compared.a.is_none() { " over all loads" } else { "" };
    let values = compared.a.zip(compared.b).map(|(a, b)| {
        let shown = |value| bound_value(compared, Some(value));
        format!("from {} to {}", shown(a), shown(b))
    });
    let interval = match compared.interval_text() {
        Some(ends) => format!("95 %: {ends}"),
        None => "no interval".to_owned(),
    };
    html! {
        div.card.(class(compared)) {
            h2 { (compared.figure.label()) (over) ", " (report.b) " ÷ " (report.a) }
            p.figure { (ratio_figure(compared.ratio)) "\u{a0}×" }
            p { span.is { (words::verdict(compared)) } }
            p { (bound(&interval)) @if let Some(values) = values { "; " (bound(&values)) } }
        }
    }
}
