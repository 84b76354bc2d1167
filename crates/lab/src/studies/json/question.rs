//! An open question of the study, with its answer in words and its figures: what the page and the terminal show alike.

use thalweg_measure::figures::ratio_text;
use thalweg_measure::statistics::Ratio;

use crate::load::verdict::Compared;
use crate::report::grid::{Field, NONE};

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
    pub(crate) table: Grid,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grid {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<Field>>,
}

impl Grid {
    /// A ratio in it shows no difference.
    pub(crate) fn has_doubt(&self) -> bool {
        self.rows.iter().flatten().any(|field| field.text.starts_with(DOUBT))
    }

    pub(crate) fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new() }
    }
}

impl Field {
    /// A ratio with its interval, which sorts by the ratio.
    pub(crate) fn ratio(ratio: Option<Ratio>) -> Self {
        Self {
            text: ratio.map_or_else(|| NONE.to_owned(), ratio_text),
            value: ratio.map(|ratio| ratio.ratio),
        }
    }

    /// The same with a question mark where no difference is shown.
    pub(crate) fn compared(compared: Compared) -> Self {
        let field = Self::ratio(compared.ratio);
        let is_doubted = compared.ratio.is_some() && !compared.differs();
        if is_doubted { Self { text: format!("{DOUBT}{}", field.text), ..field } } else { field }
    }
}
