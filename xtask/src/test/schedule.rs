//! Steps of the two sequences beside each other, each in a process of its own.

use std::collections::BTreeSet;
use std::process::{self, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::outcome::{self, Took, Verdict};
use super::steps::{Sequence, Step};

/// A step that has ended.
pub(super) struct Ended {
    pub(super) step: &'static Step,
    /// What it printed for people.
    pub(super) said: String,
    pub(super) verdict: Verdict,
    pub(super) took: Took,
}

/// Runs all of `steps`, and tells of each when it has ended; `environment` is for their processes.
pub(super) fn run(
    steps: &[&'static Step],
    environment: &[(&str, String)],
    tell: impl Fn(&Ended) + Sync,
) -> Vec<Ended> {
    // A build may put another program where this one lay: by this name it is found all the same.
    let program = format!("/proc/{}/exe", process::id());
    let board =
        Board { waiting: Mutex::new(steps.iter().map(|step| step.name).collect()), ended: Condvar::new() };
    let ended = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for sequence in [Sequence::Builds, Sequence::Suites] {
            let (board, ended, program, tell) = (&board, &ended, &program, &tell);
            scope.spawn(move || {
                for step in steps.iter().filter(|step| step.sequence == sequence) {
                    board.wait_for(step.after);
                    let one = run_step(step, program, environment);
                    tell(&one);
                    board.done(step.name);
                    ended.lock().unwrap_or_else(PoisonError::into_inner).push(one);
                }
            });
        }
    });
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by_key(|one| steps.iter().position(|step| step.name == one.step.name));
    ended
}

/// Which steps have not ended yet.
struct Board {
    waiting: Mutex<BTreeSet<&'static str>>,
    ended: Condvar,
}

impl Board {
    fn wait_for(&self, names: &[&str]) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_waiting =
            |waiting: &mut BTreeSet<&'static str>| names.iter().any(|name| waiting.contains(name));
        drop(self.ended.wait_while(waiting, is_waiting).unwrap_or_else(PoisonError::into_inner));
    }

    fn done(&self, name: &str) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.ended.notify_all();
    }
}

fn run_step(step: &'static Step, program: &str, environment: &[(&str, String)]) -> Ended {
    let start = Instant::now();
    // It ends with us, and with it all that it started.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program).args(["test", "--step", step.name]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let text = match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => format!("the step could not be started: {error}\n"),
    };
    let (said, verdict, took) = outcome::parse(&text);
    Ended { step, said: said.to_owned(), verdict, took: Took { elapsed: start.elapsed(), ..took } }
}
