//! Runs the steps of the two sequences in parallel, each in its own process.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::process::{self, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use super::outcome::{self, StepTime};
use super::rust;
use super::steps::{Sequence, Step};
use crate::failure::Result;

/// A finished step.
pub(super) struct FinishedStep {
    pub(super) step: &'static Step,
    /// Its printed text.
    pub(super) printed: String,
    pub(super) result: Result<String>,
    pub(super) took: StepTime,
}

/// Runs all of `steps` with `environment` and calls `report` with each finished one.
pub(super) fn run(
    steps: &[&'static Step],
    environment: &[(&str, String)],
    report: impl Fn(&FinishedStep) + Sync,
) -> Vec<FinishedStep> {
    // A build may replace this program's file; this path still refers to the running one.
    let program = format!("/proc/{}/exe", process::id());
    // Whether a step has passed, once it has ended.
    let passed: BTreeMap<&str, OnceLock<bool>> =
        steps.iter().map(|step| (step.name, OnceLock::new())).collect();
    let run = |step: &'static Step| {
        let mut awaited = step.after.iter().filter_map(|name| Some((name, passed.get(name)?))).peekable();
        let is_built = awaited.peek().is_some();
        let finished = match awaited.find(|(_, passed)| !passed.wait()) {
            Some((failed, _)) => skipped_step(step, failed),
            None => run_step(step, &program, environment, is_built),
        };
        report(&finished);
        let _ = passed[step.name].set(finished.result.is_ok());
        finished
    };
    let run_all = |sequence: Sequence| -> Vec<FinishedStep> {
        steps.iter().copied().filter(|step| step.sequence == sequence).map(&run).collect()
    };
    let mut finished = thread::scope(|scope| {
        let suites = scope.spawn(|| run_all(Sequence::Suites));
        let mut finished = run_all(Sequence::Builds);
        finished.extend(suites.join().unwrap_or_else(|panic| resume_unwind(panic)));
        finished
    });
    finished.sort_by_key(|step_result| steps.iter().position(|step| step.name == step_result.step.name));
    finished
}

fn skipped_step(step: &'static Step, failed: &str) -> FinishedStep {
    let result = Err(failed!("not run, because `{failed}` failed"));
    FinishedStep { step, printed: String::new(), result, took: StepTime::default() }
}

/// Runs a step. `is_built`: its programs were already built in this run.
fn run_step(
    step: &'static Step,
    program: &str,
    environment: &[(&str, String)],
    is_built: bool,
) -> FinishedStep {
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
        Err(error) => format!("failed to start the step: {error}\n"),
    };
    let (printed, result, took) = outcome::parse(&text);
    FinishedStep {
        step,
        printed: printed.to_owned(),
        result,
        took: StepTime { elapsed: start.elapsed(), ..took },
    }
}
