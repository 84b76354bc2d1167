//! Sections of a page as data: headings, sentences, tables, charts and choices.

use maud::{Markup, html};

use super::bars::{Bars, bars};
use super::chart::{Chart, LineStyle};
use super::inline::inline;
use super::statement::Statement;
use super::table::Table;
use super::when::when_json;
pub use super::when::{When, when};

/// A choice of the reader. Buttons initially select the first option.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Name in [`When`].
    pub name: &'static str,
    /// Label of the choice.
    pub label: String,
    /// Value and text of each option.
    pub options: Vec<(String, String)>,
    /// Index of the initial option of a list.
    pub initial: usize,
    /// Whether it is a drop-down list instead of buttons.
    pub is_list: bool,
    /// Condition for showing the choice.
    pub when: When,
}

impl Choice {
    /// Creates a choice with buttons.
    pub fn buttons<V: Into<String>, T: Into<String>>(
        name: &'static str,
        label: &str,
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let options = options.into_iter().map(|(value, text)| (value.into(), text.into())).collect();
        Self { name, label: label.to_owned(), options, ..Self::default() }
    }

    /// Creates a choice with a list.
    pub fn list<V: Into<String>, T: Into<String>>(
        name: &'static str,
        label: &str,
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        Self { is_list: true, ..Self::buttons(name, label, options) }
    }

    /// Shows the choice only under a condition.
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
    /// Heading, or empty.
    pub heading: String,
    /// Content.
    pub blocks: Vec<Block>,
}

impl Section {
    /// Creates a section.
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

/// A part of a section. Its sentences may contain `code` in back quotes, `**bold**`, `[text](file)` and `{name}`. A
/// link leads to an element or a local file. `{name}` stands for the text of the chosen option.
#[derive(Debug)]
pub enum Block {
    /// Heading of the following blocks.
    Heading(String),
    /// A sentence that answers the section's question.
    Sentence(String),
    /// Description of the section.
    About(String),
    /// Explanation of the blocks above.
    Hint(String),
    /// Choices, side by side.
    Choices(Vec<Choice>),
    /// Buttons that hide the lines of these styles in all charts.
    Legend(Vec<LineStyle>),
    /// Large charts, in two columns.
    Charts(Vec<Chart>),
    /// Charts below each other, with the width of the page.
    Wide(Vec<Chart>),
    /// Small charts side by side.
    Multiples(Vec<Chart>),
    /// Panels of bars.
    Bars(Vec<Bars>),
    /// Key of colours: a custom property of the style sheet, and its meaning.
    Key(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Small tables side by side, with their titles.
    Tables(Vec<(String, Table)>),
    /// Topics with their findings.
    Findings(Vec<(String, String)>),
    /// Statements side by side.
    Statements(Vec<Statement>),
    /// Title and blocks that a click unfolds.
    Folded(String, Vec<Block>),
    /// Blocks shown under a condition.
    When(When, Vec<Block>),
    /// Raw markup.
    Raw(Markup),
}

impl Block {
    /// Returns the heading of the following blocks.
    pub fn heading(text: impl Into<String>) -> Self {
        Self::Heading(text.into())
    }

    /// Returns the description of a section.
    pub fn about(text: impl Into<String>) -> Self {
        Self::About(text.into())
    }

    /// Returns the explanation of the blocks above.
    pub fn hint(text: impl Into<String>) -> Self {
        Self::Hint(text.into())
    }

    /// Returns the table, or a sentence if it has no rows.
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
                Self::Legend(styles) => { (legend(styles)) }
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
                        @for (title, table) in tables {
                            figure { figcaption { (inline(title)) } (table.html_without_container()) }
                        }
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

fn legend(styles: &[LineStyle]) -> Markup {
    html! {
        div.legend role="group" aria-label="Lines shown" {
            @for style in styles {
                button type="button" data-key=(style.key) aria-pressed=(!style.hidden) { (style.swatch()) (style.name) }
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
