//! Measures the windows of a codec study.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::usage::{Side, Sides};

use super::line::CodecLine;
use super::peers;
use super::plan::LineEstimate;
use super::program::CodecProgram;
use super::tables::{CallFigures, CallsOf, InstructionsOf, PeerResult};
use super::window::{CodecFound, CodecWindow, Conversions, calls_window};
use crate::load;
use crate::load::validity::judged;
use crate::peers::PeersDirectory;
use crate::process::{ProcessExecutor, Program};
use crate::stack::{OURS, Stack};
use crate::study::{Execute, ExecuteError, LeftOut};

/// The first look at a line ends when its conversions took so long.
const LOOK: Duration = Duration::from_millis(1);
/// Where messages lie for programs that are not this one, and callgrind's files.
const FILES: &str = "codec-files-";

/// Lets the program convert, our own stack make calls, and other programs convert the same messages.
pub struct CodecExecutor<'b> {
    program: &'b mut CodecProgram,
    calls: Calls,
    peers: Option<PeersDirectory>,
    /// Peers measure for as short as makes sense.
    quick: bool,
    /// The study's folder.
    directory: PathBuf,
    files: Option<TempDir>,
    interrupt: Interrupt,
}

impl<'b> CodecExecutor<'b> {
    /// `ours` makes the calls, its client and its server on the processors assigned to them. Files for other programs
    /// lie in `directory` as long as they are needed.
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

    /// Where peers are, and whether they measure for as short as makes sense.
    #[must_use]
    pub fn with_peers(self, peers: Option<PeersDirectory>, quick: bool) -> Self {
        Self { peers, quick, ..self }
    }

    /// Finds out about how long a conversion of each line takes. Of each message and operation the first codec is
    /// looked at twice: it is measured beside itself. A line that fails is left out, with the reason.
    pub fn look(&mut self, lines: &[CodecLine], left_out: &mut Vec<LeftOut>) -> Vec<LineEstimate> {
        let mut estimates: Vec<LineEstimate> = Vec::new();
        for line in lines {
            match first_look(self.program, line) {
                Ok(ns_per_conversion) => {
                    let is_first = !estimates.iter().any(|estimate| {
                        (&estimate.line.data, estimate.line.operation) == (&line.data, line.operation)
                    });
                    let estimate = |again| LineEstimate { line: line.clone(), again, ns_per_conversion };
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

    /// Converts, and sees whether others kept the program waiting meanwhile.
    fn convert(&mut self, line: &CodecLine, conversions: u64) -> Result<CodecFound, String> {
        let sides = Sides { client: Side::of(self.program.process(), None), server: None };
        let sample = || sides.sample().ok();
        let before = sample();
        let elapsed = self.program.convert(line, conversions)?;
        let usage = before.zip(sample()).map(|(before, after)| after.since(&before));
        let reason = usage.and_then(|usage| usage.client.kept_waiting("program", usage.window_ns));
        Ok(CodecFound::Elapsed(elapsed, reason))
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

    /// A folder that is there from when it is needed to the end of the study.
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
    type Found = CodecFound;

    fn measure(&mut self, window: &CodecWindow) -> Result<CodecFound, ExecuteError> {
        if self.interrupt.is_asked() {
            return Err(ExecuteError::Interrupted);
        }
        let found = match window {
            CodecWindow::Conversions(Conversions { line, conversions, .. }) => {
                self.convert(line, *conversions)
            }
            CodecWindow::Allocations(line) => self.program.allocations(line).map(CodecFound::Allocations),
            CodecWindow::Calls { calls, round } => {
                return self.calls.measure(calls, *round, &self.interrupt).map(CodecFound::Calls);
            }
            CodecWindow::Instructions => self.instructions().map(CodecFound::Instructions),
            CodecWindow::Peer { name, .. } => self.peer(name).map(|peer| CodecFound::Peer(Box::new(peer))),
        };
        found.map_err(ExecuteError::Window)
    }
}

fn first_look(program: &mut CodecProgram, line: &CodecLine) -> Result<f64, String> {
    let mut conversions = 10;
    loop {
        let elapsed = program.convert(line, conversions)?;
        if elapsed >= LOOK {
            return Ok(elapsed.as_nanos() as f64 / conversions as f64);
        }
        conversions *= 4;
    }
}

/// Calls between this program and this program, whose server starts with the first of them.
struct Calls {
    ours: Program,
    cpus: CpuAssignment,
    /// Or why there are no more calls.
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
            // Conversions need no server.
            Err(ExecuteError::Study(reason)) => {
                *started = Err(reason.clone());
                Err(ExecuteError::Window(reason))
            }
            Err(other) => Err(other),
        }
    }
}

/// The figures of a valid window, or why there are none.
fn figures(found: &load::Found) -> Result<CallFigures, String> {
    let load::Found::Figures(measured) = found else { return Err("the window found no figures".to_owned()) };
    let (load, usage) = (&measured.load, measured.usage.as_ref());
    if let Some(reason) = judged(Ok(load), usage).why_not() {
        return Err(reason);
    }
    let (Some(usage), Some(latency)) = (usage, load.latency_ns) else {
        return Err("the kernel does not tell CPU time, or no call was timed".to_owned());
    };
    let cpu_ns = (usage.client.cpu_ns() + usage.server.cpu_ns()) as f64 / load.messages as f64;
    Ok(CallFigures { p50_ns: latency.p50 as f64, cpu_ns, rate_per_s: load.rate_per_s })
}
