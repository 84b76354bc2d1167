//! The `thalweg.lab/4` schema: everything a study of calls found, and where and how it was found.

use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::programs::BusyProgram;
use thalweg_measure::usage::Usage;
use thalweg_measure::validity::{Disturbance, Validity};

use super::found::{Found, Measured, SystemCalls, Wire};
use super::point::Point;
use super::strategy::Strategy;
use super::validity::judged;
use super::window::{Label, Purpose, Window};
use crate::record::LoadResult;
use crate::stack::{Pair, Setting, Stack};
use crate::study::{self, LeftOut, Plan, ReadError, ResultsText, WindowOutcome, timestamp};

/// The schema's name and version: a field that changes its meaning raises the number.
pub(crate) const LAB_SCHEMA: &str = "thalweg.lab/4";
/// Everything a study found. Serialised, it is the schema `thalweg.lab/4`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabResults {
    /// [`LAB_SCHEMA`].
    pub(crate) schema: String,
    /// Which study.
    pub(crate) study: StudyKind,
    /// When it began: RFC 3339, UTC.
    pub(crate) started: String,
    /// When the last point that is here ended: RFC 3339, UTC.
    pub(crate) ended: String,
    /// How many windows the plan has for [`Self::points`]; fewer there mean that the study was cut short.
    pub(crate) planned: usize,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub(crate) settings: Settings,
    /// The stacks that were measured, in the order in which they were named, ours first. More than one: the study
    /// compares them.
    pub(crate) stacks: Vec<StackInfo>,
    /// Stacks that were asked for and could not be had.
    pub(crate) left_out: Vec<LeftOut<Stack>>,
    /// Ours against ours, measured before everything else, as stacks are compared: the noise floor.
    pub(crate) aa: Vec<AaResult>,
    /// What was found, in the order of measuring.
    ///
    /// A *cell* is all of these with an equal [`Point`]: in each round a window of our own pair or of the bare socket,
    /// or, where stacks are compared, of each pair (and of the bare socket, if it was asked for). Round 0 goes through
    /// all that takes turns in order, round 1 back, and so on, so windows of one round stand next to each other in
    /// time.
    pub(crate) points: Vec<PointResult>,
    /// System calls, counted in runs of their own. Empty where nothing is compared.
    pub(crate) system_calls: Vec<SystemCallsResult>,
    /// Gaps between bytes, watched in windows of their own. Of the channels study alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wire: Vec<WireResult>,
    /// Other programs that were busy meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<BusyProgram>,
}

/// The studies whose results have this schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyKind {
    /// [`crate::sizes`].
    Sizes,
    /// [`crate::channels`].
    Channels,
    /// [`crate::connections`].
    Connections,
}

impl fmt::Display for StudyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sizes => "sizes",
            Self::Channels => "channels",
            Self::Connections => "connections",
        })
    }
}

/// What stands in the results besides what is found.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How it is measured.
    pub settings: Settings,
    /// What is measured, ours first.
    pub stacks: Vec<StackInfo>,
    /// What was asked for and is not.
    pub left_out: Vec<LeftOut<Stack>>,
}

/// How a study was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Processors the clients were kept on; `null` where there is one processor only.
    pub client_cpus: Option<CpuList>,
    /// Processors the server was kept on.
    pub server_cpus: Option<CpuList>,
    /// Threads of each client, where it was told how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<u32>,
    /// Threads of each server, where it was told how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_threads: Option<u32>,
    /// The server that was driven, where it is none that the lab started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What was left out of the grid because this machine does not allow it, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A stack that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackInfo {
    /// Its name, with the variant that was asked for.
    pub stack: Stack,
    /// What it calls itself: `gRPC C++ 1.51.1`.
    pub version: String,
    /// How it is set up, as it says itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
}

