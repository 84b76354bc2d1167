//! Result tables of a codec study.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_measure::size::ByteSize;
use thalweg_measure::validity::{Reason, Validity};

use super::line::{Decodes, Format, Operation};
use super::plan::{CALLS_IN_FLIGHT, PlannedConversions};
use super::program::CodecProgram;
use super::tables::{
    AllocationsOf, CallFigures, CallsOf, CodecInfo, CodecStep, DataInfo, InstructionsOf, MessageSize,
    PeerResult, StepLeftOut,
};
use super::window::{CodecMeasurement, CodecWindow, Conversions};
use crate::study::{LeftOut, StudyKind, StudyResults, StudyTables, WindowOutcome};

/// Results of a codec study.
pub type CodecResults = StudyResults<CodecSettings, CodecTables>;

/// The tables of a codec study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodecTables {
    /// Codecs in the order of reports.
    pub(crate) codecs: Vec<CodecInfo>,
    /// Kinds of message in the order of reports.
    pub(crate) data: Vec<DataInfo>,
    /// Sizes of encoded messages.
    pub(crate) sizes: Vec<MessageSize>,
    /// Times of conversions.
    pub(crate) steps: Vec<CodecStep>,
    /// Steps left out for lack of time.
    pub(crate) steps_left_out: Vec<StepLeftOut>,
    /// Allocations of conversions.
    pub(crate) allocations: Vec<AllocationsOf>,
    /// Instructions per conversion, counted by callgrind in a separate run.
    pub(crate) instructions: Vec<InstructionsOf>,
    /// Calls over a Unix socket with payloads as large as the messages.
    pub(crate) calls: Vec<CallsOf>,
    /// Results of peers in other languages.
    pub(crate) peers: Vec<PeerResult>,
}

/// Settings of a codec study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodecSettings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Windows of each line at each step.
    pub rounds: u32,
    /// Uncounted conversions before each window.
    pub warm_ups: u64,
    /// Seed of generated messages; `null` for the user's own.
    pub seed: Option<u64>,
    /// Processor that conversions were pinned to.
    pub cpu: Option<usize>,
}

impl CodecResults {
    /// Returns results without figures for a study that starts now. `tables`: codecs, messages and sizes.
    pub fn started(
        settings: CodecSettings,
        left_out: Vec<LeftOut>,
        tables: CodecTables,
        planned: &PlannedConversions,
    ) -> Self {
        let tables = CodecTables { steps_left_out: planned.left_out.clone(), ..tables };
        Self::start(StudyKind::Codec, planned.windows.len(), settings, left_out, tables)
    }
}

impl CodecTables {
    /// Returns calls with payloads as large as each message in Protobuf and in JSON.
    pub fn calls(&self) -> Vec<CallsOf> {
        let Self { data, codecs, sizes, .. } = self;
        let mut calls = Vec::new();
        for data in data {
            for format in [Format::Protobuf, Format::Json] {
                let is_of = |size: &&MessageSize| {
                    let codec = codecs.iter().find(|codec| codec.name == size.codec);
                    size.data == data.name && codec.is_some_and(|codec| codec.format == format)
                };
                let Some(size) = sizes.iter().find(is_of) else { continue };
                calls.extend(CALLS_IN_FLIGHT.map(|in_flight| CallsOf {
                    data: data.name.clone(),
                    format,
                    size_bytes: size.raw.round() as u64,
                    in_flight,
                    rounds: Vec::new(),
                }));
            }
        }
        calls
    }

    /// Returns tables with the program's codecs and messages.
    pub fn of(bench: &CodecProgram) -> Self {
        let (codecs, data, sizes) = (bench.codecs.clone(), bench.data.clone(), bench.sizes.clone());
        Self { codecs, data, sizes, ..Self::default() }
    }

    /// Returns the codec of this name, which may be a peer's.
    pub(crate) fn codec(&self, name: &str) -> Option<&CodecInfo> {
        self.all_codecs().find(|codec| codec.name == name)
    }

    /// Returns all codecs, ours before those of peers.
    pub(crate) fn all_codecs(&self) -> impl Iterator<Item = &CodecInfo> {
        self.codecs.iter().chain(self.peers.iter().flat_map(|peer| &peer.codecs))
    }

    /// Returns the codec that represents these formats: the first measured one, preferably with owned decoding.
    pub(crate) fn first_of(&self, formats: &[Format]) -> Option<&CodecInfo> {
        let is_measured = |codec: &&CodecInfo| self.steps.iter().any(|step| step.line.codec == codec.name);
        let measured = self.codecs.iter().filter(|codec| formats.contains(&codec.format)).filter(is_measured);
        measured
            .clone()
            .find(|codec| codec.decodes != Some(Decodes::Borrowed))
            .or_else(|| measured.clone().next())
    }

