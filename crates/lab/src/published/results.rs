//! The `thalweg.published/1` schema: what came of each claim, and of which runs.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::page::table::Table;

use super::judgement::Judged;
use super::publication::Publication;
use crate::study::directory::RESULTS_FILE;
use crate::study::{NotWritable, ReadError, ResultsDirectory, ResultsText, timestamp};

/// The schema's name and version: a field that changes its meaning raises the number.
pub(crate) const PUBLISHED_SCHEMA: &str = "thalweg.published/1";

/// What came of trying published measurements again. Serialised, it is the schema `thalweg.published/1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedResults {
    /// [`PUBLISHED_SCHEMA`].
    pub(crate) schema: String,
    /// When it began: RFC 3339, UTC.
    pub(crate) started: String,
    /// When the last run ended: RFC 3339, UTC.
    pub(crate) ended: String,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub settings: PublishedSettings,
    /// The studies, in the order in which they were made. Their results lie in folders of their names beside this.
    pub runs: Vec<RunResult>,
    /// What they say.
    pub(crate) answered: Vec<Answered>,
}

/// How it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSettings {
    /// The arguments that repeat it.
    pub arguments: Vec<String>,
    /// Which were tried, in the order of the page.
    pub publications: Vec<Publication>,
    /// As short as makes sense.
    pub quick: bool,
    /// On so many processors, where it was told how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
}

/// A study that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Its folder.
    pub name: String,
    /// Which publication it is for.
    pub publication: Publication,
    /// What it is for.
    pub about: String,
    /// What `thalweg` was told; `--out` is its folder.
    pub arguments: Vec<String>,
    /// How long it took.
    pub took_ns: u64,
    /// It left a page: one that failed early did not.
    #[serde(default = "yes")]
    pub has_page: bool,
    /// Why it did not come to its end, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

fn yes() -> bool {
    true
}

/// What came of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub(crate) publication: Publication,
    pub(crate) claims: Vec<Judged>,
    pub(crate) tables: Vec<TitledTable>,
}

/// A table of figures with its title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TitledTable {
    pub(crate) title: String,
    /// What it says, and of what.
    pub(crate) about: String,
    #[serde(flatten)]
    pub(crate) table: Table,
}

impl PublishedResults {
    /// Of an answer that begins now.
    pub fn begun(settings: PublishedSettings) -> Self {
        let now = timestamp(SystemTime::now());
        Self {
            schema: PUBLISHED_SCHEMA.to_owned(),
            started: now.clone(),
            ended: now,
            machine: Machine::this(),
            versions: Versions::this(),
            settings,
            runs: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Reads what an earlier one saved.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        ResultsText::read(path, &[PUBLISHED_SCHEMA])?.parse()
    }

    /// Saves it as it is.
    pub fn save(&self, directory: &ResultsDirectory) -> Result<(), NotWritable> {
        directory.save(self)
    }

    /// A run came to its end, or did not: in the place of one of its name that did not.
    pub fn ran(&mut self, run: RunResult) {
        self.ended = timestamp(SystemTime::now());
        match self.runs.iter_mut().find(|made| made.name == run.name) {
            Some(made) => *made = run,
            None => self.runs.push(run),
        }
    }

    /// A run of this name came to its end, and what it found lies in its folder of this one.
    pub fn is_made(&self, name: &str, folder: &Path) -> bool {
        let ended = self.runs.iter().any(|run| run.name == name && run.failed.is_none());
        ended && folder.join(name).join(RESULTS_FILE).is_file()
    }

    /// What all runs say.
    pub fn answer(&mut self, answered: Vec<Answered>) {
        self.answered = answered;
    }

    /// Every claim.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Judged> {
        self.answered.iter().flat_map(|answered| &answered.claims)
    }
}
