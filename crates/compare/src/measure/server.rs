//! A server started by the user's command.

use std::thread;
use std::time::Instant;

use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::process::Process;

use super::build::{LOOK_EVERY, shell};
use super::error::MeasureError;
use super::plan::{Plan, SidePlan};

/// A running server, stopped on drop.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
}

impl Server {
    /// Starts it, and waits until it accepts connections.
    pub(super) fn start(side: &SidePlan, plan: &Plan, interrupt: &Interrupt) -> Result<Self, MeasureError> {
        let failed = |why: String| MeasureError::Start {
            name: side.name.clone(),
            command: side.command.clone(),
            target: side.target.to_string(),
            why,
        };
        let accepts = || side.target.accepts().map_err(|error| failed(error.to_string()));
        if accepts()? {
            return Err(MeasureError::Taken { name: side.name.clone(), target: side.target.to_string() });
        }
        let process = shell(&side.command, side.directory.as_deref(), plan.server_cpus.as_ref());
        let mut server = Self { process: process.map_err(failed)? };
        let deadline = Instant::now() + plan.start_within;
        while !accepts()? {
            if interrupt.is_asked() {
                return Err(MeasureError::Interrupted);
            }
            if let Some(why) = server.ended() {
                return Err(failed(why));
            }
            if Instant::now() > deadline {
                // Its output is complete only after it has exited.
                let _ = server.process.end();
                let seconds = plan.start_within.as_secs_f64();
                return Err(failed(format!("not within {seconds} s. {}", server.process.last_words())));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(server)
    }

    /// Returns the id of its first process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns its exit status and the last lines of its output, if it has exited.
    pub(super) fn ended(&mut self) -> Option<String> {
        if !self.process.has_ended() {
            return None;
        }
        let status = self.process.end().map_or_else(|error| error.to_string(), |status| status.to_string());
        Some(format!("{status}: {}", self.process.last_words()))
    }

    /// Asks it to shut down.
    pub(super) fn ask_to_end(&self) {
        self.process.ask_to_end();
    }
}
