//! Result tables of studies of calls.

use serde::{Deserialize, Serialize};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::validity::Validity;

use super::measurement::{SystemCalls, WindowMeasurement, WireTraffic};
use super::window::{AaSide, Purpose, Window, WindowRequest};
use super::window_result::WindowResult;
use crate::record::LoadResult;
use crate::stack::{Pair, Setting, Stack};
use crate::study::{LeftOut, Plan, StudyKind, StudyResults, StudyTables, WindowOutcome};

/// Results of a study of calls.
pub type LabResults = StudyResults<CallsSettings, CallsTables>;
/// One window with figures.
pub(crate) type PointResult = WindowResult<WindowRequest>;

/// The tables of a study of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsTables {
    /// Measured stacks in the order named, ours first. With more than one, the study compares them.
    pub(crate) stacks: Vec<StackInfo>,
    /// Noise floor: ours against ours, measured before everything else with the method that compares stacks.
    pub(crate) aa: Vec<AaResult>,
    /// Windows in the order of measuring.
    ///
    /// A *cell* is all windows with an equal [`Point`](super::Point). Each round has one window of our own pair or of
    /// the bare socket. When stacks are compared, it has one of each pair, and of the bare socket if requested. Round
    /// 0 takes them in order, round 1 in reverse, and so on, so windows of one round are close in time.
    pub(crate) points: Vec<PointResult>,
    /// System calls, counted in separate runs because counting slows everything. Empty if nothing is compared.
    pub(crate) system_calls: Vec<WindowResult<WindowRequest, SystemCalls>>,
    /// Traffic between client and server, watched by a hop in windows of their own. The hop takes time, so their rates
    /// and latencies are not kept. Used only by the channels study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wire: Vec<WindowResult<WindowRequest, WireTraffic>>,
}

/// Settings of a study of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsSettings {
    /// Arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Processors that clients were pinned to; `null` on a machine with one processor.
    pub client_cpus: Option<CpuList>,
    /// Processors that the server was pinned to.
    pub server_cpus: Option<CpuList>,
    /// Threads of each client, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<u32>,
    /// Threads of each server, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_threads: Option<u32>,
    /// Address of the driven server, if the lab did not start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A sentence on what this machine does not allow and was therefore left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A stack that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackInfo {
    /// Its name, with the requested variant.
    pub stack: Stack,
    /// The version that it reports: `gRPC C++ 1.51.1`.
    pub version: String,
    /// The settings that it reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
}

/// A window of ours against ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AaResult {
    /// Side of the A/A comparison. A and B are the same program, each with its own server process, like compared
    /// stacks.
    pub(crate) label: AaSide,
    /// The window. Its pair is ours; rounds interleave A and B in the same way as pairs.
    #[serde(flatten)]
    pub(crate) window: PointResult,
}

#[cfg(test)]
impl PointResult {
    /// Returns the same window in another round.
    pub(crate) fn in_round(mut self, round: u32) -> Self {
        self.round = round;
        self
    }
}

impl LabResults {
    /// Returns results without figures for a study that starts now. `stacks`: measured stacks, ours first.
    pub fn started(
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

    /// Returns the pair that all others are compared with. This is our client and our server, or else the first pair
    /// measured, such as our client with the server that all clients share.
    pub(crate) fn reference(&self) -> Pair {
        let ours = Pair::ours();
        let mut pairs = self.points.iter().filter_map(|window| window.pair.as_ref());
        if pairs.clone().any(|pair| *pair == ours) { ours } else { pairs.next().cloned().unwrap_or(ours) }
    }

    pub(crate) fn is_channels(&self) -> bool {
        self.study == StudyKind::Channels
    }

    /// Returns whether a sizes study compares stacks: more than one was requested.
    pub(crate) fn is_comparison(&self) -> bool {
        self.study == StudyKind::Sizes && self.stacks.len() + self.left_out.len() > 1
    }

    /// Returns whether every planned point was tried.
    pub(crate) fn is_complete(&self) -> bool {
        self.points.len() >= self.planned
    }
}

/// Error text for a result that does not match its window's purpose.
const SOMETHING_ELSE: &str = "unexpected result of the window";

impl StudyTables for CallsTables {
    type Window = Window;
    type Measurement = WindowMeasurement;

    fn record(&mut self, window: &Window, outcome: WindowOutcome<WindowMeasurement>, _: &mut Vec<LeftOut>) {
        let request = window.request.clone();
        let figures = |outcome: WindowOutcome<WindowMeasurement>| match outcome? {
            WindowMeasurement::Figures(measured) => Ok(*measured),
            _ => Err(SOMETHING_ELSE.to_owned()),
        };
        match window.purpose {
            Purpose::Figures => self.points.push(WindowResult::of_calls(request, figures(outcome))),
            Purpose::NoiseFloor(label) => {
                self.aa.push(AaResult { label, window: WindowResult::of_calls(request, figures(outcome)) });
            }
            Purpose::SystemCalls => {
                let counted = outcome.and_then(|found| match found {
                    WindowMeasurement::SystemCalls(counted) => Ok(counted),
                    _ => Err(SOMETHING_ELSE.to_owned()),
                });
                self.system_calls.push(WindowResult::of_other(request, counted));
            }
            Purpose::Wire => {
                let watched = outcome.and_then(|found| match found {
                    WindowMeasurement::Wire(wire) => Ok(*wire),
                    _ => Err(SOMETHING_ELSE.to_owned()),
                });
                self.wire.push(WindowResult::of_other(request, watched));
            }
        }
    }

    /// Judges windows of calls only: threads of a bare socket are not monitored.
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