/// One window: a point measured once, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PointResult {
    /// What was asked.
    pub(crate) point: Point,
    /// Whose client and server; `None` for a bare socket.
    pub(crate) pair: Option<Pair>,
    /// How the client came by its connections; `None` where the point's number of them says all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// Which turn of the cell, from 0.
    pub(crate) round: u32,
    /// What was found.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// What both processes used meanwhile, as the kernel accounts it: alike for every stack, unlike
    /// [`LoadResult::client_cpu`], which is what the driver says of itself. `None` for bare sockets, for windows that
    /// failed, and where the kernel does not tell.
    pub(crate) usage: Option<Usage>,
    /// Why the figures must not be used, decided when the window was made. `None` in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_valid: Option<Validity>,
}

/// A window of ours against ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AaResult {
    /// Which of the two it stands for. A and B are the same program, each with a server process of its own, as the
    /// stacks that are compared have.
    pub(crate) label: Label,
    /// The window. Its [`PointResult::pair`] is ours, and rounds interleave A and B as they do pairs.
    #[serde(flatten)]
    pub(crate) window: PointResult,
}

/// System calls per operation of a pair at a point, counted in a run of its own in which counting slowed everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SystemCallsResult {
    /// What was asked. Its times are those of the counting run.
    pub(crate) point: Point,
    /// Whose client and server.
    pub(crate) pair: Pair,
    /// How the client came by its connections; `None` where the point's number of them says all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// What was found.
    #[serde(flatten)]
    pub(crate) outcome: SystemCallsOutcome,
}

/// What came of counting system calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemCallsOutcome {
    /// How many there were.
    Counted(SystemCalls),
    /// Why they could not be counted.
    Failed(String),
}

/// When bytes moved between a client and its server and when none did, watched by a hop in between. The hop takes time
/// of its own, so rates and latencies of the window are not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WireResult {
    /// What was asked.
    pub(crate) point: Point,
    /// Whose client and server.
    pub(crate) pair: Pair,
    /// How the client came by its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// What was found.
    #[serde(flatten)]
    pub(crate) outcome: WireOutcome,
}

/// What came of watching the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireOutcome {
    /// What was seen.
    Watched(Box<Wire>),
    /// Why nothing was.
    Failed(String),
}

/// What came of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The driver's result.
    Measured(Box<LoadResult>),
    /// Why there is none.
    Failed(String),
}

impl PointResult {
    fn of(window: &Window, outcome: WindowOutcome<Found>) -> Self {
        let (outcome, usage) = match outcome {
            Ok(Found::Figures(measured)) => {
                let Measured { load, usage } = *measured;
                (Outcome::Measured(Box::new(load)), usage)
            }
            other => (Outcome::Failed(reason(other)), None),
        };
        let Window { point, pair, strategy, round, .. } = window.clone();
        let result = Self { point, pair, strategy, round, outcome, usage, not_valid: None };
        Self { not_valid: Some(result.validity()), ..result }
    }

    /// Whether the figures may be used.
    pub(crate) fn validity(&self) -> Validity {
        let outcome = match &self.outcome {
            Outcome::Measured(result) => Ok(&**result),
            Outcome::Failed(reason) => Err(reason.as_str()),
        };
        self.not_valid.clone().unwrap_or_else(|| judged(outcome, self.usage.as_ref()))
    }

    /// Why the figures must not be used; `None` for a valid window.
    pub(crate) fn why_not(&self) -> Option<String> {
        self.validity().why_not()
    }

    /// The driver's result, where its figures may be used.
    pub(crate) fn valid(&self) -> Option<&LoadResult> {
        self.measured().filter(|_| self.validity().is_valid())
    }

    /// The driver's result, where there is one.
    pub(crate) fn measured(&self) -> Option<&LoadResult> {
        match &self.outcome {
            Outcome::Measured(result) => Some(result),
            Outcome::Failed(_) => None,
        }
    }
}

impl SystemCallsResult {
    fn of(window: &Window, outcome: WindowOutcome<Found>) -> Self {
        let outcome = match outcome {
            Ok(Found::SystemCalls(counted)) => SystemCallsOutcome::Counted(counted),
            other => SystemCallsOutcome::Failed(reason(other)),
        };
        Self { point: window.point.clone(), pair: pair_of(window), strategy: window.strategy, outcome }
    }
}

