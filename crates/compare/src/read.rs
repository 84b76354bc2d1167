//! Reads results of earlier loads, in files of several schemas.

mod load_result;
mod load_run;
mod side_input;
mod study;
mod windows;

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thalweg_load::LoadRun;
use thalweg_load::record::LoadResult;
use thalweg_measure::measured::MeasuredStudy;

use crate::comparison::{self, Comparison};

pub(crate) use side_input::SideInput;

/// Content of a result file.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// `thalweg.load-run/2` or `/1`, from `thalweg load`.
    Run(Box<LoadRun>),
    /// `thalweg.load/3`, from `thalweg peer load`.
    Benchmark(Box<LoadResult>),
    /// `thalweg.lab/5` or `/4`, from `thalweg lab`.
    Study(Box<MeasuredStudy>),
    /// `thalweg.comparison/1`, from `thalweg compare`; contains both sides.
    Comparison(Box<Comparison>),
}

/// A file that cannot be read or compared.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct ReadError {
    path: String,
    why: String,
}

/// Parses the text of a study's result file.
pub type ReadStudy = fn(&str) -> Result<MeasuredStudy, String>;

/// Reads a file of any of these schemas. `study` parses studies.
///
/// # Errors
///
/// Returns an error if the file is missing, or is not a valid result of a load.
pub fn read(path: &Path, study: ReadStudy) -> Result<Input, ReadError> {
    let failed = |why: String| ReadError { path: path.display().to_string(), why };
    let text =
        fs::read_to_string(path).map_err(|error| failed(format!("failed to read the file: {error}")))?;
    // Some editors insert a byte order mark.
    parse(text.trim_start_matches('\u{feff}'), study).map_err(failed)
}

fn parse(text: &str, read_study: ReadStudy) -> Result<Input, String> {
    #[derive(Deserialize)]
    struct SchemaHeader {
        schema: Option<String>,
        #[serde(default)]
        study: serde_json::Value,
    }
    let header: SchemaHeader =
        serde_json::from_str(text).map_err(|error| format!("not a load result: {error}"))?;
    match header.schema.as_deref() {
        Some(thalweg_load::SCHEMA | thalweg_load::EARLIER_SCHEMA) => parse_result(text).map(Input::Run),
        Some("thalweg.load/3") => parse_result(text).map(Input::Benchmark),
        Some(comparison::SCHEMA) => parse_result(text).map(Input::Comparison),
        Some(schema @ ("thalweg.codec/1" | "thalweg.json/1")) => {
            Err(format!("{schema} results cannot be compared; see their own report"))
        }
        Some("thalweg.lab/5" | "thalweg.lab/4") => match header.study.as_str() {
            Some(study @ ("codec" | "json")) => {
                Err(format!("lab {study} results cannot be compared; see their own report"))
            }
            _ => read_study(text)
                .map(|study| Input::Study(Box::new(study)))
                .map_err(|error| format!("invalid result: {error}")),
        },
        Some(schema) => Err(format!(
            "unsupported schema {schema}; use results of `thalweg load -O json`, `thalweg lab` or \
             `thalweg compare --save`"
        )),
        None => Err("not a load result: missing `schema`".to_owned()),
    }
}

fn parse_result<T: DeserializeOwned>(text: &str) -> Result<Box<T>, String> {
    serde_json::from_str(text).map(Box::new).map_err(|error| format!("invalid result: {error}"))
}

impl Input {
    /// Returns its part for one side, or `None` for a comparison, which has two.
    pub(crate) fn into_side_input(self) -> Option<SideInput> {
        match self {
            Self::Run(run) => Some(SideInput::of_run(&run)),
            Self::Benchmark(result) => Some(SideInput::of_benchmark(&result)),
            Self::Study(results) => Some(SideInput::of_study(&results, None)),
            Self::Comparison(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_result_files_are_rejected_with_reason() {
        let check = |text: &str, expected: &str| {
            let error = parse(text, |_| unreachable!()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("{", "not a load result");
        check("{}", "missing `schema`");
        check(r#"{"schema": "thalweg.load/2"}"#, "unsupported schema thalweg.load/2");
        check(r#"{"schema": "thalweg.codec/1"}"#, "thalweg.codec/1 results");
        check(r#"{"schema": "thalweg.lab/5", "study": "codec"}"#, "lab codec results");
        check(r#"{"schema": "thalweg.load-run/1"}"#, "invalid result: missing field");
    }
}
