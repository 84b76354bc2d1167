//! Results of the runs, read back from their folders.

use std::collections::BTreeMap;
use std::path::Path;

use super::jvm_log::JvmLog;
use super::results::RunResult;
use crate::AnyResults;
use crate::json::JsonResults;
use crate::study::directory::RESULTS_FILE;

/// Results of each run by name, or why there are none.
#[derive(Debug, Default)]
pub struct Evidence {
    results: BTreeMap<String, Result<AnyResults, String>>,
    logs: BTreeMap<String, JvmLog>,
}

impl Evidence {
    /// Reads the results of runs from their subfolders of `folder`.
    pub fn read(folder: &Path, runs: &[RunResult]) -> Self {
        let mut evidence = Self::default();
        for run in runs {
            let own = folder.join(&run.name);
            let read = AnyResults::read(&own.join(RESULTS_FILE));
            // An interrupted run may still have left results.
            let results = read.map_err(|error| match &run.failed {
                Some(reason) => format!("the run `{}` failed: {reason}", run.name),
                None => error.to_string(),
            });
            evidence.results.insert(run.name.clone(), results);
            evidence.logs.insert(run.name.clone(), JvmLog::read(&own));
        }
        evidence
    }

    /// Adds the results of a run.
    #[cfg(test)]
    pub(crate) fn with(mut self, run: &str, results: AnyResults) -> Self {
        self.results.insert(run.to_owned(), Ok(results));
        self
    }

    /// Adds a log of a Java virtual machine.
    #[cfg(test)]
    pub(crate) fn with_jvm_log(mut self, run: &str, text: &str) -> Self {
        self.logs.insert(run.to_owned(), JvmLog::of(text));
        self
    }

    /// Returns all results that were read.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&str, &AnyResults)> {
        self.results.iter().filter_map(|(name, results)| Some((name.as_str(), results.as_ref().ok()?)))
    }

    /// Returns the results of the JSON study.
    pub(crate) fn json(&self) -> Option<&JsonResults> {
        self.runs().find_map(|(_, results)| match results {
            AnyResults::Json(results) => Some(results.as_ref()),
            _ => None,
        })
    }

    /// Returns a run's log of Java virtual machines.
    pub(crate) fn jvm_log(&self, run: &str) -> Option<&JvmLog> {
        self.logs.get(run).filter(|log| !log.is_empty())
    }

    /// Returns a run's results, or why there are none.
    pub(crate) fn run(&self, run: &str) -> Result<&AnyResults, String> {
        let results = self.results.get(run).ok_or_else(|| format!("missing run `{run}`"))?;
        results.as_ref().map_err(Clone::clone)
    }
}
