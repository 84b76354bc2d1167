//! Tables whose fields are shown one way and sort another.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use thalweg_measure::page::parts::{field, sorting_head};

/// In the place of a figure that there is not.
pub(crate) const NONE: &str = "–";

/// A field of a table: what is shown, and what it sorts by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
}

impl Field {
    /// Words, which sort as they are written.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// A figure, or a dash where there is none.
    pub(crate) fn figure(value: Option<f64>, show: impl FnOnce(f64) -> String) -> Self {
        Self { text: value.map_or_else(|| NONE.to_owned(), show), value }
    }
}

/// The table, whose columns sort.
pub(crate) fn grid(heads: &[String], rows: &[Vec<Field>]) -> Markup {
    let cell = |field: &Field, is_words: bool| {
        html! {
            @if is_words { td.words { (field.text) } }
            @else { (self::field(field.value, |_| field.text.clone())) }
        }
    };
    // A column without a figure is one of words.
    let has_figure = |column: usize| rows.iter().any(|row| row[column].value.is_some());
    let words: Vec<bool> = (0..heads.len()).map(|column| !has_figure(column)).collect();
    html! {
        table {
            thead {
                tr {
                    @for (head, is_words) in heads.iter().zip(&words) {
                        (sorting_head(head, is_words.then_some("words")))
                    }
                }
            }
            tbody {
                @for row in rows {
                    tr { @for (field, is_words) in row.iter().zip(&words) { (cell(field, *is_words)) } }
                }
            }
        }
    }
}
