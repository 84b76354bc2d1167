//! Merging of distributions and steps.

use std::collections::BTreeMap;

use thalweg_measure::distribution::Distribution;

use super::error::MergeError;
use crate::run::{FurtherAttempts, LoadRun, ServerRun, StepRun, Timing};

/// Merges one distribution of all runs.
pub(super) fn timing(
    runs: &[LoadRun],
    of: fn(&LoadRun) -> Option<&Timing>,
    what: &'static str,
) -> Result<Option<Timing>, MergeError> {
    joined(runs.iter().map(of), what)
}

/// Merges steps of the same flow and name.
pub(super) fn steps(runs: &[LoadRun]) -> Result<Vec<StepRun>, MergeError> {
    let mut all: Vec<StepRun> = Vec::new();
    for one in runs.iter().flat_map(|run| &run.steps) {
        let StepRun { flow, step, method: _, kind: _, ok, failed, errors, latency: _ } = one;
        let is_same = |other: &StepRun| other.flow == *flow && other.step == *step;
        if let Some(known) = all.iter_mut().find(|known| is_same(known)) {
            known.ok += ok;
            known.failed += failed;
            add_errors(&mut known.errors, errors);
            continue;
        }
        // Merge the latencies of all runs at once.
        let of_runs = runs.iter().map(|run| run.steps.iter().find(|other| is_same(other)));
        let latency = joined(of_runs.map(|same| same?.latency.as_ref()), "steps")?;
        all.push(StepRun { latency, ..one.clone() });
    }
    Ok(all)
}

/// Merges the calls to each server; empty if those of a run are unknown.
pub(super) fn servers(runs: &[LoadRun]) -> Result<Vec<ServerRun>, MergeError> {
    if runs.iter().any(|run| run.servers.is_empty()) {
        return Ok(Vec::new());
    }
    let mut all: BTreeMap<&str, ServerRun> = BTreeMap::new();
    for one in runs.iter().flat_map(|run| &run.servers) {
        let none = ServerRun {
            server: one.server.clone(),
            calls: 0,
            failed: Some(0),
            attempts: FurtherAttempts::default(),
            not_connected: None,
            latency: None,
        };
        let known = all.entry(&one.server).or_insert(none);
        known.calls += one.calls;
        known.attempts += one.attempts;
        known.not_connected = known.not_connected.take().or_else(|| one.not_connected.clone());
        known.failed = known.failed.zip(one.failed).map(|(known, more)| known + more);
    }
    for (name, server) in &mut all {
        let of_runs = runs.iter().map(|run| run.servers.iter().find(|other| other.server == *name));
        server.latency = joined(of_runs.map(|same| same?.latency.as_ref()), "servers")?;
    }
    Ok(all.into_values().collect())
}

/// Adds the attempts of all runs.
pub(super) fn attempts(of_runs: impl Iterator<Item = FurtherAttempts>) -> FurtherAttempts {
    of_runs.fold(FurtherAttempts::default(), |mut all, more| {
        all += more;
        all
    })
}

pub(super) fn add_errors(all: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (code, count) in more {
        *all.entry(code.clone()).or_insert(0) += count;
    }
}

/// Merges the same timing of each run.
fn joined<'t>(
    timings: impl Iterator<Item = Option<&'t Timing>>,
    what: &'static str,
) -> Result<Option<Timing>, MergeError> {
    let mut all: Option<Distribution> = None;
    for (number, timing) in (1..).zip(timings) {
        let Some(timing) = timing else { continue };
        let decoded = timing.distribution();
        let decoded = decoded.ok_or(MergeError::Damaged { number, what })?;
        match &mut all {
            Some(all) => all.merge(&decoded),
            None => all = Some(decoded),
        }
    }
    Ok(all.as_ref().and_then(Timing::of))
}
