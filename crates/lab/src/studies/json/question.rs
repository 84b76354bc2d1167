//! An open question with its answer and figures, for the page and the terminal.

use thalweg_measure::page::table::Table;

/// A question, its answer, and its figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Id on the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The answer.
    pub(crate) sentences: Vec<String>,
    pub(crate) table: Table,
}

impl Question {
    /// Returns whether a ratio in its table shows no difference.
    pub(crate) fn has_doubt(&self) -> bool {
        self.table.rows.iter().flatten().any(super::cell_pair::is_doubted)
    }
}
