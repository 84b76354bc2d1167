//! The exit code of a comparison.

use std::process::ExitCode;

use clap::ValueEnum;
use thalweg_compare::{Report, Verdict};

use crate::failure::Failure;

/// B is worse by more than the margin, or the result is inconclusive with `--inconclusive fail`.
const WORSE: u8 = 3;

/// Outcome of a comparison that cannot tell whether B is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Inconclusive {
    /// It succeeds.
    Pass,
    /// It fails, as if B were worse.
    Fail,
}

/// Returns success unless a side is worse by more than the margin, a judged figure was not measured, or the result is
/// inconclusive with [`Inconclusive::Fail`].
pub(super) fn verdict(reports: &[Report], inconclusive: Inconclusive) -> Result<ExitCode, Failure> {
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
                    "failed to compare {figure} of {} with {}: not measured on both sides",
                    report.b, report.a
                )
            })
        })
        .collect();
    if !unjudged.is_empty() {
        return Err(Failure::bad_arguments(unjudged.join("; ")));
    }
    let open = reports.iter().filter(|report| report.is_inconclusive());
    let open: Vec<String> = open
        .map(|report| {
            let unsure =
                report.with_verdict(|verdict| matches!(verdict, Verdict::CannotTell | Verdict::Worse));
            let (a, b) = (&report.a, &report.b);
            match &report.inconclusive_reason {
                Some(why) => format!("can't tell if {b} is worse than {a}: {why}"),
                None => format!("can't tell if {b} is worse than {a} by {}", unsure.join(", ")),
            }
        })
        .collect();
    if inconclusive == Inconclusive::Fail && !open.is_empty() {
        return Err(Failure { message: open.join("; "), code: WORSE });
    }
    Ok(ExitCode::SUCCESS)
}
