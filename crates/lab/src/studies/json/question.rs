//! An open question of the study, with its answer in words and its figures: what the page and the terminal show alike.

use crate::figures::ratio_text;
use crate::load::verdict::Compared;
use crate::statistics::Ratio;

/// In the place of a figure that there is not.
const NONE: &str = "–";

/// Before a ratio that shows no difference.
const DOUBT: &str = "? ";
/// What it says.
pub(crate) const LEGEND: &str = "Where there is a question mark, no difference is shown.";

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

/// A field of a table: what is shown, and what it sorts by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) text: String,
    pub(crate) value: Option<f64>,
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
    /// Words, which sort as they are written.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

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

    /// A figure, or a dash where there is none.
    pub(crate) fn figure(value: Option<f64>, show: impl FnOnce(f64) -> String) -> Self {
        Self { text: value.map_or_else(|| NONE.to_owned(), show), value }
    }
}
