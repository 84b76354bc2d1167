//! Content of one file for one side.

use thalweg_measure::machine::{Machine, Versions};

use crate::cell::Cell;

/// Content of one file, or of one side in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SideInput {
    /// Loads with different conditions.
    pub(crate) cells: Vec<Cell>,
    /// Machine, if recorded.
    pub(crate) machine: Option<Machine>,
    /// Versions of the programs, if recorded.
    pub(crate) versions: Option<Versions>,
    /// Warnings for the reader.
    pub(crate) notes: Vec<String>,
}
