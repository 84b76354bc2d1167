//! Results of a study with their origin: the schema of `results.json`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::programs::BusyProgram;
use thalweg_measure::validity::{Disturbance, Validity};

use super::directory::{ReadError, ResultsText};
use super::plan::Window;

/// The schema's name and version. A field that changes its meaning increases the version.
pub(crate) const SCHEMA: &str = "thalweg.lab/5";
/// Schemas of two studies in earlier versions, which do not name the study.
const CODEC_SCHEMA: &str = "thalweg.codec/1";
const JSON_SCHEMA: &str = "thalweg.json/1";
/// All supported schemas. Fields renamed since earlier versions have an alias.
const SCHEMAS: [&str; 4] = [SCHEMA, "thalweg.lab/4", CODEC_SCHEMA, JSON_SCHEMA];

/// The studies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyKind {
    /// [`crate::sizes`].
    #[default]
    Sizes,
    /// [`crate::channels`].
    Channels,
    /// [`crate::connections`].
    Connections,
    /// [`crate::codec`].
    Codec,
    /// [`crate::json`].
    Json,
}

impl fmt::Display for StudyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sizes => "sizes",
            Self::Channels => "channels",
            Self::Connections => "connections",
            Self::Codec => "codec",
            Self::Json => "json",
        })
    }
}

/// Results of a study, serialized as the schema `thalweg.lab/5`. The tables are flattened into it.
///
/// `S` is the type of the settings, and `T` the type of the [tables](StudyTables).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResults<S, T> {
    /// [`SCHEMA`], or the schema of the file that was read.
    pub(crate) schema: String,
    #[serde(default)]
    pub(crate) study: StudyKind,
    /// Start time: RFC 3339, UTC.
    pub(crate) started: String,
    /// End time of the last recorded window: RFC 3339, UTC.
    pub(crate) ended: String,
    /// Number of planned windows with figures. Fewer in the tables mean that the study was cut short.
    pub(crate) planned: usize,
    /// The measuring machine.
    pub machine: Machine,
    /// Program versions.
    pub versions: Versions,
    pub(crate) settings: S,
    /// Requested items that were not available.
    pub(crate) left_out: Vec<LeftOut>,
    /// Other programs that were busy during the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<BusyProgram>,
    #[serde(flatten)]
    pub(crate) tables: T,
}

/// Result of a window, or why it failed.
pub type WindowOutcome<F> = Result<F, String>;

/// A requested item that is missing from the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Name of the item: a stack, or a description.
    #[serde(alias = "stack")]
    pub what: String,
    /// Reason.
    pub reason: String,
}

impl LeftOut {
    /// Creates an entry.
    pub fn new(what: impl fmt::Display, reason: impl Into<String>) -> Self {
        Self { what: what.to_string(), reason: reason.into() }
    }

    /// Returns whether it is the stack of this name, in any variant.
    pub(crate) fn is_stack(&self, name: &str) -> bool {
        self.what.split(':').next() == Some(name)
    }
}

/// Result tables of a study.
pub trait StudyTables: Serialize {
    /// Window type.
    type Window: Window;
    /// Result type.
    type Measurement;

    /// Records the outcome of a window. Unavailable items are added to `left_out` if the study has no table for them.
    fn record(
        &mut self,
        window: &Self::Window,
        outcome: WindowOutcome<Self::Measurement>,
        left_out: &mut Vec<LeftOut>,
    );

    /// Returns the validity of each window with figures.
    fn validities(&self) -> Vec<Validity>;

    /// Returns whether no window has a result.
    fn is_empty(&self) -> bool;

    /// Returns whether a failure should make the command fail.
    fn has_failures(&self) -> bool;
}

impl<S, T> StudyResults<S, T> {
    /// Returns the results of a study that starts now, without figures.
    pub(crate) fn start(
        study: StudyKind,
        planned: usize,
        settings: S,
        left_out: Vec<LeftOut>,
        tables: T,
    ) -> Self {
        let now = timestamp(SystemTime::now());
        Self {
            schema: SCHEMA.to_owned(),
            study,
            started: now.clone(),
            ended: now,
            planned,
            machine: Machine::this(),
            versions: Versions::current(),
            settings,
            left_out,
            others: Vec::new(),
            tables,
        }
    }
}

impl<S: DeserializeOwned, T: DeserializeOwned> StudyResults<S, T> {
    /// Reads saved results.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        SavedResults::read(path)?.parse()
    }
}

impl<S, T: StudyTables> StudyResults<S, T> {
    /// Records the outcome of a window that ended at `now`.
    pub(crate) fn record(
        &mut self,
        window: &T::Window,
        outcome: WindowOutcome<T::Measurement>,
        now: SystemTime,
    ) {
        self.ended = timestamp(now);
        self.tables.record(window, outcome, &mut self.left_out);
    }

    /// Returns a summary of windows that are not valid; `None` if all are.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        Disturbance::of(&self.tables.validities(), &self.others)
    }

    /// Returns why a study has no answer, if many windows are not valid.
    pub(crate) fn unanswered(&self, is_answered: bool) -> Option<String> {
        let disturbance = self.disturbance().filter(|it| !is_answered && it.is_widespread());
        disturbance.map(|disturbance| disturbance.to_string())
    }
}

impl<S, T> Deref for StudyResults<S, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.tables
    }
}

impl<S, T> DerefMut for StudyResults<S, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.tables
    }
}

/// JSON text of a study's results.
pub(crate) struct SavedResults<'p> {
    text: ResultsText<'p>,
    pub(crate) study: StudyKind,
}

impl<'p> SavedResults<'p> {
    /// Reads a file with the current schema or an earlier one.
    pub(crate) fn read(path: &'p Path) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct SchemaHeader {
            study: StudyKind,
        }
        let text = ResultsText::read(path, &SCHEMAS)?;
        let study = match text.schema() {
            CODEC_SCHEMA => StudyKind::Codec,
            JSON_SCHEMA => StudyKind::Json,
            _ => text.parse::<SchemaHeader>()?.study,
        };
        Ok(Self { text, study })
    }

    /// Parses the results as this kind of study.
    pub(crate) fn parse<S: DeserializeOwned, T: DeserializeOwned>(
        &self,
    ) -> Result<StudyResults<S, T>, ReadError> {
        Ok(StudyResults { study: self.study, ..self.text.parse()? })
    }
}

/// Formats a time for results: RFC 3339, UTC, to the second.
pub(crate) fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
