//! Executes the windows of a codec study.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::usage::{MeasuredProcesses, SideProcesses};

use super::line::CodecLine;
use super::peers;
use super::plan::LineEstimate;
use super::program::CodecProgram;
use super::tables::{CallFigures, CallsOf, InstructionsOf, PeerResult};
use super::window::{CodecMeasurement, CodecWindow, Conversions, calls_window};
use crate::load;
use crate::load::validity::judge_window;
use crate::peers::PeersDirectory;
use crate::process::{ProcessExecutor, Program};
use crate::stack::{OURS, Stack};
use crate::study::{Execute, ExecuteError, LeftOut};

/// Time after which the first estimate of a line ends.
const ESTIMATE_TIME: Duration = Duration::from_millis(1);
/// Prefix of the folder for messages that other programs read, and for callgrind's files.
const FILES: &str = "codec-files-";

/// Runs the codec program, calls of our own stack, and other programs that convert the same messages.
pub struct CodecExecutor<'b> {
    program: &'b mut CodecProgram,
    calls: Calls,
    peers: Option<PeersDirectory>,
    /// Whether peers measure as briefly as possible.
    quick: bool,
    /// The study's folder.
    directory: PathBuf,
    files: Option<TempDir>,
    interrupt: Interrupt,
}

impl<'b> CodecExecutor<'b> {
    /// Creates an executor. `ours` makes the calls, with client and server on their assigned processors. Temporary
    /// files for other programs are in `directory`.
    pub fn new(
        program: &'b mut CodecProgram,
        ours: Program,
        cpus: CpuAssignment,
        directory: &Path,
        interrupt: Interrupt,
    ) -> Self {
        Self {
            program,
            calls: Calls { ours, cpus, executor: None },
            peers: None,
            quick: false,
            directory: directory.to_owned(),
            files: None,
            interrupt,
        }
    }

    /// Sets the folder of peers, and whether they measure as briefly as possible.
    #[must_use]
    pub fn with_peers(self, peers: Option<PeersDirectory>, quick: bool) -> Self {
        Self { peers, quick, ..self }
    }

    /// Estimates the time of a conversion for each line. The first codec of each message and operation gets a
    /// duplicate, for the noise floor. A line that fails is left out, with the reason.
    pub fn estimate(&mut self, lines: &[CodecLine], left_out: &mut Vec<LeftOut>) -> Vec<LineEstimate> {
        let mut estimates: Vec<LineEstimate> = Vec::new();
        for line in lines {
            match estimate_line(self.program, line) {
                Ok(ns_per_conversion) => {
                    let is_first = !estimates.iter().any(|estimate| {
                        (&estimate.line.data, estimate.line.operation) == (&line.data, line.operation)
                    });
                    let estimate =
                        |is_duplicate| LineEstimate { line: line.clone(), is_duplicate, ns_per_conversion };
                    estimates.push(estimate(false));
                    if is_first {
                        estimates.push(estimate(true));
                    }
                }
                Err(reason) => left_out.push(LeftOut { what: line.to_string(), reason }),
            }
        }
        estimates
    }

    /// Converts, and observes whether other programs kept the codec program waiting.
    fn convert(&mut self, line: &CodecLine, conversions: u64) -> Result<CodecMeasurement, String> {
        let sides =
            MeasuredProcesses { client: SideProcesses::of(self.program.process(), None), server: None };
        let sample = || sides.sample().ok();
        let before = sample();
        let elapsed = self.program.convert(line, conversions)?;
        let usage = before.zip(sample()).map(|(before, after)| after.since(&before));
        let reason = usage.and_then(|usage| usage.client.kept_waiting("program", usage.window_ns));
        Ok(CodecMeasurement::Elapsed(elapsed, reason))
    }

    fn instructions(&mut self) -> Result<Vec<InstructionsOf>, String> {
        let folder = self.folder()?;
        self.program.instructions(&folder)
    }

    fn peer(&mut self, name: &str) -> Result<PeerResult, String> {
        let folder = self.folder()?;
        let peers = self.peers.as_ref().ok_or("no peers found; use --peers")?;
        self.program.write_messages(&folder)?;
        peers::convert(peers, name, &folder, self.quick)
    }