    /// Returns the size of a message with a codec.
    pub(crate) fn size(&self, data: &str, codec: &str) -> Option<&MessageSize> {
        self.sizes.iter().find(|size| size.data == data && size.codec == codec)
    }

    /// Returns the number of measured windows.
    pub(crate) fn measured(&self) -> usize {
        self.steps.iter().map(|step| step.elapsed_ns.len() + step.not_valid.len()).sum()
    }

    /// Returns the measured operations.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let has = |operation: &Operation| self.steps.iter().any(|step| step.line.operation == *operation);
        Operation::ALL.into_iter().filter(has).collect()
    }
}

impl StudyTables for CodecTables {
    type Window = CodecWindow;
    type Measurement = CodecMeasurement;

    /// Records a window. Unavailable measurements are listed among the doubts.
    fn record(
        &mut self,
        window: &CodecWindow,
        outcome: WindowOutcome<CodecMeasurement>,
        left_out: &mut Vec<LeftOut>,
    ) {
        match (window, outcome) {
            (CodecWindow::Conversions(window), Ok(CodecMeasurement::Elapsed(elapsed, reason))) => {
                self.add_elapsed(window, elapsed, reason);
            }
            (CodecWindow::Allocations(line), Ok(CodecMeasurement::Allocations(allocations))) => {
                self.allocations.push(AllocationsOf { line: line.clone(), allocations });
            }
            (CodecWindow::Calls { calls, .. }, Ok(CodecMeasurement::Calls(figures))) => {
                self.add_calls(calls, figures);
            }
            (CodecWindow::Instructions, Ok(CodecMeasurement::Instructions(counted))) => {
                self.instructions = counted;
            }
            (CodecWindow::Peer { .. }, Ok(CodecMeasurement::Peer(peer))) => self.peers.push(*peer),
            (window, Ok(_)) => leave_out(left_out, window, "unexpected result of the window".to_owned()),
            (window, Err(reason)) => leave_out(left_out, window, reason),
        }
    }

    fn validities(&self) -> Vec<Validity> {
        let of_step = |step: &CodecStep| {
            let valid = step.elapsed_ns.iter().map(|_| Validity::default());
            let others = step.not_valid.iter().map(|reason| Validity { reasons: vec![reason.clone()] });
            valid.chain(others).collect::<Vec<_>>()
        };
        self.steps.iter().flat_map(of_step).collect()
    }

    fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn has_failures(&self) -> bool {
        false
    }
}

impl CodecTables {
    fn add_elapsed(&mut self, window: &Conversions, elapsed: Duration, not_valid: Option<Reason>) {
        let Conversions { line, is_duplicate, conversions, .. } = window;
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let is_same = |step: &CodecStep| {
            (&step.line, step.is_duplicate, step.conversions) == (line, *is_duplicate, *conversions)
        };
        // The step is among the last, since windows of its rounds follow each other.
        let index = self.steps.iter().rposition(is_same).unwrap_or_else(|| {
            let (line, is_duplicate, conversions) = (line.clone(), *is_duplicate, *conversions);
            self.steps.push(CodecStep {
                line,
                is_duplicate,
                conversions,
                elapsed_ns: Vec::new(),
                not_valid: Vec::new(),
            });
            self.steps.len() - 1
        });
        match not_valid {
            None => self.steps[index].elapsed_ns.push(elapsed_ns),
            Some(reason) => self.steps[index].not_valid.push(reason),
        }
    }

    fn add_calls(&mut self, calls: &CallsOf, figures: CallFigures) {
        let is_same = |known: &&mut CallsOf| {
            (&known.data, known.format, known.in_flight) == (&calls.data, calls.format, calls.in_flight)
        };
        match self.calls.iter_mut().find(is_same) {
            Some(known) => known.rounds.push(figures),
            None => self.calls.push(CallsOf { rounds: vec![figures], ..calls.clone() }),
        }
    }
}

/// Lists each failed measurement once, and a failure of all calls once as well.
fn leave_out(left_out: &mut Vec<LeftOut>, window: &CodecWindow, reason: String) {
    let (what, is_of_all) = match window {
        CodecWindow::Conversions(Conversions { line, .. }) => (line.to_string(), false),
        CodecWindow::Allocations(_) => (window.to_string(), false),
        CodecWindow::Calls { calls, .. } => (format!("a call with {}", ByteSize(calls.size_bytes)), true),
        CodecWindow::Instructions => ("instructions".to_owned(), false),
        CodecWindow::Peer { name, .. } => (name.clone(), false),
    };
    let is_said = left_out.iter().any(|it| it.reason == reason && (is_of_all || it.what == what));
    if !is_said {
        left_out.push(LeftOut { what, reason });
    }
}
