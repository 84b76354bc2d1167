//! How a step ended and what it took. Each step runs in a process of its own, whose last line says it: so one that
//! panics ends alone, and the system counts its processor time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Result;
use crate::{job, proc};

/// Begins the last line.
const MARK: char = '\u{1e}';

/// What a step took.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Took {
    pub(super) elapsed: Duration,
    /// Of it, waiting for compilers and package managers.
    pub(super) builds: Duration,
    /// Of all that it started, on all processors.
    pub(super) cpu: Duration,
}

/// The last line of a step's process, which ends with this result.
pub(super) fn line(result: &Result<String>) -> String {
    let took = Took { elapsed: Duration::ZERO, builds: job::time_in_builds(), cpu: cpu_time() };
    format!("{MARK}{}", json!([result, took]))
}

/// What a step's process printed for people, its result, and what it took besides its whole time.
pub(super) fn parse(text: &str) -> (&str, Result<String>, Took) {
    let read = || {
        let (said, line) = text.rsplit_once(MARK)?;
        let (result, took) = serde_json::from_str(line).ok()?;
        Some((said, result, took))
    };
    read().unwrap_or_else(|| (text, Err(failed!("it ended without a verdict")), Took::default()))
}

/// Of this process and of all that it waited for.
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
