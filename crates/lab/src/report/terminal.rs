//! Findings and doubts as terminal text.

use thalweg_measure::text::wrapped;

use crate::findings::{Doubt, Finding};

/// Number of doubts shown; the page lists the rest.
const DOUBTS_MAX: usize = 8;

/// Returns a line for each finding.
pub(crate) fn findings(findings: &[Finding]) -> String {
    findings.iter().map(|it| wrapped(&format!("{}: {}", it.topic, it.text))).collect()
}

/// Returns a line for each of the first doubts, and the number of the rest.
pub(crate) fn doubts(doubts: &[Doubt]) -> String {
    let mut text: String =
        doubts.iter().take(DOUBTS_MAX).map(|doubt| wrapped(&format!("! {doubt}"))).collect();
    if doubts.len() > DOUBTS_MAX {
        text += &wrapped(&format!("! … and {} more in the report.", doubts.len() - DOUBTS_MAX));
    }
    text
}
