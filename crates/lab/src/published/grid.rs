//! Tables of figures beside the claims.

use serde::{Deserialize, Serialize};

use crate::report::grid::Field;

/// A table with its title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What it says, and of what.
    pub(crate) about: String,
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<Field>>,
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
