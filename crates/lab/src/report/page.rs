//! What the pages of all studies have in common: the answer, the doubts, the method, and how it is all put together.

use maud::{Markup, html};

use thalweg_measure::figures::bound;
use thalweg_measure::page::charts;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::{doubts, eyebrow, method};
use thalweg_measure::page::section::Section;

use super::origin::{COMMAND, Facts};
use crate::study::directory::RESULTS_FILE;

/// The name of the table in the study's directory.
pub(crate) const CSV_FILE: &str = "results.csv";

/// Doubts beyond this many are folded away.
const DOUBTS_OPEN: usize = 3;

/// A study's page, described by its sections.
pub(crate) struct StudyPage<'a> {
    /// Title. The page adds “, thalweg lab”.
    pub(crate) title: &'a str,
    /// Name above the answer.
    pub(crate) name: &'a str,
    /// RFC 3339 timestamps.
    pub(crate) started: &'a str,
    pub(crate) ended: &'a str,
    /// The study in a sentence. `None` if nothing was measured.
    pub(crate) answer: Option<&'a String>,
    /// What was measured, and on which machine.
    pub(crate) lede: String,
    /// Cards of the main figures.
    pub(crate) cards: Markup,
    /// What a reader must know before using the figures.
    pub(crate) doubts: Vec<String>,
    pub(crate) sections: Vec<Section>,
    /// How it was measured, in sentences.
    pub(crate) method: Vec<String>,
    /// Names and values.
    pub(crate) facts: Facts,
    /// Version of thalweg.
    pub(crate) version: &'a str,
}

impl StudyPage<'_> {
    pub(crate) fn html(self) -> String {
        let links = self.sections.iter();
        let links = links.filter_map(|section| Some((section.id.as_str(), section.link.as_deref()?)));
        let links: Vec<(&str, &str)> = links.chain([("method", "Method")]).collect();
        let (command, facts): (Facts, Facts) = self.facts.into_iter().partition(|(name, _)| *name == COMMAND);
        let answer = self.answer.map_or("Nothing was measured.", String::as_str);
        let content = html! {
            section.hero {
                p.eyebrow { (eyebrow(self.name, self.started, self.ended)) }
                h1 { (bound(answer)) }
                p.lede { (self.lede) }
                @for (_, command) in &command { (self::command(command)) }
                div.cards { (self.cards) }
            }
            (doubts("warnings", "Before you use these figures", DOUBTS_OPEN, &self.doubts))
            @for section in &self.sections { (section.html()) }
            (method(&self.method, &facts))
        };
        Frame {
            part: "lab",
            title: self.title,
            style: charts::STYLE,
            links: &links,
            content,
            version: self.version,
            notice: charts::NOTICE,
            data: html! { "null" },
            library: Some(charts::LIBRARY),
            scripts: &[charts::SCRIPT, charts::ENDS, charts::PLOTS],
        }
        .html()
    }
}

/// The command that repeats the study, to copy, and the files beside the page.
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
