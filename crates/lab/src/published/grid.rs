//! Tables of figures beside the claims.

use serde::{Deserialize, Serialize};

/// A table with its title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What it says, and of what.
    pub(crate) about: String,
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<Field>>,
}

/// A field of it: what is shown, and what it sorts by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
}

impl Table {
    pub(crate) fn new(title: &str, about: &str, heads: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            about: about.to_owned(),
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}

impl Field {
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// A figure, or a dash where there is none.
    pub(crate) fn figure(value: Option<f64>, show: impl FnOnce(f64) -> String) -> Self {
        Self { text: value.map_or_else(|| "–".to_owned(), show), value }
    }
}
