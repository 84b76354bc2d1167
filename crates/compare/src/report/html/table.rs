//! A table of ratios. On narrow screens each row becomes a card.

use maud::{Markup, html};
use thalweg_measure::figures::ratio_figure;
use thalweg_measure::page::parts::scrolled;

use super::bar::{bar, scale};
use crate::report::model::{FigureComparison, Report};
use crate::report::words;
use crate::verdict::Verdict;

/// Maximum length of a column head with both sides' names; a longer one becomes "ratio".
const RATIO_CHARS_MAX: usize = 28;

/// A row: its head and its figure.
pub(super) type Row<'a> = (Markup, &'a FigureComparison);

/// Formats the figures of one load, or of all loads.
pub(super) fn of_figures(report: &Report, figures: &[FigureComparison]) -> Markup {
    let rows: Vec<Row<'_>> = figures.iter().map(|compared| (name(compared), compared)).collect();
    table(report, "figures", "figure", &rows)
}

/// Formats the judged figures of several loads.
pub(super) fn of_loads(report: &Report, rows: &[Row<'_>]) -> Markup {
    table(report, "loads", "load", rows)
}

/// Formats a table, without the sides' values if no row has them.
fn table(report: &Report, class_of_all: &str, header: &str, rows: &[Row<'_>]) -> Markup {
    if rows.is_empty() {
        return html! { p { "No figures: no window is valid." } };
    }
    let has_values = rows.iter().any(|(_, compared)| compared.a.is_some());
    let ratio = ratio_name(report);
    scrolled(&html! {
        table.compared.(class_of_all) {
            thead {
                tr {
                    th scope="col" { (header) }
                    @if has_values {
                        th scope="col" { (report.a) }
                        th scope="col" { (report.b) }
                    }
                    th scope="col" { (ratio) small { "and 95 %" } }
                    th.words scope="col" { (scale()) }
                    th.words scope="col" { "verdict" }
                }
            }
            tbody {
                @for (header, compared) in rows {
                    tr.(class(compared)) {
                        th scope="row" { (header) }
                        @if has_values {
                            (value(&report.a, compared, compared.a))
                            (value(&report.b, compared, compared.b))
                        }
                        td.sure data-of=(ratio) {
                            span { (ratio_figure(compared.ratio)) }
                            small { (compared.interval_text().unwrap_or_else(|| "no interval".to_owned())) }
                        }
                        td.words.picture { (bar(compared, report.margin)) }
                        td.words.verdict { span.is { (words::verdict(compared)) } }
                    }
                }
            }
        }
    })
}

fn ratio_name(report: &Report) -> String {
    let name = format!("{} ÷ {}", report.b, report.a);
    if name.chars().count() > RATIO_CHARS_MAX { "ratio".to_owned() } else { name }
}

/// Formats a figure's name, and which direction is better.
fn name(compared: &FigureComparison) -> Markup {
    let good = if compared.figure.higher_is_better() { "higher is better" } else { "lower is better" };
    html! {
        (compared.figure.label())
        small { (good) @if compared.is_gated { ", " b { "judged" } } }
    }
}

/// Returns the CSS class of a verdict.
pub(super) fn class(compared: &FigureComparison) -> &'static str {
    match (compared.fails(), compared.verdict) {
        (true, _) => "worse fails",
        (false, Verdict::Better) => "better",
        (false, Verdict::Worse) => "worse",
        (false, Verdict::Same) => "same",
        (false, Verdict::CannotTell) => "cannot-tell",
    }
}

fn value(side: &str, compared: &FigureComparison, value: Option<f64>) -> Markup {
    html! { td data-of=(side) { (bound_value(compared, value)) } }
}

/// Formats a value without line breaks.
pub(super) fn bound_value(compared: &FigureComparison, value: Option<f64>) -> String {
    words::value(compared, value).replace(' ', "\u{202f}")
}
