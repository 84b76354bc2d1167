//! The exit code of a comparison.

use std::process::ExitCode;

use thalweg_compare::Report;

use crate::failure::Failure;

/// B is worse by more than the margin.
const WORSE: u8 = 3;

/// Success, unless one of the sides is worse by more than the margin.
pub(super) fn verdict(reports: &[Report]) -> Result<ExitCode, Failure> {
    let worse: Vec<String> = reports
        .iter()
        .filter(|report| !report.failures.is_empty())
        .map(|report| format!("{} is worse than {}: {}", report.b, report.a, report.failures.join(", ")))
        .collect();
    if worse.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure { message: worse.join("; "), code: WORSE })
}
