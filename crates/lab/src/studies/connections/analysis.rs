//! Analysis of a connections study, for all exporters.

use super::analyse::ConnectionsCells;
use super::findings::{answer, findings};
use crate::findings::Finding;
use crate::load::LabResults;

/// A connections study with everything derived from its results.
#[derive(Debug)]
pub(crate) struct ConnectionsAnalysis<'r> {
    pub(super) results: &'r LabResults,
    pub(super) cells: ConnectionsCells<'r>,
    /// Answer in a sentence; `None` if nothing was measured.
    pub(super) answer: Option<String>,
    pub(super) findings: Vec<Finding>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> ConnectionsAnalysis<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let cells = ConnectionsCells::of(results);
        let sure = cells.with_enough_windows();
        let (answer, findings) = (answer(&sure), findings(&sure));
        let unanswered = results.unanswered(answer.is_some());
        Self { results, cells, answer, findings, unanswered }
    }
}
