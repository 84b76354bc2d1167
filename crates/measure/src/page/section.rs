//! Sections of a page as data: headings, sentences, tables, charts and choices between them.

use maud::{Markup, html};

use super::bars::{Bars, bars};
use super::chart::{Chart, Way};
use super::inline::inline;
use super::statement::Statement;
use super::table::Table;
use super::when::when_json;
pub use super::when::{When, when};

/// A choice of the reader. Buttons initially have their first option.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Name in [`When`].
    pub name: &'static str,
    /// What is chosen.
    pub label: String,
    /// Value and text of each option.
    pub options: Vec<(String, String)>,
    /// Index of the initial option of a list.
    pub initial: usize,
    /// A drop-down list in place of buttons.
    pub is_list: bool,
    /// When the choice itself is shown.
    pub when: When,
}

impl Choice {
    /// Returns a choice by buttons.
    pub fn buttons<V: Into<String>, T: Into<String>>(
        name: &'static str,
        label: &str,
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let options = options.into_iter().map(|(value, text)| (value.into(), text.into())).collect();
        Self { name, label: label.to_owned(), options, ..Self::default() }
    }

    /// Returns a choice from a list.
    pub fn list<V: Into<String>, T: Into<String>>(
        name: &'static str,
        label: &str,
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        Self { is_list: true, ..Self::buttons(name, label, options) }
    }

    /// The choice, shown under a condition only.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    fn html(&self) -> Markup {
        let condition = when_json(&self.when);
        html! {
            @if self.is_list {
                label data-when=[condition] {
                    (self.label) " "
                    select data-choice=(self.name) {
                        @for (index, (value, text)) in self.options.iter().enumerate() {
                            option value=(value) selected[index > 0 && index == self.initial] { (text) }
                        }
                    }
                }
            } @else {
                div.choices role="group" aria-label=(self.label) data-choice=(self.name) data-when=[condition] {
                    @for (index, (value, text)) in self.options.iter().enumerate() {
                        button type="button" data-value=(value) aria-pressed=(index == 0) { (text) }
                    }
                }
            }
        }
    }
}

/// A section.
#[derive(Debug, Default)]
pub struct Section {
    /// Element id.
    pub id: String,
    /// Title in the navigation bar. `None` if the bar does not list the section.
    pub link: Option<String>,
    /// Heading, or nothing.
    pub heading: String,
    /// Content.
    pub blocks: Vec<Block>,
}

impl Section {
    /// Returns a section.
    pub fn new(id: &str, link: &str, heading: &str, blocks: Vec<Block>) -> Self {
        Self {
            id: id.to_owned(),
            link: (!link.is_empty()).then(|| link.to_owned()),
            heading: heading.to_owned(),
            blocks,
        }
    }

    /// Returns the section as HTML.
    pub fn html(&self) -> Markup {
        html! {
            section id=(self.id) {
                @if !self.heading.is_empty() { h2 { (inline(&self.heading)) } }
                @for block in &self.blocks { (block.html()) }
            }
        }
    }
}

/// A part of a section. In its sentences `code` is in back quotes, `**bold**` between asterisks, `[text](file)` links
/// to an element or to a file beside the page, and `{name}` stands for the text of the option that is chosen.
#[derive(Debug)]
pub enum Block {
    /// Heading of the blocks that follow.
    Heading(String),
    /// A sentence that answers the section's question.
    Sentence(String),
    /// What the section shows.
    About(String),
    /// How to read what is above.
    Hint(String),
    /// Choices, side by side.
    Choices(Vec<Choice>),
    /// Buttons that hide the lines of these ways in all charts.
    Legend(Vec<Way>),
    /// Large charts, two beside each other.
    Charts(Vec<Chart>),
    /// Charts below each other, as wide as the page.
    Wide(Vec<Chart>),
    /// Small charts beside each other.
    Multiples(Vec<Chart>),
    /// Panels of bars.
    Bars(Vec<Bars>),
    /// What colours mean: a custom property of the style sheet, and text.
    Key(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Small tables beside each other, with their titles.
    Tables(Vec<(String, Table)>),
    /// Topics, and what was found.
    Findings(Vec<(String, String)>),
    /// Statements side by side.
    Statements(Vec<Statement>),
    /// Blocks that a click unfolds.
    Folded(String, Vec<Block>),
    /// Blocks shown under a condition.
    When(When, Vec<Block>),
    /// Markup of no other kind.
    Raw(Markup),
}

impl Block {
    /// Returns the heading of the blocks that follow.
    pub fn heading(text: impl Into<String>) -> Self {
        Self::Heading(text.into())
    }

    /// Returns what the section shows.
    pub fn about(text: impl Into<String>) -> Self {
        Self::About(text.into())
    }

    /// Returns how to read what is above.
    pub fn hint(text: impl Into<String>) -> Self {
        Self::Hint(text.into())
    }

    /// Returns the table, or a sentence in its place if it has no rows.
    pub fn table_or(table: Table, sentence: &str) -> Self {
        if table.rows.is_empty() { Self::About(sentence.to_owned()) } else { Self::Table(table) }
    }

    /// Returns the block as HTML.
    pub fn html(&self) -> Markup {
        html! {
            @match self {
                Self::Heading(text) => { h3.table-title { (inline(text)) } }
                Self::Sentence(text) => { p.said { (inline(text)) } }
                Self::About(text) => { p.about { (inline(text)) } }
                Self::Hint(text) => { p.hint { (inline(text)) } }
                Self::Choices(choices) => { div.controls { @for choice in choices { (choice.html()) } } }
                Self::Legend(ways) => { (legend(ways)) }
                Self::Charts(charts) => { div.charts { @for chart in charts { (chart.html()) } } }
                Self::Wide(charts) => { div.wide { @for chart in charts { (chart.html()) } } }
                Self::Multiples(charts) => { div.multiples { @for chart in charts { (chart.html()) } } }
                Self::Bars(panels) => { (bars(panels)) }
                Self::Key(meanings) => {
                    ul.key.colours {
                        @for (colour, text) in meanings {
                            li { i style={ "background:var(--" (colour) ")" } {} (inline(text)) }
                        }
                    }
                }
                Self::Table(table) => { (table.html()) }
                Self::Tables(tables) => {
                    div.numbers {
                        @for (title, table) in tables { figure { figcaption { (inline(title)) } (table.bare()) } }
                    }
                }
                Self::Findings(findings) => {
                    dl.findings {
                        @for (topic, text) in findings { dt { (inline(topic)) } dd { p { (inline(text)) } } }
                    }
                }
                Self::Statements(all) => { div.claims { @for statement in all { (statement.html()) } } }
                Self::Folded(summary, blocks) => {
                    details.folded { summary { (inline(summary)) } @for block in blocks { (block.html()) } }
                }
                Self::When(when, blocks) => {
                    div data-when=[when_json(when)] { @for block in blocks { (block.html()) } }
                }
                Self::Raw(markup) => { (markup) }
            }
        }
    }
}

fn legend(ways: &[Way]) -> Markup {
    html! {
        div.legend role="group" aria-label="Lines shown" {
            @for way in ways {
                button type="button" data-key=(way.key) aria-pressed=(!way.hidden) { (way.swatch()) (way.name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_names_its_condition() {
        let choice = Choice::list("size", "Size", [("1", "1 B")]).when(when("curves", ["kind"]));
        let shown = choice.html().into_string();
        let condition = "data-when=\"{&quot;curves&quot;:[&quot;kind&quot;]}\"";
        assert!(shown.contains(condition) && shown.contains("<option value=\"1\">1 B</option>"), "{shown}");
    }
}
