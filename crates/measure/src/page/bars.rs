//! Horizontal bars in plain HTML.

use maud::{Markup, html};

use super::when::{When, when_json};
use crate::figures::bound;

/// A panel of bars on one scale.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Title. Without one there is no caption.
    pub title: String,
    /// Smaller text below the title.
    pub about: String,
    /// Condition for showing the panel.
    pub when: When,
    /// Rows from top to bottom.
    pub rows: Vec<BarRow>,
}

/// A row of a panel: a name, one or more bars, and a figure.
#[derive(Clone, Debug, Default)]
pub struct BarRow {
    /// Name.
    pub name: String,
    /// Muted text after the name.
    pub note: String,
    /// CSS class of the name.
    pub class: &'static str,
    /// Bars below each other, each made of parts.
    pub bars: Vec<Vec<BarPart>>,
    /// Figure at the end.
    pub shown: String,
    /// Tooltip.
    pub title: String,
}

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct BarPart {
    /// Length.
    pub value: f64,
    /// Custom property of the style sheet for the colour.
    pub colour: String,
    /// Tooltip.
    pub title: String,
}

pub(super) fn bars(panels: &[Bars]) -> Markup {
    html! { div.bars { @for panel in panels { (html(panel)) } } }
}

fn html(panel: &Bars) -> Markup {
    let sum = |bar: &Vec<BarPart>| bar.iter().map(|part| part.value).sum::<f64>();
    let most = panel.rows.iter().flat_map(|row| &row.bars).map(sum).fold(0.0, f64::max);
    html! {
        figure data-when=[when_json(&panel.when)] {
            @if !panel.title.is_empty() {
                figcaption { b { (panel.title) } @if !panel.about.is_empty() { small { (bound(&panel.about)) } } }
            }
            @for row in &panel.rows { (row_html(row, most)) }
        }
    }
}

fn row_html(row: &BarRow, most: f64) -> Markup {
    let width = |value: f64| if most > 0.0 { 100.0 * value / most } else { 0.0 };
    html! {
        div.row title=[(!row.title.is_empty()).then_some(&row.title)] {
            span class={ "name " (row.class) } { b { (row.name) } " " (row.note) }
            span.tracks {
                @for bar in &row.bars {
                    span.track {
                        @for part in bar.iter().filter(|part| part.value > 0.0) {
                            @let width = format!("{:.2}", width(part.value));
                            i style={ "width:" (width) "%;background:var(--" (part.colour) ")" }
                                title=[(!part.title.is_empty()).then_some(&part.title)] {}
                        }
                    }
                }
            }
            span.value { (bound(&row.shown)) }
        }
    }
}
