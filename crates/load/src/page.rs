//! HTML page of a run: a single file that loads nothing else.

mod bins;
mod charts;
mod conditions;
mod data;
mod errors;
mod facts;
mod figures;
mod heat;
mod over_time;
mod search;
mod servers;
mod spread;
mod steps;
mod summary;
mod timings;
mod traffic;

use maud::{Markup, PreEscaped, html};
use thalweg_measure::figures::bound;
use thalweg_measure::page::charts as plots;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::{eyebrow, script_json, warnings_section};

use crate::csv::csv;
use crate::run::LoadRun;

const STYLE: &str = include_str!("../assets/load.css");
const SCRIPT: &str = include_str!("../assets/load.js");

/// Number of notes shown; more are collapsed.
const NOTES_OPEN: usize = 4;
const UNFINISHED: &str = "The run is not complete: these are interim figures.";
/// Maximum JSON size embedded for download. Longer runs offer only the CSV, so that the page can still be mailed.
const JSON_BYTES_MAX: usize = 1_000_000;

/// Returns the HTML page of a run. It contains the drawn data, and the run for download.
pub fn page(run: &LoadRun) -> String {
    let plot_data = data::plot_data(run);
    let json = script_json(run);
    let json = (json.0.len() <= JSON_BYTES_MAX).then_some(json);
    let sections = [
        ("conditions", "Conditions", conditions::section(run)),
        ("search", "Search", search::section(run)),
        ("time", "Over time", charts::over_time(run, &plot_data)),
        ("spread", "Distribution", charts::spread(run, &plot_data)),
        ("timings", "Percentiles", timings::section(run)),
        ("errors", "Errors", errors::section(run)),
        ("steps", "Steps", steps::section(run)),
        ("servers", "Servers", servers::section(run)),
        ("traffic", "Traffic", traffic::section(run)),
        ("facts", "Run", Some(facts::section(run))),
    ];
    let there = sections.iter().filter_map(|(id, title, section)| Some((*id, *title, section.as_ref()?)));
    let links: Vec<(&str, &str)> = there.clone().map(|(id, title, _)| (id, title)).collect();
    let style = [plots::STYLE, STYLE].concat();
    Frame {
        part: "load",
        title: run.name.as_ref().unwrap_or(&run.method),
        style: &style,
        links: &links,
        content: html! {
            (warning(run))
            section.hero {
                p.eyebrow { (eyebrow(summary::loop_name(run), &run.started, &run.ended)) }
                h1 { (bound(&summary::headline(run))) }
                p.lede { (summary::lede(run)) }
                div.cards { (summary::cards(run)) }
            }
            (notes(run))
            @for (id, title, section) in there {
                section id=(id) { h2 { (title) } (section) }
            }
            (saved(run, json.as_ref()))
        },
        version: env!("CARGO_PKG_VERSION"),
        notice: plots::NOTICE,
        data: script_json(&plot_data),
        library: Some(plots::LIBRARY),
        scripts: &[plots::SCRIPT, plots::ENDS, SCRIPT],
    }
    .html()
}

/// Warning at the top of an invalid run.
fn warning(run: &LoadRun) -> Markup {
    let invalidating: Vec<&str> = run.not_valid.reasons.iter().map(|reason| reason.text.as_str()).collect();
    let title = "Not valid: these figures do not describe the server";
    warnings_section("invalid", title, NOTES_OPEN, &invalidating)
}

fn notes(run: &LoadRun) -> Markup {
    let others = run.notes.iter().map(|note| note.text.as_str());
    let all: Vec<&str> = run.so_far.then_some(UNFINISHED).into_iter().chain(others).collect();
    warnings_section("notes", "Notes", NOTES_OPEN, &all)
}

/// Download links. The script creates the files from data in the page.
fn saved(run: &LoadRun, json: Option<&Markup>) -> Markup {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let name: String = run.method.chars().map(|c| if is_plain(c) { c } else { '-' }).take(80).collect();
    html! {
        section.saved hidden {
            p {
                "Save "
                a data-saves="csv" download={ (name) ".csv" } href="#" { "the intervals as CSV" }
                @if json.is_some() {
                    " or "
                    a data-saves="json" download={ (name) ".json" } href="#" { "the run as JSON" }
                    ", with all histograms, as " code { "-O json" } " writes it and " code { "thalweg merge" }
                    " reads it"
                }
                "."
            }
        }
        script type="text/csv" id="csv" { (PreEscaped(csv(run))) }
        @if let Some(json) = json {
            script type="application/json" id="json" { (json) }
        }
    }
}

#[cfg(test)]
mod tests;
