//! The frame of a page: its head, the bar with its links, the footer, the style and the scripts. A page is one file
//! that loads nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use thalweg_protobuf::printable;

const STYLE: &str = include_str!("../../assets/report.css");
/// What all pages do alike.
const SCRIPT: &str = include_str!("../../assets/page.js");

/// A page. What is text becomes markup here, without characters that turn its direction.
#[derive(Debug)]
pub struct Frame<'a> {
    /// What of thalweg made it, such as `lab`.
    pub part: &'a str,
    /// Of the window.
    pub title: &'a str,
    /// Beside the style of all pages.
    pub style: &'a str,
    /// The sections' names and titles.
    pub links: &'a [(&'a str, &'a str)],
    /// What lies between the bar and the footer.
    pub content: Markup,
    /// Which thalweg.
    pub version: &'a str,
    /// What the footer says besides.
    pub notice: &'a str,
    /// JSON for the scripts.
    pub data: Markup,
    /// Runs before the page's own scripts.
    pub library: Option<&'a str>,
    /// Run behind what all pages do.
    pub scripts: &'a [&'a str],
}

impl Frame<'_> {
    /// The file.
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
