//! Files of a study, and reading of its results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_protobuf::printable;

use thalweg_measure::replacement::replace;

/// Name of the results file in the study's directory.
pub(crate) const RESULTS_FILE: &str = "results.json";
/// Name of the table file in the study's directory.
pub(crate) const CSV_FILE: &str = "results.csv";

/// Directory of a study. Results are replaced atomically, so a reader or an interruption finds either the old or the
/// new ones.
#[derive(Debug)]
pub struct ResultsDirectory {
    path: PathBuf,
}

/// Error for a directory that is not writable.
#[derive(Debug, thiserror::Error)]
#[error("failed to write to {path}: {error}; use another directory with --out")]
pub struct NotWritable {
    path: PathBuf,
    error: io::Error,
}

impl ResultsDirectory {
    /// Creates the directory if needed and checks that it is writable before anything is measured.
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

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn not_writable(&self, error: io::Error) -> NotWritable {
        NotWritable { path: self.path.clone(), error }
    }
}

/// Error for results that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is missing or not readable.
    #[error("failed to read {path}: {error}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// The file is not the JSON of a study.
    #[error("{path} is not a study's results ({expected}): {reason}")]
    Schema {
        /// Path of the file.
        path: PathBuf,
        /// The accepted schemas.
        expected: String,
        /// The problem and its position.
        reason: String,
    },
}

/// JSON text of results with a known schema.
pub(crate) struct ResultsText<'p> {
    path: &'p Path,
    text: String,
    schema: &'static str,
}

impl<'p> ResultsText<'p> {
    /// Reads a file with one of these schemas.
    pub(crate) fn read(path: &'p Path, expected: &[&'static str]) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct SchemaHeader {
            schema: String,
        }
        let text =
            fs::read_to_string(path).map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
        // Some editors start a file with a byte order mark.
        let text = text.trim_start_matches('\u{feff}').to_owned();
        let schema_error = |reason| {
            let expected = expected.join(" or ");
            ReadError::Schema { path: path.to_owned(), expected, reason }
        };
        let header: SchemaHeader =
            serde_json::from_str(&text).map_err(|error| schema_error(error.to_string()))?;
        match expected.iter().find(|schema| **schema == header.schema) {
            Some(schema) => Ok(Self { path, text, schema }),
            None => Err(schema_error(format!("found the schema {}", header.schema))),
        }
    }

    /// Returns the schema of the text.
    pub(crate) fn schema(&self) -> &'static str {
        self.schema
    }

    /// Parses the results.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        serde_json::from_str(&self.text).map_err(|error| ReadError::Schema {
            path: self.path.to_owned(),
            expected: self.schema.to_owned(),
            reason: error.to_string(),
        })
    }
}
