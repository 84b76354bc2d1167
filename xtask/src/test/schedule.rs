//! Steps of the two sequences beside each other, each in a process of its own.

use std::collections::BTreeMap;
use std::process::{self, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::outcome::{self, Took, Verdict};
use super::rust;
use super::steps::{Sequence, Step};

/// A step that has ended.
pub(super) struct Ended {
    pub(super) step: &'static Step,
    /// What it printed for people.
    pub(super) said: String,
    pub(super) verdict: Verdict,
    pub(super) took: Took,
}

/// Runs all of `steps` and calls `report` with each when it has ended; `environment` is for their processes.
pub(super) fn run(
    steps: &[&'static Step],
    environment: &[(&str, String)],
    report: impl Fn(&Ended) + Sync,
) -> Vec<Ended> {
    // A build may put another program where this one lay: by this name it is found all the same.
    let program = format!("/proc/{}/exe", process::id());
    let states = steps.iter().map(|step| (step.name, State::Waiting)).collect();
    let board = Board { states: Mutex::new(states), changed: Condvar::new() };
    let ended = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for sequence in [Sequence::Builds, Sequence::Suites] {
            let (board, ended, program, report) = (&board, &ended, &program, &report);
            scope.spawn(move || {
                for step in steps.iter().filter(|step| step.sequence == sequence) {
                    let one = match board.wait_for(step.after) {
                        Ok(built) => run_step(step, program, environment, built),
                        Err(failed) => not_run(step, failed),
                    };
                    report(&one);
                    board.done(step.name, matches!(one.verdict, Verdict::Passed(_)));
                    ended.lock().unwrap_or_else(PoisonError::into_inner).push(one);
                }
            });
        }
    });
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by_key(|one| steps.iter().position(|step| step.name == one.step.name));
    ended
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Passed,
    Failed,
}

/// How far the steps of this run are.
struct Board {
    states: Mutex<BTreeMap<&'static str, State>>,
    changed: Condvar,
}

impl Board {
    /// Waits for the steps of these names that belong to this run. Returns whether there are any, or the name of one
    /// that failed.
    fn wait_for(&self, names: &[&'static str]) -> Result<bool, &'static str> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |states: &mut BTreeMap<&str, State>| {
            names.iter().any(|name| states.get(name) == Some(&State::Waiting))
        };
        let states = self.changed.wait_while(states, waits).unwrap_or_else(PoisonError::into_inner);
        match names.iter().find(|name| states.get(*name) == Some(&State::Failed)) {
            Some(failed) => Err(failed),
            None => Ok(names.iter().any(|name| states.contains_key(name))),
        }
    }

    fn done(&self, name: &'static str, has_passed: bool) {
        let state = if has_passed { State::Passed } else { State::Failed };
        self.states.lock().unwrap_or_else(PoisonError::into_inner).insert(name, state);
        self.changed.notify_all();
    }
}

fn not_run(step: &'static Step, failed: &str) -> Ended {
    let verdict = Verdict::Failed(format!("not run, since `{failed}` did not pass"));
    Ended { step, said: String::new(), verdict, took: Took::default() }
}

/// Runs a step; `is_built`: what it runs was built earlier in this run.
fn run_step(step: &'static Step, program: &str, environment: &[(&str, String)], is_built: bool) -> Ended {
    let start = Instant::now();
    // It ends with us, and with it all that it started.
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
    let (said, verdict, took) = outcome::parse(&text);
    Ended { step, said: said.to_owned(), verdict, took: Took { elapsed: start.elapsed(), ..took } }
}
