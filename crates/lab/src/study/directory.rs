//! The files of a study, and reading its results again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_protobuf::printable;

use thalweg_measure::replacement::replace;

/// The name of the results in the study's directory.
pub(crate) const RESULTS_FILE: &str = "results.json";
/// The name of the table in it.
pub(crate) const CSV_FILE: &str = "results.csv";

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
    pub(crate) fn save(&self, results: &impl Serialize) -> Result<(), NotWritable> {
        let json = serde_json::to_string(results).expect("the schema has string keys only");
        self.write(RESULTS_FILE, &printable::json(&json))
    }

    /// Replaces the file of this name with `text`.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), NotWritable> {
        replace(&self.path.join(name), text.as_bytes()).map_err(|error| self.not_writable(error))
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
    #[error("{path} is not a study's results ({expected}): {reason}")]
    Schema {
        /// Which file.
        path: PathBuf,
        /// The schemas, one of which it should have.
        expected: String,
        /// What is wrong with it, and where.
        reason: String,
    },
}

/// The JSON of results whose schema is known.
pub(crate) struct ResultsText<'p> {
    path: &'p Path,
    text: String,
    schema: &'static str,
}

impl<'p> ResultsText<'p> {
    /// Reads a file of one of these schemas.
    pub(crate) fn read(path: &'p Path, expected: &[&'static str]) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let text =
            fs::read_to_string(path).map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
        // Some editors begin a file with a byte order mark.
        let text = text.trim_start_matches('\u{feff}').to_owned();
        let schema_error = |reason| {
            let expected = expected.join(" or ");
            ReadError::Schema { path: path.to_owned(), expected, reason }
        };
        let head: Head = serde_json::from_str(&text).map_err(|error| schema_error(error.to_string()))?;
        match expected.iter().find(|schema| **schema == head.schema) {
            Some(schema) => Ok(Self { path, text, schema }),
            None => Err(schema_error(format!("its schema is {}", head.schema))),
        }
    }

    /// Which of the schemas it has.
    pub(crate) fn schema(&self) -> &'static str {
        self.schema
    }

    /// The results of this schema.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        serde_json::from_str(&self.text).map_err(|error| ReadError::Schema {
            path: self.path.to_owned(),
            expected: self.schema.to_owned(),
            reason: error.to_string(),
        })
    }
}
