//! Findings and doubts, for a terminal.

use thalweg_measure::text::wrapped;

use crate::findings::{Doubt, Finding};

/// Doubts beyond this many are left to the page.
const DOUBTS_MAX: usize = 8;

/// A line for each.
pub(crate) fn findings(findings: &[Finding]) -> String {
    findings.iter().map(|it| wrapped(&format!("{}: {}", it.topic, it.text))).collect()
}

/// A line for each of the first doubts, and how many more there are.
pub(crate) fn doubts(doubts: &[Doubt]) -> String {
    let mut text: String =
        doubts.iter().take(DOUBTS_MAX).map(|doubt| wrapped(&format!("! {doubt}"))).collect();
    if doubts.len() > DOUBTS_MAX {
        text += &wrapped(&format!("! … and {} more in the report.", doubts.len() - DOUBTS_MAX));
    }
    text
}
