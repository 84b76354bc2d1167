//! One self-contained page, in the style of the lab's: the verdict first, then what it is told from.

mod answer;
mod bar;
mod loads;
mod reading;
mod table;

use maud::html;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::{Download, doubts, source};

use super::csv::csv;
use super::json::json;
use super::model::Report;

const STYLE: &str = include_str!("../../assets/compare.css");
/// Items of a list beyond this many are folded away.
const ITEMS_OPEN: usize = 4;

/// All reports of one call of the command, which `command` is, as a shell takes it.
pub fn page(reports: &[Report], now: &str, command: &str) -> String {
    let (json, csv) = (json(reports), csv(reports));
    let downloads = [
        Download { name: "comparison.csv", media: "text/csv", content: &csv },
        Download { name: "comparison.json", media: "application/json", content: &json },
    ];
    let version = reports.first().and_then(|it| it.versions.as_ref());
    Frame {
        part: "compare",
        title: &answer::title(reports),
        style: STYLE,
        links: &[
            ("comparison-0", "Figures"),
            ("reading", "How to read it"),
            ("method", "Method"),
            ("source", "Data"),
        ],
        content: html! {
            (answer::hero(reports, now))
            (doubts("failures", "Worse by more than the margin", ITEMS_OPEN, &failures(reports)))
            (doubts("warnings", "Before you use these figures", ITEMS_OPEN, &warnings(reports)))
            @for (number, report) in reports.iter().enumerate() { (loads::section(number, report)) }
            (reading::section(reports))
            (reading::method(reports))
            (source(command, &downloads))
        },
        version: version.map_or(env!("CARGO_PKG_VERSION"), |it| &it.thalweg),
        notice: "",
        data: html! { "{}" },
        library: None,
        scripts: &["page.makeTheme();"],
    }
    .html()
}

/// By what each side fails, and which side, where there are several; nothing where the cards say it all.
fn failures(reports: &[Report]) -> Vec<String> {
    let of = |report: &Report| {
        let side = if reports.len() > 1 { format!("{}: ", report.b) } else { String::new() };
        report.failures.iter().map(|failure| format!("{side}{failure}")).collect::<Vec<_>>()
    };
    let untold = |report: &&Report| {
        report.failures.len() > answer::figures(report).iter().filter(|it| it.fails()).count()
    };
    reports.iter().filter(untold).flat_map(of).collect()
}

/// What a reader must know, each once.
fn warnings(reports: &[Report]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for warning in reports.iter().flat_map(|report| &report.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    warnings
}
