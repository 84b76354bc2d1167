//! What the pages of all studies have in common: the answer, the doubts, the method, and how it is all put together.

use maud::{Markup, html};

use thalweg_measure::figures::bound;
use thalweg_measure::page::charts;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::{eyebrow, folded};
use thalweg_measure::page::section::Section;

use crate::study::directory::RESULTS_FILE;

/// The name of the table in the study's directory.
pub(crate) const CSV_FILE: &str = "results.csv";

/// The name of the fact that is the command.
const COMMAND: &str = "Command";

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
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Version of thalweg.
    pub(crate) version: &'a str,
}

impl StudyPage<'_> {
    pub(crate) fn html(self) -> String {
        let links: Vec<(&str, &str)> = self
            .sections
            .iter()
            .filter_map(|section| Some((section.id.as_str(), section.link.as_deref()?)))
            .collect();
        Page {
            title: self.title,
            style: charts::STYLE,
            links: &links,
            eyebrow: eyebrow(self.name, self.started, self.ended),
            answer: self.answer.cloned(),
            lede: self.lede,
            cards: self.cards,
            doubts: self.doubts,
            sections: html! { @for section in &self.sections { (section.html()) } },
            method: self.method,
            facts: self.facts,
            version: self.version,
            notice: charts::NOTICE,
            data: html! { "null" },
            library: Some(charts::LIBRARY),
            scripts: &[charts::SCRIPT, charts::ENDS, charts::PLOTS],
        }
        .html()
    }
}

/// A page of one study. What is text becomes markup here.
pub struct Page<'a> {
    /// The page’s title; “, thalweg lab” is added.
    pub title: &'a str,
    /// Beside the style of all pages.
    pub style: &'a str,
    /// The sections’ names and titles; the method comes last by itself.
    pub links: &'a [(&'a str, &'a str)],
    /// Which study, and when.
    pub eyebrow: String,
    /// The study in a sentence; none if nothing was measured.
    pub answer: Option<String>,
    /// What was measured on which machine.
    pub lede: String,
    /// Figures that are worth a glance.
    pub cards: Markup,
    /// What a reader must know before using the figures.
    pub doubts: Vec<String>,
    /// The sections themselves.
    pub sections: Markup,
    /// How it was measured, in sentences.
    pub method: Vec<String>,
    /// Names, and what they are.
    pub facts: Vec<(&'static str, String)>,
    /// Which thalweg.
    pub version: &'a str,
    /// What the footer says besides.
    pub notice: &'a str,
    /// JSON for the scripts.
    pub data: Markup,
    /// Runs before the page’s own scripts.
    pub library: Option<&'a str>,
    /// Run behind what all pages do.
    pub scripts: &'a [&'a str],
}

impl Page<'_> {
    /// The page.
    pub fn html(self) -> String {
        let (command, facts): (Vec<_>, Vec<_>) =
            self.facts.into_iter().partition(|(name, _)| *name == COMMAND);
        let answer = self.answer.as_deref().unwrap_or("Nothing was measured.");
        let content = html! {
            section.hero {
                p.eyebrow { (self.eyebrow) }
                h1 { (bound(answer)) }
                p.lede { (self.lede) }
                @for (_, command) in &command { (self::command(command)) }
                div.cards { (self.cards) }
            }
            (doubts(&self.doubts))
            (self.sections)
            (method(&self.method, &facts))
        };
        let links = [self.links, &[("method", "Method")]].concat();
        Frame {
            part: "lab",
            title: self.title,
            style: self.style,
            links: &links,
            content,
            version: self.version,
            notice: self.notice,
            data: self.data,
            library: self.library,
            scripts: self.scripts,
        }
        .html()
    }
}

/// The fact that is the command with these arguments, as a shell reads it.
pub(crate) fn command_fact(arguments: &[String]) -> (&'static str, String) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let quoted = |argument: &String| {
        if argument.chars().all(is_plain) && !argument.is_empty() {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    };
    let words = std::iter::once("thalweg".to_owned()).chain(arguments.iter().map(quoted));
    (COMMAND, words.collect::<Vec<_>>().join(" "))
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

fn doubts(doubts: &[String]) -> Markup {
    html! {
        @if !doubts.is_empty() {
            section.doubts {
                h2 { "Before you use these figures" }
                (folded(doubts, DOUBTS_OPEN, |doubt| html! { (bound(doubt)) }))
            }
        }
    }
}

fn method(sentences: &[String], facts: &[(&'static str, String)]) -> Markup {
    html! {
        section #method {
            h2 { "How it was measured" }
            div.columns {
                ul.method {
                    @for sentence in sentences { li { (bound(sentence)) } }
                }
                dl.facts {
                    @for (name, value) in facts { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_quoted_for_a_shell() {
        let words = ["lab", "--data", "it's.jsonl", "--out", ""].map(str::to_owned);
        assert_eq!(command_fact(&words).1, r"thalweg lab --data 'it'\''s.jsonl' --out ''");
    }
}
