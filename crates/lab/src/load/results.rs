//! The tables of studies of calls.

use serde::{Deserialize, Serialize};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::validity::Validity;

use super::found::{Found, SystemCalls, Wire};
use super::window::{Asked, Label, Purpose, Window};
use super::window_result::WindowResult;
use crate::record::LoadResult;
use crate::stack::{Pair, Setting, Stack};
use crate::study::{LeftOut, Plan, StudyKind, StudyResults, StudyTables, WindowOutcome};

/// What a study of calls found.
pub type LabResults = StudyResults<CallsSettings, CallsTables>;
/// One window of figures.
pub(crate) type PointResult = WindowResult<Asked>;

/// The tables of a study of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsTables {
    /// The stacks that were measured, in the order in which they were named, ours first. More than one: the study
    /// compares them.
    pub(crate) stacks: Vec<StackInfo>,
    /// Ours against ours, measured before everything else, as stacks are compared: the noise floor.
    pub(crate) aa: Vec<AaResult>,
    /// What was found, in the order of measuring.
    ///
    /// A *cell* is all of these with an equal [`Point`](super::Point): in each round a window of our own pair or of the
    /// bare socket, or, where stacks are compared, of each pair (and of the bare socket, if it was asked for). Round 0
    /// goes through all that takes turns in order, round 1 back, and so on, so windows of one round stand next to each
    /// other in time.
    pub(crate) points: Vec<PointResult>,
    /// System calls, counted in runs of their own in which counting slowed everything. Empty where nothing is compared.
    pub(crate) system_calls: Vec<WindowResult<Asked, SystemCalls>>,
    /// When bytes moved between a client and its server and when none did, watched by a hop in between in windows of
    /// their own. The hop takes time, so rates and latencies are not kept. Of the channels study alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wire: Vec<WindowResult<Asked, Wire>>,
}

/// How a study of calls was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsSettings {
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

/// A window of ours against ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AaResult {
    /// Which of the two it stands for. A and B are the same program, each with a server process of its own, as the
    /// stacks that are compared have.
    pub(crate) label: Label,
    /// The window. Its pair is ours, and rounds interleave A and B as they do pairs.
    #[serde(flatten)]
    pub(crate) window: PointResult,
}

#[cfg(test)]
impl PointResult {
    /// The same in another round.
    pub(crate) fn in_round(mut self, round: u32) -> Self {
        self.round = round;
        self
    }
}

impl LabResults {
    /// Of a study that begins now: without a figure yet. `stacks`: what is measured, ours first.
    pub fn begun(
        study: StudyKind,
        plan: &Plan<Window>,
        settings: CallsSettings,
        stacks: Vec<StackInfo>,
        left_out: Vec<LeftOut>,
    ) -> Self {
        let is_figure = |window: &&Window| window.purpose == Purpose::Figures;
        let planned = plan.windows.iter().filter(is_figure).count();
        Self::start(study, planned, settings, left_out, CallsTables { stacks, ..CallsTables::default() })
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

/// Why a window has not told what it was measured for.
const SOMETHING_ELSE: &str = "the window found something else";

impl StudyTables for CallsTables {
    type Window = Window;
    type Found = Found;

    fn record(&mut self, window: &Window, outcome: WindowOutcome<Found>, _: &mut Vec<LeftOut>) {
        let asked = window.asked.clone();
        let figures = |outcome: WindowOutcome<Found>| match outcome? {
            Found::Figures(measured) => Ok(*measured),
            _ => Err(SOMETHING_ELSE.to_owned()),
        };
        match window.purpose {
            Purpose::Figures => self.points.push(WindowResult::of_calls(asked, figures(outcome))),
            Purpose::NoiseFloor(label) => {
                self.aa.push(AaResult { label, window: WindowResult::of_calls(asked, figures(outcome)) });
            }
            Purpose::SystemCalls => {
                let counted = outcome.and_then(|found| match found {
                    Found::SystemCalls(counted) => Ok(counted),
                    _ => Err(SOMETHING_ELSE.to_owned()),
                });
                self.system_calls.push(WindowResult::apart(asked, counted));
            }
            Purpose::Wire => {
                let watched = outcome.and_then(|found| match found {
                    Found::Wire(wire) => Ok(*wire),
                    _ => Err(SOMETHING_ELSE.to_owned()),
                });
                self.wire.push(WindowResult::apart(asked, watched));
            }
        }
    }

    /// Nobody looks at the threads of a bare socket.
    fn validities(&self) -> Vec<Validity> {
        let calls = self.points.iter().filter(|window| window.pair.is_some());
        calls.map(PointResult::validity).collect()
    }

    fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn has_failures(&self) -> bool {
        let is_good = |result: &LoadResult| result.error_count() == 0 && result.messages > 0;
        !self.points.iter().all(|point| point.measured().is_some_and(is_good))
    }
}
