//! Frame of an HTML report: head element, navigation bar, footer, style sheets and scripts, all in one file.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use thalweg_protobuf::printable;

const STYLE: &str = include_str!("../../assets/report.css");
/// Script shared by all pages.
const SCRIPT: &str = include_str!("../../assets/page.js");

/// A page. [`html`](Self::html) escapes the text fields and replaces unprintable characters, such as bidi controls.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Subcommand that made the page, such as `lab`.
    pub part: &'a str,
    /// Title of the browser window.
    pub title: &'a str,
    /// CSS of this page, added to the shared style sheet.
    pub style: &'a str,
    /// Sections of the navigation bar: element id and title.
    pub links: &'a [(&'a str, &'a str)],
    /// Main content, between the navigation bar and the footer.
    pub content: Markup,
    /// Version of thalweg.
    pub version: &'a str,
    /// Additional text of the footer, inserted without a leading space.
    pub notice: &'a str,
    /// JSON for the scripts, from [`script_json`](super::parts::script_json).
    pub data: Markup,
    /// Script that runs before all others, such as a charting library.
    pub library: Option<&'a str>,
    /// Scripts of this page. They run after the shared script.
    pub scripts: &'a [&'a str],
}

impl Frame<'_> {
    /// Returns the complete HTML file.
    pub fn html(self) -> String {
        let own = [&[SCRIPT], self.scripts].concat().join("\n");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.part, self.title, self.style))
                body {
                    (bar(self.part, self.links))
                    main { (self.content) }
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
        printable::html(&page.into_string()).into_owned()
    }
}

fn head(part: &str, title: &str, style: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) ", thalweg " (part) }
            meta name="generator" content={ "thalweg " (part) };
            link rel="icon" href="data:,";
            style { (PreEscaped(STYLE)) (PreEscaped(style)) }
        }
    }
}

fn bar(part: &str, links: &[(&str, &str)]) -> Markup {
    html! {
        header.bar {
            span.mark {
                svg viewBox="0 0 32 20" width="32" height="20" aria-hidden="true" {
                    path d="M1 4c6 0 7 12 15 12S25 4 31 4" {}
                    path d="M1 9c4 0 8 9 15 9s11-9 15-9" {}
                }
                "thalweg\u{a0}" (part)
            }
            nav aria-label="Sections" {
                @for (id, title) in links {
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
