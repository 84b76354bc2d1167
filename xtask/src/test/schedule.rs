//! Runs the steps of the two sequences in parallel, each in its own process.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::process::{self, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use super::outcome::{self, Took};
use super::rust;
use super::steps::{Sequence, Step};
use crate::failure::Result;

/// A finished step.
pub(super) struct Ended {
    pub(super) step: &'static Step,
    /// Its printed text.
    pub(super) said: String,
    pub(super) result: Result<String>,
    pub(super) took: Took,
}

/// Runs all of `steps` with `environment` and calls `report` with each finished one.
pub(super) fn run(
    steps: &[&'static Step],
    environment: &[(&str, String)],
    report: impl Fn(&Ended) + Sync,
) -> Vec<Ended> {
    // A build may replace this program's file; this path still refers to the running one.
    let program = format!("/proc/{}/exe", process::id());
    // Whether a step has passed, once it has ended.
    let passed: BTreeMap<&str, OnceLock<bool>> =
        steps.iter().map(|step| (step.name, OnceLock::new())).collect();
    let run = |step: &'static Step| {
        let mut awaited = step.after.iter().filter_map(|name| Some((name, passed.get(name)?))).peekable();
        let is_built = awaited.peek().is_some();
        let ended = match awaited.find(|(_, passed)| !passed.wait()) {
            Some((failed, _)) => not_run(step, failed),
            None => run_step(step, &program, environment, is_built),
        };
        report(&ended);
        let _ = passed[step.name].set(ended.result.is_ok());
        ended
    };
    let run_all = |sequence: Sequence| -> Vec<Ended> {
        steps.iter().copied().filter(|step| step.sequence == sequence).map(&run).collect()
    };
    let mut ended = thread::scope(|scope| {
        let suites = scope.spawn(|| run_all(Sequence::Suites));
        let mut ended = run_all(Sequence::Builds);
        ended.extend(suites.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ended
    });
    ended.sort_by_key(|one| steps.iter().position(|step| step.name == one.step.name));
    ended
}

fn not_run(step: &'static Step, failed: &str) -> Ended {
    let result = Err(failed!("not run, since `{failed}` did not pass"));
    Ended { step, said: String::new(), result, took: Took::default() }
}

/// Runs a step. `is_built`: its programs were already built in this run.
fn run_step(step: &'static Step, program: &str, environment: &[(&str, String)], is_built: bool) -> Ended {
    let start = Instant::now();
    // It ends with this process, and so do its children.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program).args(["test", "--step", step.name]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    if is_built {
        command.env(rust::IS_BUILT, "1");
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let text = match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => format!("the step could not be started: {error}\n"),
    };
    let (said, result, took) = outcome::parse(&text);
    Ended { step, said: said.to_owned(), result, took: Took { elapsed: start.elapsed(), ..took } }
}
