//! Findings on a page.

use thalweg_measure::page::section::Block;

use crate::findings::Finding;

/// Returns a block with each topic and its text.
pub(crate) fn findings(findings: &[Finding]) -> Block {
    Block::Findings(findings.iter().map(|it| (it.topic.to_string(), it.text.clone())).collect())
}
