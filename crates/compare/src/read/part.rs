//! What one file has of a side.

use thalweg_measure::machine::{Machine, Versions};

use crate::cell::Cell;

/// What one file, or one side of it, has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// Loads, each under other conditions.
    pub(crate) cells: Vec<Cell>,
    /// Where it was measured, if it says so.
    pub(crate) machine: Option<Machine>,
    /// With what, if it says so.
    pub(crate) versions: Option<Versions>,
    /// What a reader must know.
    pub(crate) notes: Vec<String>,
}
