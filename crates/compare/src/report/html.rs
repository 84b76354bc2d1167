//! A self-contained HTML page in the lab's style: the verdict first, then its evidence.

mod answer;
mod bar;
mod loads;
mod reading;
mod table;

use maud::html;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::{Download, source_section, warnings_section};

use super::csv::csv;
use super::json::json;
use super::model::Report;

const STYLE: &str = include_str!("../../assets/compare.css");
/// Maximum number of unfolded list items.
const ITEMS_OPEN: usize = 4;

/// Formats all reports of one run of the command. `command` is its shell command line.
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
            (warnings_section("failures", "Worse by more than the margin", ITEMS_OPEN, &failures(reports)))
            (warnings_section("warnings", "Before you use these figures", ITEMS_OPEN, &warnings(reports)))
            @for (number, report) in reports.iter().enumerate() { (loads::section(number, report)) }
            (reading::section(reports))
            (reading::method(reports))
            (source_section(command, &downloads))
        },
        version: version.map_or(env!("CARGO_PKG_VERSION"), |it| &it.thalweg),
        notice: "",
        data: html! { "{}" },
        library: None,
        scripts: &["page.makeTheme();"],
    }
    .html()
}

/// Returns the failures of each side, prefixed with its name if there are several. Empty if the cards show them all.
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

/// Returns the distinct warnings.
fn warnings(reports: &[Report]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for warning in reports.iter().flat_map(|report| &report.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    warnings
}
