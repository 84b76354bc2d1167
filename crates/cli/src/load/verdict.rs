//! Verdict on a run.

use std::process::ExitCode;

use thalweg_load::LoadRun;
use thalweg_protobuf::printable;

use crate::failure::{Failure, INTERRUPTED};
use crate::terminal;

/// Exit code if a condition failed.
const BREACHED: u8 = 3;

/// Returns the exit code or the failure.
pub(super) fn verdict(run: &LoadRun, max_errors: f64, was_interrupted: bool) -> Result<ExitCode, Failure> {
    if was_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let breached: Vec<String> = run
        .conditions
        .iter()
        .filter(|condition| !condition.is_met)
        .map(|condition| format!("{} is {}", condition.condition, condition.figure))
        .collect();
    let invalid = run.not_valid.invalid_reason();
    if !breached.is_empty() {
        let invalid = invalid.map_or(String::new(), |why| format!("; invalid run: {why}"));
        let message = format!("condition failed: {}{invalid}", breached.join(", "));
        return Err(Failure { message, code: BREACHED });
    }
    if let Some(why) = invalid.filter(|_| !run.conditions.is_empty()) {
        let text = printable::line(&why);
        terminal::say(&format!("warning: all conditions passed, but the run is invalid: {text}"));
    }
    if let Some(search) = run.search.as_ref().filter(|search| search.found_per_s.is_none()) {
        let conditions = search.conditions.join(", ");
        let message = format!("no rate meets {conditions}");
        return Err(Failure { message, code: BREACHED });
    }
    if run.calls() == 0 {
        return Err(Failure::failed("no call finished in the measured time; use a longer -z"));
    }
    if run.failed_share() > max_errors {
        let note = run.notes.first().map(|note| note.text.as_str()).unwrap_or_default();
        return Err(Failure::failed(format!(
            "{} of {} calls failed, more than --max-errors: {note}",
            run.failed,
            run.calls()
        )));
    }
    Ok(ExitCode::SUCCESS)
}
