//! A server started by the user's command.

use std::thread;
use std::time::Instant;

use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::process::Process;

use super::build::{POLL_INTERVAL, shell};
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
        let accepts = || side.target.accepts_connections().map_err(|error| failed(error.to_string()));
        if accepts()? {
            return Err(MeasureError::Taken { name: side.name.clone(), target: side.target.to_string() });
        }
        let process = shell(&side.command, side.directory.as_deref(), plan.server_cpus.as_ref());
        let mut server = Self { process: process.map_err(failed)? };
        let deadline = Instant::now() + plan.start_within;
        while !accepts()? {
            if interrupt.is_requested() {
                return Err(MeasureError::Interrupted);
            }
            if let Some(why) = server.exit_reason() {
                return Err(failed(why));
            }
            if Instant::now() > deadline {
                // Its output is complete only after it has exited.
                let _ = server.process.end();
                let seconds = plan.start_within.as_secs_f64();
                return Err(failed(format!(
                    "not within {seconds} s. {}",
                    server.process.stderr_tail_or_default()
                )));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(server)
    }

    /// Returns the id of its first process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns its exit status and the last lines of its output, if it has exited.
    pub(super) fn exit_reason(&mut self) -> Option<String> {
        if !self.process.has_exited() {
            return None;
        }
        let status = self.process.end().map_or_else(|error| error.to_string(), |status| status.to_string());
        Some(format!("{status}: {}", self.process.stderr_tail_or_default()))
    }

    /// Asks it to shut down.
    pub(super) fn terminate(&self) {
        self.process.terminate();
    }
}
