//! Statements side by side, with their verdicts.

use maud::{Markup, html};

use super::inline::inline;
use crate::wording::counted;

/// A statement as a card: verdict, sentences and figures.
#[derive(Debug, Default)]
pub struct Statement {
    /// Element id.
    pub id: String,
    /// CSS class, which determines the colour.
    pub class: &'static str,
    /// Verdict, in a few words.
    pub verdict: String,
    /// Text of the statement.
    pub text: String,
    /// Names and sentences.
    pub facts: Vec<(&'static str, String)>,
    /// Names and texts of figures, unfolded by a click.
    pub figures: Vec<(String, String)>,
}

impl Statement {
    pub(super) fn html(&self) -> Markup {
        html! {
            article.claim.(self.class) id=(self.id) {
                p.outcome { (self.verdict) }
                h3 { (inline(&self.text)) }
                dl { @for (name, text) in &self.facts { dt { (name) } dd { (inline(text)) } } }
                @if !self.figures.is_empty() {
                    details {
                        summary { (counted(self.figures.len() as u64, "figure")) }
                        table { tbody {
                            @for (name, text) in &self.figures {
                                tr { th scope="row" { (inline(name)) } td { (inline(text)) } }
                            }
                        } }
                    }
                }
            }
        }
    }
}
