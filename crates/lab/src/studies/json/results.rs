//! Result tables of a JSON study.

use serde::{Deserialize, Serialize};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::validity::Validity;

use super::case::Case;
use super::endpoint::Endpoint;
use super::window::{JsonMeasurement, JsonWindow, JsonWindowRequest, Purpose, WindowResult};
use crate::echo::Shape;
use crate::load::StackInfo;
use crate::load::gathered::distinct;
use crate::study::{LeftOut, StudyKind, StudyResults, StudyTables, WindowOutcome};

/// Results of a JSON study.
pub type JsonResults = StudyResults<JsonSettings, JsonTables>;

/// Tables of a JSON study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonTables {
    /// Measured stacks, ours first.
    pub(crate) stacks: Vec<StackInfo>,
    /// Windows in the order of measuring.
    pub(crate) windows: Vec<WindowResult>,
}

/// Settings of a JSON study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonSettings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Main message of the study.
    pub published: Shape,
    /// The user's own messages, if used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnInfo>,
    /// The endpoints, in the order of tables.
    #[serde(rename = "ways")]
    pub endpoints: Vec<Endpoint>,
    /// Processors that the client was pinned to; `null` on a machine with one processor.
    pub client_cpus: Option<CpuList>,
    /// Processors that the server was pinned to.
    pub server_cpus: Option<CpuList>,
}

/// Description of the user's own messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnInfo {
    /// Their type.
    pub type_name: String,
    /// Their number.
    pub messages: usize,
}

impl JsonSettings {
    /// Returns the main messages: the published one and the small person.
    pub(crate) fn featured(&self) -> Vec<Shape> {
        let small = Some(Shape::Person).filter(|small| *small != self.published);
        [self.published].into_iter().chain(small).collect()
    }
}

impl JsonResults {
    /// Returns results without figures for a study that starts now. `stacks`: measured stacks, ours first.
    pub fn started(
        settings: JsonSettings,
        stacks: Vec<StackInfo>,
        left_out: Vec<LeftOut>,
        planned: usize,
    ) -> Self {
        Self::start(StudyKind::Json, planned, settings, left_out, JsonTables { stacks, windows: Vec::new() })
    }
}

impl JsonTables {
    /// Returns messages measured without a network: the user's own, persons and the codec study's, then strings by
    /// size.
    pub(super) fn shapes(&self) -> Vec<Shape> {
        let cases = self.windows.iter().map(|result| result.window.case);
        let plain = cases.filter(|case| *case == Case::plain(case.shape));
        let mut shapes = distinct(plain.map(|case| case.shape));
        shapes.sort_by_key(|shape| match shape {
            Shape::Own => (0, 0),
            Shape::Person => (1, 0),
            Shape::Study(kind) => (2, *kind as u64),
            Shape::Strings { count, letters } => (3, u64::from(*count) * u64::from(*letters)),
        });
        shapes
    }
}

impl StudyTables for JsonTables {
    type Window = JsonWindow;
    type Measurement = JsonMeasurement;

    fn record(&mut self, window: &JsonWindow, outcome: WindowOutcome<JsonMeasurement>, _: &mut Vec<LeftOut>) {
        self.windows.push(WindowResult::of_calls(JsonWindowRequest { window: window.clone() }, outcome));
    }

    fn validities(&self) -> Vec<Validity> {
        let measured = self.windows.iter().filter(|it| it.window.purpose != Purpose::WarmUp);
        measured.map(WindowResult::validity).collect()
    }

    fn is_empty(&self) -> bool {
        self.windows.iter().all(|window| window.measured().is_none())
    }

    fn has_failures(&self) -> bool {
        self.windows.iter().any(|window| window.measured().is_none())
    }
}
