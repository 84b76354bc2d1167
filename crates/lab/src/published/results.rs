//! The `thalweg.published/1` schema: verdicts and runs.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::page::table::Table;

use super::judgement::JudgedClaim;
use super::publication::Publication;
use crate::study::directory::RESULTS_FILE;
use crate::study::{NotWritable, ReadError, ResultsDirectory, ResultsText, timestamp};

/// The schema's name and version. A field that changes its meaning increases the version.
pub(crate) const PUBLISHED_SCHEMA: &str = "thalweg.published/1";

/// Results of reproducing published measurements, serialized as the schema `thalweg.published/1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedResults {
    /// [`PUBLISHED_SCHEMA`].
    pub(crate) schema: String,
    /// Start time: RFC 3339, UTC.
    pub(crate) started: String,
    /// End time of the last run: RFC 3339, UTC.
    pub(crate) ended: String,
    /// The measuring machine.
    pub machine: Machine,
    /// Program versions.
    pub versions: Versions,
    /// Settings.
    pub settings: PublishedSettings,
    /// Runs in the order made. Their results are in subfolders of the same names.
    pub runs: Vec<RunResult>,
    /// Judged claims.
    pub(crate) answered: Vec<JudgedPublication>,
}

/// Settings of a reproduction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSettings {
    /// Arguments that repeat it.
    pub arguments: Vec<String>,
    /// Selected publications, in the order of the page.
    pub publications: Vec<Publication>,
    /// Whether only a quick overview was measured.
    pub quick: bool,
    /// Number of processors, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
}

/// One completed or failed study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of its folder.
    pub name: String,
    /// The publication it reproduces.
    pub publication: Publication,
    /// Short description of its purpose.
    pub about: String,
    /// Arguments of `thalweg`; `--out` is its folder.
    pub arguments: Vec<String>,
    /// Duration.
    pub took_ns: u64,
    /// Whether it left a page. A run that failed early did not.
    #[serde(default = "yes")]
    pub has_page: bool,
    /// Reason for the failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

fn yes() -> bool {
    true
}

/// Judged claims and tables of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedPublication {
    pub(crate) publication: Publication,
    pub(crate) claims: Vec<JudgedClaim>,
    pub(crate) tables: Vec<TitledTable>,
}

/// A table of figures with its title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TitledTable {
    pub(crate) title: String,
    /// Description of the table.
    pub(crate) about: String,
    #[serde(flatten)]
    pub(crate) table: Table,
}

impl PublishedResults {
    /// Returns empty results that start now.
    pub fn started(settings: PublishedSettings) -> Self {
        let now = timestamp(SystemTime::now());
        Self {
            schema: PUBLISHED_SCHEMA.to_owned(),
            started: now.clone(),
            ended: now,
            machine: Machine::this(),
            versions: Versions::current(),
            settings,
            runs: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Reads saved results.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        ResultsText::read(path, &[PUBLISHED_SCHEMA])?.parse()
    }

    /// Saves the current state.
    pub fn save(&self, directory: &ResultsDirectory) -> Result<(), NotWritable> {
        directory.save(self)
    }

    /// Adds the result of a run, replacing one of the same name.
    pub fn ran(&mut self, run: RunResult) {
        self.ended = timestamp(SystemTime::now());
        match self.runs.iter_mut().find(|made| made.name == run.name) {
            Some(made) => *made = run,
            None => self.runs.push(run),
        }
    }

    /// Returns whether the run succeeded and its results are in its subfolder of `folder`.
    pub fn is_made(&self, name: &str, folder: &Path) -> bool {
        let ended = self.runs.iter().any(|run| run.name == name && run.failed.is_none());
        ended && folder.join(name).join(RESULTS_FILE).is_file()
    }

    /// Sets the judged claims.
    pub fn answer(&mut self, answered: Vec<JudgedPublication>) {
        self.answered = answered;
    }

    /// Returns all claims.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &JudgedClaim> {
        self.answered.iter().flat_map(|answered| &answered.claims)
    }
}
