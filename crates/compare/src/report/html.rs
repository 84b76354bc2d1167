//! One self-contained page, in the style of the lab's.

use maud::{Markup, html};
use thalweg_lab::figures::ratio_figure;
use thalweg_lab::report::{Page, card, field, scrolled, sure_field};

use super::model::{CellReport, Compared, Report};
use super::words;
use crate::verdict::Verdict;

/// Bars reach from half to double.
const SCALE: f64 = std::f64::consts::LN_2;
/// How wide the bars are, and half of it.
const BAR: f64 = 200.0;

const STYLE: &str = "
section h3 { margin: 28px 0 12px; }
.compared .better { color: var(--faster); font-weight: 650; }
.compared .worse { color: var(--slower); font-weight: 650; }
.compared svg { display: block; }
.compared .margin { fill: var(--grid); }
.compared .one { stroke: var(--muted); }
.compared .bar-of { stroke: var(--text); stroke-width: 3; }
.compared .point { fill: var(--accent); }
";

/// All reports of one call of the command.
pub fn page(reports: &[Report], now: &str) -> String {
    let sections = html! {
        @for (number, report) in reports.iter().enumerate() {
            section id={ "comparison-" (number) } {
                h2 { (report.b) " against " (report.a) }
                @for cell in &report.cells { (of_cell(report, cell)) }
                @if !report.overall.is_empty() {
                    h3 { "All " (report.cells.len()) " loads, geometric mean" }
                    (table(report, &report.overall))
                }
            }
        }
    };
    let answers: Vec<String> =
        reports.iter().map(|it| format!("{} against {}: {}.", it.b, it.a, it.headline())).collect();
    let mut doubts: Vec<String> = reports.iter().flat_map(|report| report.warnings.clone()).collect();
    doubts.dedup();
    let first = reports.first();
    let version =
        first.and_then(|it| it.versions.as_ref()).map_or(env!("CARGO_PKG_VERSION"), |it| &it.thalweg);
    Page {
        title: "Comparison",
        style: STYLE,
        links: &[("comparison-0", "Figures")],
        eyebrow: format!("Comparison · {}", now.split('T').next().unwrap_or_default()),
        answer: Some(answers.join(" ")),
        lede: first.and_then(words::place).unwrap_or_default(),
        cards: html! { @for report in reports { (cards(report)) } },
        doubts,
        sections,
        method: reports.iter().map(words::method).collect(),
        facts: Vec::new(),
        version,
        notice: "",
        data: html! { "{}" },
        library: None,
        scripts: &["page.makeTheme();"],
    }
    .html()
}

/// One for each figure that is judged.
fn cards(report: &Report) -> Markup {
    let figures = if report.overall.is_empty() {
        report.cells.first().map_or(&[][..], |cell| &cell.figures)
    } else {
        &report.overall
    };
    html! {
        @for compared in figures.iter().filter(|compared| compared.is_gated) {
            (card(
                &format!("{}, {} ÷ {}", compared.figure.label(), report.b, report.a),
                &format!("{} ×", ratio_figure(compared.ratio)),
                &format!("{}: {}", compared.ends().unwrap_or_default(), words::verdict(compared)),
            ))
        }
    }
}

fn of_cell(report: &Report, cell: &CellReport) -> Markup {
    html! {
        h3 { (cell.conditions.line()) }
        (table(report, &cell.figures))
    }
}

fn table(report: &Report, figures: &[Compared]) -> Markup {
    scrolled(&html! {
        table.compared {
            thead {
                tr {
                    th scope="col" { "figure" }
                    th scope="col" { (report.a) }
                    th scope="col" { (report.b) }
                    th scope="col" { (report.b) " ÷ " (report.a) }
                    th.words scope="col" { "half to double, and the margin" }
                    th.words scope="col" { "verdict" }
                }
            }
            tbody {
                @for compared in figures {
                    tr {
                        th scope="row" { (compared.figure.label()) }
                        (field(compared.a, |value| compared.figure.shown(value)))
                        (field(compared.b, |value| compared.figure.shown(value)))
                        (sure_field(Some(compared.ratio), ratio_figure, compared.ends()))
                        td.words { (bar(compared, report.margin)) }
                        td.words.(class(compared.verdict)) { (words::verdict(compared)) }
                    }
                }
            }
        }
    })
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "same",
        Verdict::CannotTell => "cannot-tell",
    }
}

/// Where the interval lies beside 1 and the margin, by its logarithm.
fn bar(compared: &Compared, margin: f64) -> Markup {
    let at = |ratio: f64| (BAR / 2.0 * (1.0 + (ratio.ln() / SCALE).clamp(-1.0, 1.0))).round();
    let (from, to) = (at(1.0 / (1.0 + margin)), at(1.0 + margin));
    html! {
        svg viewBox={ "0 0 " (BAR) " 16" } width=(BAR) height="16" aria-hidden="true" {
            rect.margin x=(from) y="0" width=(to - from) height="16" {}
            line.one x1=(at(1.0)) x2=(at(1.0)) y1="0" y2="16" {}
            @if let Some(interval) = compared.interval {
                line.bar-of x1=(at(interval.low)) x2=(at(interval.high)) y1="8" y2="8" {}
            }
            circle.point cx=(at(compared.ratio)) cy="8" r="4" {}
        }
    }
}
