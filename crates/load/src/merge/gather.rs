//! Reading of results from files and folders, and waiting for results.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_dynamic::texts::BYTE_ORDER_MARK;
use thalweg_measure::folder::json_files;

use crate::run::{EARLIER_SCHEMA, LoadRun, SCHEMA};

/// Interval at which files are checked again.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Results to wait for.
#[derive(Clone, Copy, Debug)]
pub struct ResultsToAwait {
    /// Number of complete results.
    pub count: usize,
    /// Time limit.
    pub patience: Duration,
}

impl LoadRun {
    /// Reads a result of `thalweg load -O json`.
    ///
    /// # Errors
    ///
    /// Returns an error for a file that cannot be read, and for one that has something else.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |why: String| format!("{}: {why}", path.display());
        let text =
            fs::read_to_string(path).map_err(|error| failed(format!("failed to read the file: {error}")))?;
        serde_json::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
            .map_err(|error| failed(format!("not a result of `thalweg load --call METHOD -O json`: {error}")))
    }
}

/// Reads the results in files and folders, without the file `output`. With `expected`, waits until there are enough.
///
/// # Errors
///
/// Returns an error for a file that is not a result, and for results that are missing at the time limit.
pub fn gather(
    paths: &[PathBuf],
    output: Option<&Path>,
    expected: Option<ResultsToAwait>,
) -> Result<Vec<(PathBuf, LoadRun)>, String> {
    let Some(ResultsToAwait { count, patience }) = expected else {
        return candidates(paths, output)?.into_iter().map(read).filter_map(Result::transpose).collect();
    };
    let began = Instant::now();
    loop {
        // A file that does not exist yet, or is being written, may be an awaited result.
        let (mut results, mut missing) = (Vec::new(), None);
        for candidate in candidates(paths, output).unwrap_or_else(|why| {
            missing = Some(why);
            Vec::new()
        }) {
            match read(candidate) {
                Ok(Some((path, run))) if run.so_far => {
                    missing = Some(format!("{}: the run is not complete", path.display()));
                }
                Ok(result) => results.extend(result),
                Err(why) => missing = Some(why),
            }
        }
        if results.len() == count {
            return Ok(results);
        }
        let names = || {
            let names: Vec<String> = results.iter().map(|(path, _)| path.display().to_string()).collect();
            names.join(", ")
        };
        if results.len() > count {
            return Err(format!(
                "found {} results, more than --wait-for {count}: {}",
                results.len(),
                names()
            ));
        }
        if began.elapsed() >= patience {
            let why = missing.map_or(String::new(), |why| format!("; {why}"));
            return Err(format!(
                "after {}, {} of {count} results are complete: {}{why}",
                humantime::format_duration(patience),
                results.len(),
                if results.is_empty() { "none".to_owned() } else { names() },
            ));
        }
        thread::sleep(CHECK_INTERVAL.min(patience));
    }
}

/// A file that may be a result.
struct Candidate {
    path: PathBuf,
    /// Whether the user named the file. Files found in a folder may be something else.
    is_named: bool,
}

fn candidates(paths: &[PathBuf], output: Option<&Path>) -> Result<Vec<Candidate>, String> {
    let output = output.and_then(|path| fs::canonicalize(path).ok());
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(Candidate { path: path.clone(), is_named: true });
            continue;
        }
        let failed = |error| format!("failed to read {}: {error}", path.display());
        let is_output = |file: &PathBuf| output.is_some() && fs::canonicalize(file).ok() == output;
        let files = json_files(path).map_err(failed)?.into_iter().filter(|file| !is_output(file));
        all.extend(files.map(|path| Candidate { path, is_named: false }));
    }
    Ok(all)
}

/// Reads a result. Returns `None` if a file found in a folder is something else.
fn read(candidate: Candidate) -> Result<Option<(PathBuf, LoadRun)>, String> {
    let Candidate { path, is_named } = candidate;
    if !is_named && fs::read(&path).is_ok_and(|bytes| is_other_json(&bytes)) {
        return Ok(None);
    }
    LoadRun::read(&path).map(|run| Some((path, run)))
}

/// Returns whether the file is JSON but not a result. Invalid JSON may be a result that is being written.
fn is_other_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes)
        .is_ok_and(|value| ![SCHEMA, EARLIER_SCHEMA].map(Into::into).contains(&value["schema"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_json_is_distinguished_from_partial_result() {
        assert!(is_other_json(b"{\"schema\": \"thalweg.load/3\"}"));
        assert!(is_other_json(b"[1]"));
        for schema in [SCHEMA, EARLIER_SCHEMA] {
            assert!(!is_other_json(format!("{{\"schema\": \"{schema}\"}}").as_bytes()));
        }
        assert!(!is_other_json(b""));
        assert!(!is_other_json(b"{\"schema\": \"thal"));
    }
}
