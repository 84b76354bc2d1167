//! How a step ended and what it took. Each step runs in a process of its own, whose last line says it: so one that
//! panics ends alone, and the system counts its processor time.

use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::{job, proc};

/// Begins the last line.
const MARK: char = '\u{1e}';

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed(String),
    Failed(String),
    /// What it needs cannot be had.
    Missing(String),
}

impl From<Result<String>> for Verdict {
    fn from(result: Result<String>) -> Self {
        match result {
            Ok(account) => Self::Passed(account),
            Err(Failure::Failed(why) | Failure::Misuse(why)) => Self::Failed(why),
            Err(missing @ Failure::Missing(_)) => Self::Missing(missing.to_string()),
        }
    }
}

/// What a step took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) elapsed: Duration,
    /// Of it, waiting for compilers and package managers.
    pub(super) builds: Duration,
    /// Of all that it started, on all processors.
    pub(super) cpu: Duration,
}

/// The last line of a step's process, which ends with this verdict.
pub(super) fn line(verdict: &Verdict) -> String {
    let (word, account) = match verdict {
        Verdict::Passed(account) => ("passed", account),
        Verdict::Failed(why) => ("failed", why),
        Verdict::Missing(why) => ("missing", why),
    };
    let account = account.replace('\n', " ");
    format!("{MARK}{word}\t{}\t{}\t{account}", job::time_in_builds().as_millis(), cpu_time().as_millis())
}

/// What a step's process printed for people, its verdict, and what it took besides its whole time.
pub(super) fn parse(text: &str) -> (&str, Verdict, Took) {
    let ended = || (text, Verdict::Failed("it ended without a verdict".to_owned()), Took::default());
    let Some((said, line)) = text.rsplit_once(MARK) else { return ended() };
    let [word, builds, cpu, account] = line.trim_end().splitn(4, '\t').collect::<Vec<_>>()[..] else {
        return ended();
    };
    let time = |text: &str| Duration::from_millis(text.parse().unwrap_or_default());
    let account = account.to_owned();
    let verdict = match word {
        "passed" => Verdict::Passed(account),
        "missing" => Verdict::Missing(account),
        _ => Verdict::Failed(account),
    };
    (said, verdict, Took { elapsed: Duration::ZERO, builds: time(builds), cpu: time(cpu) })
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
        let verdict = Verdict::Passed("8 tests".to_owned());
        let text = format!("hint  a line\n{}\n", line(&verdict));
        let (said, read, took) = parse(&text);
        assert_eq!((said, read, took.builds), ("hint  a line\n", verdict, Duration::ZERO));
        let (said, read, _) = parse("thread panicked\n");
        assert_eq!(
            (said, read),
            ("thread panicked\n", Verdict::Failed("it ended without a verdict".to_owned()))
        );
    }
}
