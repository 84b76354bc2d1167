//! What the pages of all studies have in common: the head, the answer, the doubts, the method, and how it is all put
//! together.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figures::bound;
use crate::findings::Doubt;
use crate::report::parts::folded;

const STYLE: &str = include_str!("../../assets/report.css");
/// What the pages of all studies do alike.
const SCRIPT: &str = include_str!("../../assets/page.js");

/// Plots that pages draw by themselves: runs before their own scripts.
pub(crate) const PLOT: &str = include_str!("../../assets/plot.js");
/// Plots beside each other on the same axes, of lines that can be hidden: runs behind [`PLOT`].
pub(crate) const MULTIPLES: &str = include_str!("../../assets/multiples.js");

/// Doubts beyond this many are folded away.
const DOUBTS_OPEN: usize = 3;

/// A page of one study. What is text becomes markup here.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    /// Beside the style of all pages.
    pub(crate) style: &'a str,
    /// The sections’ names and titles; the method comes last by itself.
    pub(crate) links: &'a [(&'a str, &'a str)],
    /// Which study, and when.
    pub(crate) eyebrow: String,
    /// The study in a sentence; none if nothing was measured.
    pub(crate) answer: Option<String>,
    /// What was measured on which machine.
    pub(crate) lede: String,
    pub(crate) cards: Markup,
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) sections: Markup,
    /// How it was measured, in sentences.
    pub(crate) method: Vec<String>,
    /// Names, and what they are.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Which thalweg.
    pub(crate) version: &'a str,
    /// What the footer says besides.
    pub(crate) notice: &'a str,
    /// JSON for the scripts.
    pub(crate) data: Markup,
    /// Runs before the page’s own scripts.
    pub(crate) library: Option<&'a str>,
    /// Run behind what all pages do.
    pub(crate) scripts: &'a [&'a str],
}

impl Page<'_> {
    pub(crate) fn html(self) -> String {
        let answer = self.answer.as_deref().unwrap_or("Nothing was measured.");
        let own = [&[SCRIPT], self.scripts].concat().join("\n");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.title, self.style))
                body {
                    (bar(self.links))
                    main {
                        section.hero {
                            p.eyebrow { (self.eyebrow) }
                            h1 { (bound(answer)) }
                            p.lede { (self.lede) }
                            div.cards { (self.cards) }
                        }
                        (doubts(&self.doubts))
                        (self.sections)
                        (method(&self.method, &self.facts))
                    }
                    footer {
                        "Made by thalweg " (self.version) ". This page is one file and loads nothing." (self.notice)
                    }
                    script type="application/json" id="data" { (self.data) }
                    @if let Some(library) = self.library {
                        script { (PreEscaped(library)) }
                    }
                    script { (PreEscaped(own)) }
                }
            }
        };
        page.into_string()
    }
}

fn head(title: &str, style: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) ", thalweg lab" }
            meta name="generator" content="thalweg lab";
            link rel="icon" href="data:,";
            style { (PreEscaped(STYLE)) (PreEscaped(style)) }
        }
    }
}

fn bar(links: &[(&str, &str)]) -> Markup {
    html! {
        header.bar {
            span.mark {
                svg viewBox="0 0 32 20" width="32" height="20" aria-hidden="true" {
                    path d="M1 4c6 0 7 12 15 12S25 4 31 4" {}
                    path d="M1 9c4 0 8 9 15 9s11-9 15-9" {}
                }
                "thalweg\u{a0}lab"
            }
            nav aria-label="Sections" {
                @for (id, title) in links.iter().chain(&[("method", "Method")]) {
                    a href={ "#" (id) } { (title) }
                }
            }
            button #theme type="button" aria-label="Switch between light and dark" {
                svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" {
                    circle cx="10" cy="10" r="7.2" {}
                    path d="M10 2.8a7.2 7.2 0 0 1 0 14.4z" {}
                }
            }
        }
    }
}

fn doubts(doubts: &[Doubt]) -> Markup {
    html! {
        @if !doubts.is_empty() {
            section.doubts {
                h2 { "Before you use these figures" }
                (folded(doubts, DOUBTS_OPEN, |doubt| html! { (bound(&doubt.to_string())) }))
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
