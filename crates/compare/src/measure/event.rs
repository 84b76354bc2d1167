//! Progress of a measurement.

use std::time::Duration;

use super::plan::SidePlan;
use crate::comparison::WindowRun;

/// Told how it goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// A revision is built.
    Builds {
        /// The revision's name on the command line.
        revision: &'a str,
        /// The begin of the commit's hash.
        commit: &'a str,
    },
    /// A server is started.
    Starts(&'a SidePlan),
    /// A window has ended.
    Window {
        /// Whose.
        side: &'a SidePlan,
        /// From 0.
        round: u32,
        /// The run's result.
        run: &'a WindowRun,
        /// How long the windows to come will take, as those so far did.
        left: Duration,
    },
}
