//! What converts.

use std::path::Path;
use std::time::Duration;

use super::line::Line;
use super::tables::{Allocations, InstructionsOf};

/// What converts: it is given a line and a number, and tells how long it took.
pub trait Bench {
    /// [`WARM_UPS`] conversions, then so many that are timed.
    fn convert(&mut self, line: &Line, conversions: u64) -> Result<Duration, String>;

    /// The process that converts, if it is not this one.
    fn process(&self) -> Option<u32> {
        None
    }

    /// What the line asks of the allocator, for each conversion.
    fn allocations(&mut self, line: &Line) -> Result<Allocations, String>;

    /// Instructions of all lines, counted in a run of its own; whatever it needs for that lies in `folder`.
    fn instructions(&mut self, folder: &Path) -> Result<Vec<InstructionsOf>, String>;

    /// Writes the messages for programs that are not this one.
    fn write_messages(&mut self, folder: &Path) -> Result<(), String>;
}
