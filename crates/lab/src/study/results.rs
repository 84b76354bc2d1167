//! What a study keeps of its windows.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thalweg_measure::programs::BusyProgram;

/// What came of a window: what it found, or why it failed.
pub type WindowOutcome<F> = Result<F, String>;

/// What was asked for, and is not among the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut<T> {
    /// What: a stack, or any words.
    #[serde(alias = "stack")]
    pub what: T,
    /// Why it could not be had.
    pub reason: String,
}

/// What a study keeps: serialised, a published schema.
pub trait Results<W, F>: Serialize {
    /// Keeps what came of a window, which ended now.
    fn record(&mut self, window: &W, outcome: WindowOutcome<F>, now: SystemTime);

    /// Keeps the other programs that were busy while the windows were measured.
    fn ran_beside(&mut self, others: Vec<BusyProgram>);

    /// No window has told anything.
    fn is_empty(&self) -> bool;

    /// Something that was to be measured could not be, in a way that makes the command fail.
    fn has_failures(&self) -> bool;
}

/// As results have it: RFC 3339, UTC, to the second.
pub(crate) fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
