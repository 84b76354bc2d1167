//! Result and cost of a step. Each step runs in its own process and prints them as its last line. So a panic ends only
//! that step, and the system counts its CPU time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Result;
use crate::{job, proc};

/// Starts the last line.
const MARK: char = '\u{1e}';

/// Time of a step.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct StepTime {
    pub(super) elapsed: Duration,
    /// Part of `elapsed` spent waiting for compilers and package managers.
    pub(super) builds: Duration,
    /// CPU time of all its processes, on all processors.
    pub(super) cpu: Duration,
}

/// The last line of a step's process, with this result.
pub(super) fn line(result: &Result<String>) -> String {
    let step_time = StepTime { elapsed: Duration::ZERO, builds: job::time_in_builds(), cpu: cpu_time() };
    format!("{MARK}{}", json!([result, step_time]))
}

/// Splits the output of a step's process into its text, its result, and its times except `elapsed`.
pub(super) fn parse(text: &str) -> (&str, Result<String>, StepTime) {
    let read = || {
        let (printed, line) = text.rsplit_once(MARK)?;
        let (result, step_time) = serde_json::from_str(line).ok()?;
        Some((printed, result, step_time))
    };
    read().unwrap_or_else(|| (text, Err(failed!("it exited without a verdict")), StepTime::default()))
}

/// CPU time of this process and of all children that it waited for.
fn cpu_time() -> Duration {
    proc::cpu_time("self")
        .map_or(Duration::ZERO, |it| it.user + it.system + it.children_user + it.children_system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_of_a_step_is_parsed() {
        let check = |text: &str, printed: &str, summary: &str| {
            let (found, result, step_time) = parse(text);
            let summary_found = result.unwrap_or_else(|why| why.to_string());
            assert_eq!((found, &*summary_found, step_time.builds), (printed, summary, Duration::ZERO));
        };
        check(&format!("hint  a line\n{}\n", line(&Ok("8 tests".to_owned()))), "hint  a line\n", "8 tests");
        check(&line(&Err(missing!("a\nb"))), "", "not available here: a\nb");
        check("thread panicked\n", "thread panicked\n", "it exited without a verdict");
    }
}
