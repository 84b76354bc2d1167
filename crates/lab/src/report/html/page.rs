//! What the pages of all studies have in common: the head, the answer, the doubts, the method, and how it is all put together.

use super::{concat, doubts_section, escaped, filled};
use crate::figures::bound;

const TEMPLATE: &str = include_str!("../../../assets/page.html");
const STYLE: &str = include_str!("../../../assets/report.css");
/// What the pages of all studies do alike.
const SCRIPT: &str = include_str!("../../../assets/page.js");

/// A page of one study. What is text becomes markup here; the rest is markup.
pub(crate) struct Page<'a> {
    /// Text.
    pub(crate) title: &'a str,
    /// Beside the style of all pages.
    pub(crate) style: &'a str,
    /// The sections’ names and titles; the method comes last by itself.
    pub(crate) links: &'a [(&'a str, &'a str)],
    /// Text: which study, and when.
    pub(crate) eyebrow: String,
    /// Text: the study in a sentence; none if nothing was measured.
    pub(crate) answer: Option<String>,
    /// Text: where it was measured.
    pub(crate) place: String,
    pub(crate) cards: String,
    /// Text.
    pub(crate) doubts: Vec<String>,
    pub(crate) sections: String,
    pub(crate) method: String,
    pub(crate) facts: String,
    /// Text: which thalweg.
    pub(crate) version: &'a str,
    /// What the footer says besides.
    pub(crate) notice: &'a str,
    /// JSON for the script.
    pub(crate) data: String,
    /// Runs before the page’s own scripts.
    pub(crate) library: Option<&'a str>,
    /// Run behind what all pages do.
    pub(crate) scripts: &'a [&'a str],
}

impl Page<'_> {
    pub(crate) fn html(self) -> String {
        let link = |&(id, title): &(&str, &str)| format!("<a href=\"#{id}\">{}</a>", escaped(title));
        let answer = self.answer.unwrap_or_else(|| "Nothing was measured.".to_owned());
        let own = [&[SCRIPT], self.scripts].concat().join("\n");
        let scripts = self.library.iter().copied().chain([own.as_str()]);
        filled(
            TEMPLATE,
            &[
                ("title", escaped(self.title)),
                ("styles", [STYLE, self.style].join("\n")),
                ("links", concat(self.links.iter().chain(&[("method", "Method")]).map(link))),
                ("eyebrow", escaped(&self.eyebrow)),
                ("answer", escaped(&bound(&answer))),
                ("place", escaped(&self.place)),
                ("cards", self.cards),
                ("doubts", doubts_section(&self.doubts)),
                ("sections", self.sections),
                ("method", self.method),
                ("facts", self.facts),
                ("version", escaped(self.version)),
                ("notice", self.notice.to_owned()),
                ("data", self.data),
                ("scripts", concat(scripts.map(|script| format!("<script>\n{script}\n</script>\n")))),
            ],
        )
    }
}
