//! The exit code of a comparison.

use std::process::ExitCode;

use thalweg_compare::Report;

use crate::failure::Failure;

/// B is worse by more than the margin.
const WORSE: u8 = 3;

/// Success, unless one of the sides is worse by more than the margin, or was to be judged by what was not measured.
pub(super) fn verdict(reports: &[Report]) -> Result<ExitCode, Failure> {
    let worse: Vec<String> = reports
        .iter()
        .filter(|report| !report.failures.is_empty())
        .map(|report| format!("{} is worse than {}: {}", report.b, report.a, report.failures.join(", ")))
        .collect();
    if !worse.is_empty() {
        return Err(Failure { message: worse.join("; "), code: WORSE });
    }
    let unjudged: Vec<String> = reports
        .iter()
        .flat_map(|report| {
            report.not_measured.iter().map(move |figure| {
                format!(
                    "cannot compare {figure} of {} with {}: not measured on both sides",
                    report.b, report.a
                )
            })
        })
        .collect();
    if unjudged.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(Failure::bad_arguments(unjudged.join("; "))) }
}
