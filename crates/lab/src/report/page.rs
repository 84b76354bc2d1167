//! What the pages of all studies have in common: the answer, the doubts, the method, and how it is all put together.

use maud::{Markup, html};

use thalweg_measure::figures::bound;
use thalweg_measure::page::frame::Frame;
use thalweg_measure::page::parts::folded;

use crate::study::directory::RESULTS_FILE;

/// The name of the table in the study's directory.
pub(crate) const CSV_FILE: &str = "results.csv";

/// Plots that pages draw by themselves: runs before their own scripts.
pub(crate) const PLOT: &str = include_str!("../../assets/plot.js");
/// Plots beside each other on the same axes, of lines that can be hidden: runs behind [`PLOT`].
pub(crate) const MULTIPLES: &str = include_str!("../../assets/multiples.js");

/// The name of the fact that is the command.
const COMMAND: &str = "Command";

/// Doubts beyond this many are folded away.
const DOUBTS_OPEN: usize = 3;

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
