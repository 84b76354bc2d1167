//! Progress of a measurement.

use std::time::Duration;

use super::plan::SidePlan;
use crate::comparison::WindowRun;

/// A progress event.
#[derive(Debug)]
pub enum Event<'a> {
    /// The build of a revision starts.
    Builds {
        /// The revision's name on the command line.
        revision: &'a str,
        /// First digits of the commit's hash.
        commit: &'a str,
    },
    /// A server is about to start.
    Starts(&'a SidePlan),
    /// A window has ended.
    Window {
        /// The measured side.
        side: &'a SidePlan,
        /// Round, from 0.
        round: u32,
        /// The run's result.
        run: &'a WindowRun,
        /// Estimated remaining time, from the windows so far.
        left: Duration,
    },
}
