//! What a study needs of whoever measures its windows.

use crate::plan::Window;
use crate::record::LoadResult;
use crate::results::{SystemCalls, Usage, Wire};

/// Measures windows. It prints nothing.
pub trait Execute {
    /// Measures one window.
    fn run(&mut self, window: &Window) -> Result<Measured, ExecuteError>;

    /// Counts the system calls per operation of the window's pair at its point.
    fn count_system_calls(&mut self, window: &Window) -> Result<SystemCalls, ExecuteError>;

    /// Watches the bytes between the window's pair at its point.
    fn watch_wire(&mut self, window: &Window) -> Result<Wire, ExecuteError>;
}

/// What was found in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What the driver found.
    pub load: LoadResult,
    /// What both processes used meanwhile; `None` where the kernel did not tell.
    pub usage: Option<Usage>,
}

/// Why a window was not measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    /// This window failed; others may not.
    #[error("{0}")]
    Window(String),
    /// No further window can be measured.
    #[error("{0}")]
    Study(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}
