//! The environment of the steps: changing seeds, and no incremental builds.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variables to reproduce a run, and those for compiling. Variables that are already set are kept.
///
/// Simulation and fuzzing seeds are the current time in seconds. Incremental builds would cost a fresh clone time and
/// disk without any gain.
pub(super) fn variables() -> Vec<(&'static str, String)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string();
    let variable =
        |(name, default): (&'static str, &str)| (name, env::var(name).unwrap_or_else(|_| default.to_owned()));
    [("THALWEG_SIM_FIRST", &*now), ("THALWEG_FUZZ_SEED", &now), ("CARGO_INCREMENTAL", "0")]
        .map(variable)
        .into()
}
