//! Frame of all studies' pages: answer, doubts and method.

use maud::{Markup, html};

use thalweg_measure::figures::bound;
use thalweg_measure::page::charts;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::{eyebrow, method_section, warnings_section};
use thalweg_measure::page::section::Section;

use super::Report;
use super::origin::{COMMAND, Facts, Origin};
use crate::findings::Doubt;
use crate::study::directory::{CSV_FILE, RESULTS_FILE};

/// Number of doubts shown before the rest are collapsed.
const DOUBTS_OPEN: usize = 3;

/// A study's report: the parts of its page, and its other formats.
pub(crate) struct StudyReport<'r> {
    pub(crate) origin: Origin<'r>,
    /// Title; the page appends “, thalweg lab”.
    pub(crate) title: &'static str,
    /// Name above the answer.
    pub(crate) name: &'static str,
    /// Answer in a sentence. `None` if nothing was measured or can be claimed.
    pub(crate) answer: Option<String>,
    /// Why there is no answer, if too many windows are not valid.
    pub(crate) unanswered: Option<String>,
    /// A sentence on what was measured and on which machine.
    pub(crate) lede: String,
    /// Cards with the main figures.
    pub(crate) cards: Markup,
    /// Doubts about the figures.
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) sections: Vec<Section>,
    /// Method in sentences.
    pub(crate) method: Vec<String>,
    /// Names and values in addition to the origin's.
    pub(crate) facts: Facts,
    /// The figures as a table.
    pub(crate) csv: String,
    /// Tables and findings for a terminal.
    pub(crate) text: String,
    /// Figures that documents quote, as JSON.
    pub(crate) condensed: Option<String>,
}

impl StudyReport<'_> {
    pub(crate) fn into_report(self) -> Report {
        let links = self.sections.iter();
        let links = links.filter_map(|section| Some((section.id.as_str(), section.link.as_deref()?)));
        let links: Vec<(&str, &str)> = links.chain([("method", "Method")]).collect();
        let facts = self.origin.facts(self.facts);
        let (command, facts): (Facts, Facts) = facts.into_iter().partition(|(name, _)| *name == COMMAND);
        let answer = self.unanswered.as_ref().or(self.answer.as_ref());
        let answer = answer.map_or("Nothing was measured.", String::as_str);
        let content = html! {
            section.hero {
                p.eyebrow { (eyebrow(self.name, self.origin.started, self.origin.ended)) }
                h1 { (bound(answer)) }
                p.lede { (self.lede) }
                @for (_, command) in &command { (self::command(command)) }
                div.cards { (self.cards) }
            }
            (warnings_section("warnings", "Before you use these figures", DOUBTS_OPEN, &self.doubts))
            @for section in &self.sections { (section.html()) }
            (method_section(&self.method, &facts))
        };
        let page = Frame {
            part: "lab",
            title: self.title,
            style: charts::STYLE,
            links: &links,
            content,
            version: &self.origin.versions.thalweg,
            notice: charts::NOTICE,
            data: html! { "null" },
            library: Some(charts::LIBRARY),
            scripts: &[charts::SCRIPT, charts::ENDS, charts::PLOTS],
        };
        Report {
            page: page.html(),
            csv: self.csv,
            text: self.text,
            condensed: self.condensed,
            doubts: self.doubts,
            unanswered: self.unanswered,
        }
    }
}

/// Returns the command that repeats the study, with a copy button, and links to the files next to the page.
fn command(command: &str) -> Markup {
    html! {
        p.command {
            code { (command) }
            button type="button" data-copies=(command) { "Copy" }
            span {
                "Beside this page: " a href=(CSV_FILE) download { "CSV" } ", " a href=(RESULTS_FILE) download { "JSON" }
            }
        }
    }
}
