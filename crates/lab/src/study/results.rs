//! What a study found, and where and how it was found: the schema of `results.json`.

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

/// The schema's name and version: a field that changes its meaning raises the number.
pub(crate) const SCHEMA: &str = "thalweg.lab/5";
/// What earlier versions of two studies called their results, which do not name the study.
const CODEC_SCHEMA: &str = "thalweg.codec/1";
const JSON_SCHEMA: &str = "thalweg.json/1";
/// All that are read. Earlier versions differ in names that have an alias.
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

/// Everything a study found. Serialised, it is the schema `thalweg.lab/5`, in which the tables are members like all
/// others.
///
/// `S` is how the study was measured, and `T` its [tables](StudyTables).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResults<S, T> {
    /// [`SCHEMA`], or that of the file that they were read from.
    pub(crate) schema: String,
    /// Which study.
    #[serde(default)]
    pub(crate) study: StudyKind,
    /// When it began: RFC 3339, UTC.
    pub(crate) started: String,
    /// When the last window that is here ended: RFC 3339, UTC.
    pub(crate) ended: String,
    /// How many windows of figures the plan has; fewer in the tables mean that the study was cut short.
    pub(crate) planned: usize,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub(crate) settings: S,
    /// What was asked for and could not be had.
    pub(crate) left_out: Vec<LeftOut>,
    /// Other programs that were busy meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<BusyProgram>,
    /// What was found.
    #[serde(flatten)]
    pub(crate) tables: T,
}

/// What came of a window: what it found, or why it failed.
pub type WindowOutcome<F> = Result<F, String>;

/// What was asked for, and is not among the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What: a stack, or any words.
    #[serde(alias = "stack")]
    pub what: String,
    /// Why it could not be had.
    pub reason: String,
}

impl LeftOut {
    /// Returns what was left out, and why.
    pub fn new(what: impl fmt::Display, reason: impl Into<String>) -> Self {
        Self { what: what.to_string(), reason: reason.into() }
    }

    /// It is the stack of this name, in whatever variant.
    pub(crate) fn is_stack(&self, name: &str) -> bool {
        self.what.split(':').next() == Some(name)
    }
}

/// The tables of a study: what its windows found.
pub trait StudyTables: Serialize {
    /// What is measured at once.
    type Window: Window;
    /// What a window finds.
    type Found;

    /// Keeps what came of a window. What it could not have goes to `left_out`, if the study has no table for that.
    fn record(
        &mut self,
        window: &Self::Window,
        outcome: WindowOutcome<Self::Found>,
        left_out: &mut Vec<LeftOut>,
    );

    /// Whether the windows of which figures are made are valid.
    fn validities(&self) -> Vec<Validity>;

    /// No window has told anything.
    fn is_empty(&self) -> bool;

    /// Something that was to be measured could not be, in a way that makes the command fail.
    fn has_failures(&self) -> bool;
}

impl<S, T> StudyResults<S, T> {
    /// Returns the results of a study that starts now, without a figure yet.
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
            versions: Versions::this(),
            settings,
            left_out,
            others: Vec::new(),
            tables,
        }
    }
}

impl<S: DeserializeOwned, T: DeserializeOwned> StudyResults<S, T> {
    /// Reads what a study saved.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        SavedResults::read(path)?.parse()
    }
}

impl<S, T: StudyTables> StudyResults<S, T> {
    /// Keeps what came of a window, which ended now.
    pub(crate) fn record(&mut self, window: &T::Window, outcome: WindowOutcome<T::Found>, now: SystemTime) {
        self.ended = timestamp(now);
        self.tables.record(window, outcome, &mut self.left_out);
    }

    /// The windows that are not valid; `None` if all are.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        Disturbance::of(&self.tables.validities(), &self.others)
    }

    /// Why a study has no answer, if it has none and many windows are not valid.
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

/// The JSON of a study's results.
pub(crate) struct SavedResults<'p> {
    text: ResultsText<'p>,
    /// Whose they are.
    pub(crate) study: StudyKind,
}

impl<'p> SavedResults<'p> {
    /// Reads a file of this version's schema or an earlier one.
    pub(crate) fn read(path: &'p Path) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            study: StudyKind,
        }
        let text = ResultsText::read(path, &SCHEMAS)?;
        let study = match text.schema() {
            CODEC_SCHEMA => StudyKind::Codec,
            JSON_SCHEMA => StudyKind::Json,
            _ => text.parse::<Head>()?.study,
        };
        Ok(Self { text, study })
    }

    /// The results, of this study.
    pub(crate) fn parse<S: DeserializeOwned, T: DeserializeOwned>(
        &self,
    ) -> Result<StudyResults<S, T>, ReadError> {
        Ok(StudyResults { study: self.study, ..self.text.parse()? })
    }
}

/// As results have it: RFC 3339, UTC, to the second.
pub(crate) fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
