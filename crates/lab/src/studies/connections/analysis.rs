//! A connections study, analysed: what every exporter writes down.

use super::analyse::Cells;
use super::findings::{answer, findings};
use crate::findings::{Doubt, Finding};
use crate::load::LabResults;
use crate::load::doubts::doubts;

/// What its results say.
#[derive(Debug)]
pub(crate) struct ConnectionsAnalysis<'r> {
    pub(super) results: &'r LabResults,
    pub(super) cells: Cells,
    /// The study in a sentence; `None` when nothing was measured.
    pub(super) answer: Option<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) doubts: Vec<Doubt>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> ConnectionsAnalysis<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let cells = Cells::of(results);
        let sure = cells.sure();
        let (answer, findings) = (answer(&sure), findings(&sure));
        let unanswered = results.unanswered(answer.is_some());
        Self { results, cells, answer, findings, doubts: doubts(results), unanswered }
    }
}
