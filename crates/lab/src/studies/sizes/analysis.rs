//! A study of sizes, analysed: what every exporter writes down.

use super::compare::{Comparison, compare};
use super::findings::findings;
use super::lines::{Analysis, analyse};
use crate::findings::{Doubt, Finding};
use crate::load::LabResults;
use crate::load::doubts::doubts;

/// What its results say.
#[derive(Debug)]
pub struct SizesAnalysis<'r> {
    pub(super) results: &'r LabResults,
    /// Of our own pair.
    pub(super) lines: Analysis,
    /// With the other pairs, where there are any.
    pub(super) comparison: Option<Comparison>,
    pub(super) findings: Vec<Finding>,
    pub(super) doubts: Vec<Doubt>,
}

impl<'r> SizesAnalysis<'r> {
    pub(super) fn of(results: &'r LabResults) -> Self {
        let lines = analyse(results);
        Self {
            results,
            comparison: results.is_comparison().then(|| compare(results, &lines)),
            findings: findings(&lines),
            doubts: doubts(results),
            lines,
        }
    }
}