    /// Returns a temporary folder, created on first use and kept until the end of the study.
    fn folder(&mut self) -> Result<PathBuf, String> {
        if self.files.is_none() {
            let made = tempfile::Builder::new().prefix(FILES).tempdir_in(&self.directory);
            self.files = Some(made.map_err(|error| format!("{}: {error}", self.directory.display()))?);
        }
        Ok(self.files.as_ref().map(|files| files.path().to_owned()).unwrap_or_default())
    }
}

impl Execute for CodecExecutor<'_> {
    type Window = CodecWindow;
    type Measurement = CodecMeasurement;

    fn measure(&mut self, window: &CodecWindow) -> Result<CodecMeasurement, ExecuteError> {
        if self.interrupt.is_requested() {
            return Err(ExecuteError::Interrupted);
        }
        let found = match window {
            CodecWindow::Conversions(Conversions { line, conversions, .. }) => {
                self.convert(line, *conversions)
            }
            CodecWindow::Allocations(line) => {
                self.program.allocations(line).map(CodecMeasurement::Allocations)
            }
            CodecWindow::Calls { calls, round } => {
                return self.calls.measure(calls, *round, &self.interrupt).map(CodecMeasurement::Calls);
            }
            CodecWindow::Instructions => self.instructions().map(CodecMeasurement::Instructions),
            CodecWindow::Peer { name, .. } => {
                self.peer(name).map(|peer| CodecMeasurement::Peer(Box::new(peer)))
            }
        };
        found.map_err(ExecuteError::Window)
    }
}

fn estimate_line(program: &mut CodecProgram, line: &CodecLine) -> Result<f64, String> {
    let mut conversions = 10;
    loop {
        let elapsed = program.convert(line, conversions)?;
        if elapsed >= ESTIMATE_TIME {
            return Ok(elapsed.as_nanos() as f64 / conversions as f64);
        }
        conversions *= 4;
    }
}

/// Calls between client and server of this program. The server starts with the first call.
struct Calls {
    ours: Program,
    cpus: CpuAssignment,
    /// The executor, or why calls are no longer possible.
    executor: Option<Result<ProcessExecutor, String>>,
}

impl Calls {
    fn measure(
        &mut self,
        calls: &CallsOf,
        round: u32,
        interrupt: &Interrupt,
    ) -> Result<CallFigures, ExecuteError> {
        let started = self.executor.get_or_insert_with(|| {
            let programs = BTreeMap::from([(OURS.to_owned(), self.ours.clone())]);
            let mut executor = ProcessExecutor::new(programs, self.cpus.clone(), interrupt.clone());
            executor.serve(&Stack::ours()).map(|()| executor).map_err(|error| error.to_string())
        });
        let executor = started.as_mut().map_err(|reason| ExecuteError::Window(reason.clone()))?;
        match executor.measure(&calls_window(calls, round)) {
            Ok(found) => figures(&found).map_err(ExecuteError::Window),
            // Conversions need no server, so the study continues.
            Err(ExecuteError::Study(reason)) => {
                *started = Err(reason.clone());
                Err(ExecuteError::Window(reason))
            }
            Err(other) => Err(other),
        }
    }
}

/// Returns the figures of a valid window, or why there are none.
fn figures(found: &load::WindowMeasurement) -> Result<CallFigures, String> {
    let load::WindowMeasurement::Figures(measured) = found else {
        return Err("the window has no figures".to_owned());
    };
    let (load, usage) = (&measured.load, measured.usage.as_ref());
    if let Some(reason) = judge_window(Ok(load), usage).invalid_reason() {
        return Err(reason);
    }
    let (Some(usage), Some(latency)) = (usage, load.latency_ns) else {
        return Err("no CPU time from the kernel, or no call was timed".to_owned());
    };
    let cpu_ns = (usage.client.cpu_ns() + usage.server.cpu_ns()) as f64 / load.messages as f64;
    Ok(CallFigures { p50_ns: latency.p50 as f64, cpu_ns, rate_per_s: load.rate_per_s })
}
