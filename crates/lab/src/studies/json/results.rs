//! The `thalweg.json/1` schema: everything a study of gRPC against a JSON API found, and where and how.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::programs::BusyProgram;
use thalweg_measure::validity::{Disturbance, Validity};

use super::way::Way;
use super::window::{Found, Purpose, Window, WindowResult};
use crate::echo::Shape;
use crate::load::StackInfo;
use crate::stack::Stack;
use crate::study::{self, LeftOut, WindowOutcome, timestamp};

/// The schema's name and version: a field that changes its meaning raises the number.
pub(crate) const JSON_SCHEMA: &str = "thalweg.json/1";

/// Everything a study of gRPC against a JSON API found. Serialised, it is the schema `thalweg.json/1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonResults {
    /// [`JSON_SCHEMA`].
    pub(crate) schema: String,
    /// When it began: RFC 3339, UTC.
    pub(crate) started: String,
    /// When the last figure was taken: RFC 3339, UTC.
    pub(crate) ended: String,
    /// How many windows the plan had; fewer in [`Self::windows`]: the study was cut short.
    pub(crate) planned: usize,
    /// Where it was measured.
    pub(crate) machine: Machine,
    /// With what.
    pub(crate) versions: Versions,
    /// How.
    pub(crate) settings: Settings,
    /// The stacks that were measured, ours first.
    pub(crate) stacks: Vec<StackInfo>,
    /// Stacks that were asked for and could not be had.
    pub(crate) left_out: Vec<LeftOut<Stack>>,
    /// In the order of measuring.
    pub(crate) windows: Vec<WindowResult>,
    /// Other programs that were busy meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<BusyProgram>,
}

/// How a study was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// The message that the study is first about.
    pub published: Shape,
    /// One's own messages, if they are echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnInfo>,
    /// The ways, in the order of tables.
    pub ways: Vec<Way>,
    /// Processors the client was kept on; `null` where there is one processor only.
    pub client_cpus: Option<CpuList>,
    /// Processors the server was kept on.
    pub server_cpus: Option<CpuList>,
}

/// What one's own messages are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnInfo {
    /// Their type.
    pub type_name: String,
    /// How many there are.
    pub messages: usize,
}

impl Settings {
    /// The messages that most is said of: the published one, and the small person.
    pub(crate) fn featured(&self) -> Vec<Shape> {
        let small = Some(Shape::Person).filter(|small| *small != self.published);
        [self.published].into_iter().chain(small).collect()
    }
}

/// What there is to say of a study before it begins.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How it is made.
    pub settings: Settings,
    /// What is measured, ours first.
    pub stacks: Vec<StackInfo>,
    /// What was asked for and is not.
    pub left_out: Vec<LeftOut<Stack>>,
}

impl JsonResults {
    /// Of a study that begins now: without a figure yet.
    pub fn begun(setup: Setup, planned: usize) -> Self {
        let now = timestamp(SystemTime::now());
        Self {
            schema: JSON_SCHEMA.to_owned(),
            started: now.clone(),
            ended: now,
            planned,
            machine: Machine::this(),
            versions: Versions::this(),
            settings: setup.settings,
            stacks: setup.stacks,
            left_out: setup.left_out,
            windows: Vec::new(),
            others: Vec::new(),
        }
    }

    /// The windows that are not valid, of those that figures are made of; `None` if all are valid.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        let measured = self.windows.iter().filter(|it| it.window.purpose != Purpose::WarmUp);
        let windows: Vec<Validity> = measured.map(WindowResult::validity).collect();
        Disturbance::of(&windows, &self.others)
    }
}

impl study::Results<Window, Found> for JsonResults {
    fn record(&mut self, window: &Window, outcome: WindowOutcome<Found>, now: SystemTime) {
        self.ended = timestamp(now);
        self.windows.push(WindowResult::of(window, outcome));
    }

    fn ran_beside(&mut self, others: Vec<BusyProgram>) {
        self.others = others;
    }

    fn is_empty(&self) -> bool {
        self.windows.iter().all(|window| window.load.is_none())
    }

    fn has_failures(&self) -> bool {
        self.windows.iter().any(|window| window.failed.is_some())
    }
}
