//! The `thalweg.lab/1` schema: everything a study found, and where and how it was found.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cpus::CpuList;
use crate::plan::Point;
use crate::record::LoadResult;

/// The schema's name and version: a field that changes its meaning raises the number.
pub const LAB_SCHEMA: &str = "thalweg.lab/1";
/// The name of the results in the study's directory.
pub const RESULTS_FILE: &str = "results.json";

/// Everything a study found. Serialised, it is the schema [`LAB_SCHEMA`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabResults {
    /// [`LAB_SCHEMA`].
    pub schema: String,
    /// Which study: `sizes`.
    pub study: String,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// When the last point that is here ended: RFC 3339, UTC.
    pub ended: String,
    /// How many points the plan has; fewer in [`Self::points`] mean that the study was cut short.
    pub planned: usize,
    /// Where it was measured.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// How.
    pub settings: Settings,
    /// What was found, in the order of measuring.
    pub points: Vec<PointResult>,
}

/// Where a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model, as the kernel names it.
    pub cpu: String,
    /// Processors that the study may use.
    pub cores: usize,
    /// The kernel's name and release.
    pub kernel: String,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// How many threads ran or wanted to, on average over the minute before the study.
    #[serde(default)]
    pub load_average: f64,
}

/// With what a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Of the stack and the lab.
    pub thalweg: String,
    /// `release`, or `debug`, whose figures say nothing about the stack.
    pub build: String,
}

/// How a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The arguments that repeat the study.
    pub arguments: Vec<String>,
    /// Processors the clients were kept on; `null` where there is one processor only.
    pub client_cpus: Option<CpuList>,
    /// Processors the server was kept on.
    pub server_cpus: Option<CpuList>,
}

/// One point and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// What was asked.
    pub point: Point,
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The driver's result.
    Measured(Box<LoadResult>),
    /// Why there is none.
    Failed(String),
}

impl PointResult {
    /// The driver's result, where there is one.
    pub fn measured(&self) -> Option<&LoadResult> {
        match &self.outcome {
            Outcome::Measured(result) => Some(result),
            Outcome::Failed(_) => None,
        }
    }
}

impl LabResults {
    /// Every planned point was tried.
    pub fn is_complete(&self) -> bool {
        self.points.len() >= self.planned
    }

    /// Some point was not measured, or some of its calls failed.
    pub fn has_failures(&self) -> bool {
        let is_good = |result: &LoadResult| result.error_count() == 0 && result.messages > 0;
        !self.points.iter().all(|point| point.measured().is_some_and(is_good))
    }
}

impl Machine {
    /// The machine this runs on. What the kernel does not tell is `unknown` or 0.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value_of = |text: &str, key: &str| {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = value_of(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu: value_of(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: CpuList::available().map_or(1, |list| list.as_slice().len()),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0.0),
        }
    }
}

impl Versions {
    /// This build's.
    pub fn this() -> Self {
        Self {
            thalweg: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

/// The directory of a study, and the results in it. Results are replaced as a whole: whoever reads them, or whatever
/// kills the study, sees either the old ones or the new ones.
#[derive(Debug)]
pub struct ResultsDirectory {
    path: PathBuf,
}

/// A directory that does not take the results.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {path}: {error}; name another directory with --out")]
pub struct NotWritable {
    path: PathBuf,
    error: io::Error,
}

impl ResultsDirectory {
    /// Makes the directory if need be and proves that files can be written there, before anything is measured.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, NotWritable> {
        let directory = Self { path: path.into() };
        let probe = directory.path.join(".writable");
        fs::create_dir_all(&directory.path)
            .and_then(|()| fs::write(&probe, b"probe"))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|error| directory.not_writable(error))?;
        Ok(directory)
    }

    /// Replaces the results.
    pub fn save(&self, results: &LabResults) -> Result<(), NotWritable> {
        let json = serde_json::to_string(results).expect("the schema has string keys only");
        self.write(RESULTS_FILE, &json)
    }

    /// Replaces the file of this name with `text`.
    pub fn write(&self, name: &str, text: &str) -> Result<(), NotWritable> {
        let unfinished = self.path.join(format!(".{name}.unfinished"));
        fs::File::create(&unfinished)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&unfinished, self.path.join(name)))
            .map_err(|error| self.not_writable(error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn not_writable(&self, error: io::Error) -> NotWritable {
        NotWritable { path: self.path.clone(), error }
    }
}

/// Results that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there, or not for us.
    #[error("cannot read {path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not the JSON of a study.
    #[error("{path} is not a study's results ({LAB_SCHEMA}): {reason}")]
    Schema {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and where.
        reason: String,
    },
}

/// Reads what a study saved.
pub fn read(path: &Path) -> Result<LabResults, ReadError> {
    let text = fs::read_to_string(path).map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
    let schema_error = |reason| ReadError::Schema { path: path.to_owned(), reason };
    let results: LabResults = serde_json::from_str(&text).map_err(|error| schema_error(error.to_string()))?;
    if results.schema == LAB_SCHEMA {
        Ok(results)
    } else {
        Err(schema_error(format!("its schema is {}", results.schema)))
    }
}
