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
pub(super) struct Took {
    pub(super) elapsed: Duration,
    /// Part of `elapsed` spent waiting for compilers and package managers.
    pub(super) builds: Duration,
    /// CPU time of all its processes, on all processors.
    pub(super) cpu: Duration,
}

/// The last line of a step's process, with this result.
pub(super) fn line(result: &Result<String>) -> String {
    let took = Took { elapsed: Duration::ZERO, builds: job::time_in_builds(), cpu: cpu_time() };
    format!("{MARK}{}", json!([result, took]))
}

/// Splits the output of a step's process into its text, its result, and its times except `elapsed`.
pub(super) fn parse(text: &str) -> (&str, Result<String>, Took) {
    let read = || {
        let (said, line) = text.rsplit_once(MARK)?;
        let (result, took) = serde_json::from_str(line).ok()?;
        Some((said, result, took))
    };
    read().unwrap_or_else(|| (text, Err(failed!("it ended without a verdict")), Took::default()))
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
    fn what_a_step_says_last_is_read() {
        let check = |text: &str, said: &str, account: &str| {
            let (found, result, took) = parse(text);
            let account_found = result.unwrap_or_else(|why| why.to_string());
            assert_eq!((found, &*account_found, took.builds), (said, account, Duration::ZERO));
        };
        check(&format!("hint  a line\n{}\n", line(&Ok("8 tests".to_owned()))), "hint  a line\n", "8 tests");
        check(&line(&Err(missing!("a\nb"))), "", "cannot be had here: a\nb");
        check("thread panicked\n", "thread panicked\n", "it ended without a verdict");
    }
}
