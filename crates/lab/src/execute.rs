//! What a study needs of whoever measures its points.

use crate::plan::Point;
use crate::record::LoadResult;

/// Measures points. It prints nothing.
pub trait Execute {
    /// Measures one point.
    fn run(&mut self, point: &Point) -> Result<LoadResult, ExecuteError>;
}

/// Why a point was not measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    /// This point failed; others may not.
    #[error("{0}")]
    Point(String),
    /// No further point can be measured.
    #[error("{0}")]
    Study(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}