impl WireResult {
    fn of(window: &Window, outcome: WindowOutcome<Found>) -> Self {
        let outcome = match outcome {
            Ok(Found::Wire(wire)) => WireOutcome::Watched(wire),
            other => WireOutcome::Failed(reason(other)),
        };
        Self { point: window.point.clone(), pair: pair_of(window), strategy: window.strategy, outcome }
    }
}

/// System calls are counted, and the wire is watched, of pairs.
fn pair_of(window: &Window) -> Pair {
    window.pair.clone().unwrap_or_else(Pair::ours)
}

/// Why a window has not told what it was measured for.
fn reason(outcome: WindowOutcome<Found>) -> String {
    outcome.map_or_else(|reason| reason, |found| format!("the window found something else: {found}"))
}

impl LabResults {
    /// Of a study that begins now: without a figure yet.
    pub fn begun(study: StudyKind, plan: &Plan<Window>, setup: Setup) -> Self {
        let now = timestamp(SystemTime::now());
        let is_figure = |window: &&Window| window.purpose == Purpose::Figures;
        let planned = plan.windows.iter().filter(is_figure).count();
        Self {
            schema: LAB_SCHEMA.to_owned(),
            study,
            started: now.clone(),
            ended: now,
            planned,
            machine: Machine::this(),
            versions: Versions::this(),
            settings: setup.settings,
            stacks: setup.stacks,
            left_out: setup.left_out,
            aa: Vec::new(),
            points: Vec::with_capacity(planned),
            system_calls: Vec::new(),
            wire: Vec::new(),
            others: Vec::new(),
        }
    }

    /// The windows of calls that are not valid; `None` if all are. Nobody looks at the threads of a bare socket.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        let calls = self.points.iter().filter(|window| window.pair.is_some());
        let windows: Vec<Validity> = calls.map(PointResult::validity).collect();
        Disturbance::of(&windows, &self.others)
    }

    /// Reads what a study saved.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        ResultsText::read(path, &[LAB_SCHEMA])?.parse()
    }

    /// The pair with which all others are compared: our client at our server, or, where that is not measured, the first
    /// of those with which each round begins, such as our client at the server that all clients meet.
    pub(crate) fn reference(&self) -> Pair {
        let ours = Pair::ours();
        let mut pairs = self.points.iter().filter_map(|window| window.pair.as_ref());
        if pairs.clone().any(|pair| *pair == ours) { ours } else { pairs.next().cloned().unwrap_or(ours) }
    }

    /// It is a study of channels.
    pub(crate) fn is_channels(&self) -> bool {
        self.study == StudyKind::Channels
    }

    /// More than one stack was asked for: a study of sizes compares them.
    pub(crate) fn is_comparison(&self) -> bool {
        self.study == StudyKind::Sizes && self.stacks.len() + self.left_out.len() > 1
    }

    /// Every planned point was tried.
    pub(crate) fn is_complete(&self) -> bool {
        self.points.len() >= self.planned
    }
}

impl study::Results<Window, Found> for LabResults {
    fn record(&mut self, window: &Window, outcome: WindowOutcome<Found>, now: SystemTime) {
        self.ended = timestamp(now);
        match window.purpose {
            Purpose::Figures => self.points.push(PointResult::of(window, outcome)),
            Purpose::NoiseFloor(label) => {
                self.aa.push(AaResult { label, window: PointResult::of(window, outcome) });
            }
            Purpose::SystemCalls => self.system_calls.push(SystemCallsResult::of(window, outcome)),
            Purpose::Wire => self.wire.push(WireResult::of(window, outcome)),
        }
    }

    fn ran_beside(&mut self, others: Vec<BusyProgram>) {
        self.others = others;
    }

    fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn has_failures(&self) -> bool {
        let is_good = |result: &LoadResult| result.error_count() == 0 && result.messages > 0;
        !self.points.iter().all(|point| point.measured().is_some_and(is_good))
    }
}
