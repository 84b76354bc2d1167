//! Checks that results are the parts of one load.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::run::{LoadRun, RunNote};
use crate::share::Share;

/// Maximum difference between starts; parts farther apart did not make the planned load.
const START_SPREAD_MAX: Duration = Duration::from_secs(1);
/// Maximum missing parts listed by number.
const NAMED_MAX: usize = 10;

/// Reason why results are not the parts of one load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// A whole load next to a part of one.
    #[error("run {part} is part {share} of a distributed load, but run {whole} is a complete load")]
    Whole {
        /// Number of the run that is a part, from 1.
        part: usize,
        /// The part.
        share: Share,
        /// Number of the whole load, from 1.
        whole: usize,
    },
    /// Parts of loads with a different number of parts.
    #[error("run {number} is part {other} and the first run is part {one}; they belong to different loads")]
    Numbers {
        /// Number of the run, from 1.
        number: usize,
        /// Part of the first run.
        one: Share,
        /// Part of this run.
        other: Share,
    },
    /// The same part twice.
    #[error("runs {earlier} and {number} are both part {share}")]
    Twice {
        /// Number of the run, from 1.
        number: usize,
        /// The part.
        share: Share,
        /// Number of the earlier run, from 1.
        earlier: usize,
    },
    /// Parts of loads with different schedules.
    #[error("run {number} belongs to a different load: its schedule is {other}; the first run's is {one}")]
    Schedules {
        /// Number of the run, from 1.
        number: usize,
        /// Schedule of the first run.
        one: String,
        /// Schedule of this run.
        other: String,
    },
}

/// Returns notes on the runs as parts of one load; none if no run is a part.
pub(crate) fn check(runs: &[LoadRun]) -> Result<Vec<RunNote>, PartsError> {
    let Some((part, share)) = (1..).zip(runs).find_map(|(number, run)| Some((number, run.share?))) else {
        return Ok(Vec::new());
    };
    let mut known = BTreeMap::new();
    for (number, run) in (1..).zip(runs) {
        let Some(other) = run.share else {
            return Err(PartsError::Whole { part, share, whole: number });
        };
        if other.of() != share.of() {
            return Err(PartsError::Numbers { number, one: share, other });
        }
        if let Some(earlier) = known.insert(other.index(), number) {
            return Err(PartsError::Twice { number, share: other, earlier });
        }
        let (one, other) = (written_schedule(&runs[0]), written_schedule(run));
        if one != other {
            return Err(PartsError::Schedules { number, one, other });
        }
    }
    let missing: Vec<u32> = (0..share.of()).filter(|index| !known.contains_key(index)).collect();
    let note = |text| vec![RunNote::new(text)];
    Ok(if missing.is_empty() { Vec::new() } else { note(named(&missing, share.of())) })
}

/// Returns a note if the starts of the parts are too far apart.
pub(crate) fn apart(runs: &[LoadRun], spread: Duration) -> Option<RunNote> {
    let is_apart = runs.iter().any(|run| run.share.is_some()) && spread > START_SPREAD_MAX;
    is_apart.then(|| {
        RunNote::new(format!(
            "the parts started {:.1} s apart by their clocks; use --start-at to start them together",
            spread.as_secs_f64()
        ))
    })
}

fn written_schedule(run: &LoadRun) -> String {
    let schedule = run.schedule.as_deref().unwrap_or("none");
    run.spacing.as_ref().map_or(schedule.to_owned(), |spacing| format!("{schedule}, {spacing}"))
}

fn named(missing: &[u32], of: u32) -> String {
    let names: Vec<String> = missing.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = missing.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (names, there) = (names.join(", "), of as usize - missing.len());
    let (part, is) = if missing.len() == 1 { ("part", "is") } else { ("parts", "are") };
    let others = if there == 1 { "part".to_owned() } else { format!("{there} parts") };
    format!("{part} {names}{more} of {of} {is} missing: counts and rates cover only the other {others}")
}
