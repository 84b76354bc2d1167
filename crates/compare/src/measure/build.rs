//! Runs the user's commands in a shell, and stops them with all their child processes.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use thalweg_measure::cpus::CpuList;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::process::Process;

use super::error::MeasureError;

/// Poll interval for the end of a process.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts a shell that runs `command`. Its stdout goes to stderr, so that the last lines of both are known.
pub(super) fn shell(
    command: &str,
    directory: Option<&Path>,
    cpus: Option<&CpuList>,
) -> Result<Process, String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec 1>&2\n{command}"));
    if let Some(directory) = directory {
        shell.current_dir(directory);
    }
    Process::spawn(&mut shell, cpus).map_err(|error| format!("failed to start `sh`: {error}"))
}

/// Runs the build command of a revision in its folder, and waits for its end.
///
/// # Errors
///
/// Returns the last lines of its output if it fails.
pub(super) fn build(
    name: &str,
    command: &str,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<(), MeasureError> {
    let failed =
        |why: String| MeasureError::Build { name: name.to_owned(), command: command.to_owned(), why };
    let mut process = shell(command, Some(directory), None).map_err(failed)?;
    while !process.has_exited() {
        if interrupt.is_requested() {
            return Err(MeasureError::Interrupted);
        }
        thread::sleep(POLL_INTERVAL);
    }
    let status = process.end().map_err(|error| failed(error.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(format!("{status}: {}", process.stderr_tail_or_default())))
    }
}
