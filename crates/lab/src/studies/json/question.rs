//! An open question of the study, with its answer in words and its figures: what the page and the terminal show alike.

use thalweg_measure::page::table::{Field, Table};

use crate::load::verdict::Compared;

/// Before a ratio that shows no difference.
const DOUBT: &str = "? ";
/// What it says.
pub(crate) const LEGEND: &str = "A question mark means that no difference is shown.";

/// A question, its answer, and its figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Its name on the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The answer.
    pub(crate) sentences: Vec<String>,
    pub(crate) table: Table,
}

impl Question {
    /// A ratio in its table shows no difference.
    pub(crate) fn has_doubt(&self) -> bool {
        self.table.rows.iter().flatten().any(|field| field.text.starts_with(DOUBT))
    }
}

/// A ratio with its interval, behind a question mark where no difference is shown.
pub(crate) fn compared_field(compared: Compared) -> Field {
    let field = Field::ratio(compared.ratio);
    let is_doubted = compared.ratio.is_some() && !compared.differs();
    if is_doubted { Field { text: format!("{DOUBT}{}", field.text), ..field } } else { field }
}
