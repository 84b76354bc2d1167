//! One window: a `thalweg load` of its own, so that each begins alike and its processor time is its own.

use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use thalweg_load::peer::Announcement;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::process::Process;
use thalweg_measure::usage::processor_time;

use super::build::LOOK_EVERY;
use super::error::MeasureError;
use super::plan::{Plan, SidePlan};
use crate::comparison::WindowRun;

/// How long a client may take beyond its times: calls under way at the end come back within their own timeout.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that is ready to be started.
pub(super) struct Client<'a> {
    pub(super) plan: &'a Plan,
    pub(super) side: &'a SidePlan,
    /// The server's process.
    pub(super) server: u32,
    pub(super) interrupt: &'a Interrupt,
}

impl Client<'_> {
    /// Runs it to its end: what it found, and the server's processor time in the measured time, ns.
    pub(super) fn run(&self) -> Result<(WindowRun, Option<u64>), MeasureError> {
        let failed = |why: String| MeasureError::Client { name: self.side.name.clone(), why };
        let mut process = Process::spawn(&mut self.command(), self.plan.client_cpus.as_ref())
            .map_err(|error| failed(format!("cannot start `{}`: {error}", self.plan.program.display())))?;
        let lines = process.lines();
        let deadline = Instant::now() + self.plan.warm_up + self.plan.window + PATIENCE;
        let (mut text, mut begin, mut used) = (String::new(), None, None);
        // What the kernel does not tell stays unknown.
        let server_used = || processor_time(self.server).ok();
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) if line == Announcement::Measuring.name() => begin = server_used(),
                Ok(line) if line == Announcement::Measured.name() => {
                    let now = server_used();
                    used = begin.zip(now).map(|(begin, now)| now.saturating_sub(begin).as_nanos() as u64);
                }
                Ok(line) => {
                    text += &line;
                    text.push('\n');
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_asked() => {
                    return Err(MeasureError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(failed(format!(
                        "it did not end within {} s of its time",
                        PATIENCE.as_secs()
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.interrupt.is_asked() {
            return Err(MeasureError::Interrupted);
        }
        // A run whose calls failed exits with 1 and still says what it saw: its JSON counts, and not its code.
        let run = serde_json::from_str(&text).map_err(|error| {
            let _ = process.end();
            let words = process.last_words();
            failed(words.strip_prefix("error: ").map_or_else(
                || {
                    if text.is_empty() {
                        words.clone()
                    } else {
                        format!("its answer cannot be read: {error}")
                    }
                },
                str::to_owned,
            ))
        })?;
        Ok((run, used))
    }

    fn command(&self) -> Command {
        let Plan { program, load, window, warm_up, .. } = self.plan;
        let micros = |duration: &Duration| format!("{}us", duration.as_micros());
        let mut command = Command::new(program);
        command.args(["load", self.side.target.as_str()]).args(load);
        command.args([
            "-z",
            &micros(window),
            "--warmup",
            &micros(warm_up),
            "-O",
            "json",
            "--announce",
            "--quiet",
        ]);
        command
    }
}
