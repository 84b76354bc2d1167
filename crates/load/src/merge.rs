//! Merging of runs, such as the parts of a distributed load.

mod added;
mod error;
mod gather;
mod over_time;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::machine::Machine;
use thalweg_measure::validity::{Reason, Validity};

use self::added::{add_errors, attempts, servers, steps, timing};
pub use self::error::MergeError;
pub use self::gather::{ResultsToAwait, gather};
use self::over_time::{OverTime, over_time};
use crate::label::Label;
use crate::parts;
use crate::run::{Flows, LoadRun, RunNote, SCHEMA, Timing};

impl LoadRun {
    /// Merges runs. Counts and histograms are added, so that percentiles are those of all calls, as if one client had
    /// made them. The merged run lasts from the first start to the last end, by the machines' clocks. Parts of a load
    /// ([`Share`](crate::Share)) form the whole load; if one is missing, a note says which. Intervals are aligned by
    /// the time since each run's own start. If their lengths differ, shorter ones are merged first.
    ///
    /// # Errors
    ///
    /// For runs of different methods or loops, for parts of different loads, for a run that is given twice, alone or
    /// within a merged one, and for damaged results.
    pub fn merged(runs: &[Self]) -> Result<Self, MergeError> {
        let first = runs.first().ok_or(MergeError::Nothing)?;
        check_alike(first, runs)?;
        check_once(runs)?;
        let of_parts = parts::check(runs)?;
        let Span { started, last_start, ended, gap } = Span::of(runs)?;
        let apart = parts::apart(runs, last_start.duration_since(started).unwrap_or_default());
        let duration = ended.duration_since(started).unwrap_or_default();
        let seconds = duration.as_secs_f64();
        let OverTime { interval_ns, intervals, note: of_intervals } = over_time(runs);
        let label = Label::common(runs.iter().map(|run| (&run.name, &run.tags)));
        let sum = |of: fn(&Self) -> u64| runs.iter().map(of).sum::<u64>();
        let longest = |of: fn(&Self) -> u64| runs.iter().map(of).max().unwrap_or(0);
        let timing = |of: fn(&Self) -> Option<&Timing>, what| timing(runs, of, what);
        let ok = sum(|run| run.ok);
        // No `..`, so that a new field does not compile until it is merged here.
        Ok(Self {
            schema: SCHEMA.to_owned(),
            ids: runs.iter().flat_map(|run| run.ids.clone()).collect(),
            so_far: runs.iter().any(|run| run.so_far),
            name: label.name,
            tags: label.tags,
            targets: targets(runs),
            method: first.method.clone(),
            kind: first.kind.clone(),
            loop_kind: first.loop_kind.clone(),
            schedule: schedule(runs),
            spacing: first.spacing.clone(),
            share: None,
            merged_of: Some(sum(|run| run.merged_of.unwrap_or(1))),
            in_flight: runs.iter().map(|run| run.in_flight).sum(),
            workers: first.workers.clone(),
            stream_for_ns: first.stream_for_ns,
            connections: runs.iter().map(|run| run.connections).sum(),
            lanes: first.lanes.filter(|rule| runs.iter().all(|run| run.lanes == Some(*rule))),
            to_each_server: runs.iter().all(|run| run.to_each_server),
            connections_established: runs.iter().map(|run| run.connections_established).sum(),
            warmup_ns: longest(|run| run.warmup_ns),
            started: humantime::format_rfc3339_millis(started).to_string(),
            ended: humantime::format_rfc3339_millis(ended).to_string(),
            duration_ns: duration.as_nanos() as u64,
            drain_ns: longest(|run| run.drain_ns),
            stopped_early: runs.iter().any(|run| run.stopped_early),
            rate_per_s: if seconds > 0.0 { ok as f64 / seconds } else { 0.0 },
            scheduled_per_s: scheduled(runs).map(|calls| calls / seconds.max(1e-9)),
            ok,
            failed: sum(|run| run.failed),
            errors: errors(runs),
            flows: runs[1..].iter().map(|run| run.flows).fold(first.flows, Flows::sum),
            late: sum(|run| run.late),
            dropped: sum(|run| run.dropped),
            delayed: runs.iter().map(|run| run.delayed).sum(),
            messages_sent: sum(|run| run.messages_sent),
            messages_received: sum(|run| run.messages_received),
            bytes_sent: sum(|run| run.bytes_sent),
            bytes_received: sum(|run| run.bytes_received),
            latency: timing(|run| run.latency.as_ref(), "latency")?,
            service: timing(|run| run.service.as_ref(), "service")?,
            wait: timing(|run| run.wait.as_ref(), "wait")?,
            failed_latency: timing(|run| run.failed_latency.as_ref(), "failed_latency")?,
            first_message: timing(|run| run.first_message.as_ref(), "first_message")?,
            reply: timing(|run| run.reply.as_ref(), "reply")?,
            flow: timing(|run| run.flow.as_ref(), "flow")?,
            steps: steps(runs)?,
            attempts: attempts(runs.iter().map(|run| run.attempts)),
            servers: servers(runs)?,
            interval_ns,
            intervals,
            spun_ns: sum(|run| run.spun_ns),
            client_cpu: runs.iter().map(|run| run.client_cpu).fold(CpuTime::default(), |all, cpu| all + cpu),
            client_cpu_per_call: cpu_per_call(runs, ok),
            machine: machine(runs),
            conditions: Vec::new(),
            search: None,
            not_valid: not_valid(runs),
            notes: of_parts
                .into_iter()
                .chain(apart)
                .chain(gap)
                .chain(of_intervals)
                .chain(notes(runs))
                .collect(),
        })
    }
}

/// Checks that all runs are of the same kind as the first.
fn check_alike(first: &LoadRun, runs: &[LoadRun]) -> Result<(), MergeError> {
    for (number, run) in (1..).zip(runs) {
        if run.schema != SCHEMA {
            return Err(MergeError::Schema { number, schema: run.schema.clone() });
        }
        for (what, one, other) in [
            ("method", &first.method, &run.method),
            ("type of call", &first.kind, &run.kind),
            ("loop", &first.loop_kind, &run.loop_kind),
        ] {
            if one != other {
                let (one, other) = (one.clone(), other.clone());
                return Err(MergeError::Different { number, what, one, other });
            }
        }
    }
    Ok(())
}

/// Checks that no run counts twice.
fn check_once(runs: &[LoadRun]) -> Result<(), MergeError> {
    let mut numbers = HashMap::new();
    for (number, run) in (1..).zip(runs) {
        if let Some(earlier) = run.ids.iter().find_map(|id| numbers.insert(id, number)) {
            return Err(MergeError::Twice { number, earlier });
        }
        // Without IDs, two results of one run are equal.
        let earlier = || (1..).zip(&runs[..number - 1]).find_map(|(it, other)| (other == run).then_some(it));
        if let Some(earlier) = run.ids.is_empty().then(earlier).flatten() {
            return Err(MergeError::Twice { number, earlier });
        }
    }
    if runs.iter().all(|run| !run.ids.is_empty()) { Ok(()) } else { check_joined(runs) }
}

/// Checks runs that may lack IDs: none of them may be in a merged one.
fn check_joined(runs: &[LoadRun]) -> Result<(), MergeError> {
    let joined = (1..).zip(runs).find_map(|(number, run)| Some((number, run.merged_of?)));
    match joined {
        Some((number, of)) if runs.iter().any(|run| run.merged_of.is_none()) => {
            Err(MergeError::Joined { number, of })
        }
        _ => Ok(()),
    }
}

/// Time from the first start to the last end.
struct Span {
    started: SystemTime,
    last_start: SystemTime,
    ended: SystemTime,
    /// A note on two runs that did not overlap in time.
    gap: Option<RunNote>,
}

impl Span {
    fn of(runs: &[LoadRun]) -> Result<Self, MergeError> {
        // Each with the number of its run.
        let (mut starts, mut ends) = (Vec::with_capacity(runs.len()), Vec::with_capacity(runs.len()));
        for (number, run) in (1..).zip(runs) {
            let started = humantime::parse_rfc3339(&run.started)
                .map_err(|_| MergeError::Damaged { number, what: "times" })?;
            starts.push((started, number));
            ends.push((started + Duration::from_nanos(run.duration_ns), number));
        }
        let (Some(&(started, _)), Some(&(last_start, last))) = (starts.iter().min(), starts.iter().max())
        else {
            return Err(MergeError::Nothing);
        };
        let (Some(&(first_end, first)), Some(&(ended, _))) = (ends.iter().min(), ends.iter().max()) else {
            return Err(MergeError::Nothing);
        };
        let gap = (last_start >= first_end && last != first).then(|| {
            RunNote::new(format!(
                "run {last} started after run {first} ended: the merged rate is an average over all of the time from \
                 the first start to the last end"
            ))
        });
        Ok(Self { started, last_start, ended, gap })
    }
}

fn targets(runs: &[LoadRun]) -> Vec<String> {
    let mut targets: Vec<String> = runs.iter().flat_map(|run| run.targets.clone()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn schedule(runs: &[LoadRun]) -> Option<String> {
    let mut schedules: Vec<&str> = runs.iter().filter_map(|run| run.schedule.as_deref()).collect();
    schedules.dedup();
    (!schedules.is_empty()).then(|| schedules.join(" and "))
}

/// Returns the number of calls scheduled by all runs.
fn scheduled(runs: &[LoadRun]) -> Option<f64> {
    runs.iter().map(|run| Some(run.scheduled_per_s? * run.duration_ns as f64 / 1e9)).sum()
}

fn errors(runs: &[LoadRun]) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for run in runs {
        add_errors(&mut errors, &run.errors);
    }
    errors
}

/// Returns the processor time per call over all runs.
fn cpu_per_call(runs: &[LoadRun], ok: u64) -> Option<CpuTime> {
    let of_calls = runs.iter().filter_map(|run| Some(run.client_cpu_per_call? / (1.0 / run.ok as f64)));
    let all = of_calls.reduce(|all, cpu| all + cpu)?;
    (ok > 0).then(|| all / ok as f64)
}

/// Returns the machine of the runs, if all were made on the same one.
fn machine(runs: &[LoadRun]) -> Option<Machine> {
    let first = runs.first()?.machine.as_ref()?;
    let is_same = |run: &LoadRun| run.machine.as_ref().is_some_and(|it| first.differences(it).is_empty());
    runs.iter().all(is_same).then(|| first.clone())
}

/// Returns the notes. With several runs, each is prefixed with its run.
fn notes(runs: &[LoadRun]) -> impl Iterator<Item = RunNote> {
    named(runs)
        .flat_map(|(of, run)| run.notes.iter().map(move |note| RunNote::new(format!("{of}{}", note.text))))
}

/// Returns the reasons why runs are not valid. With several runs, each is prefixed with its run.
fn not_valid(runs: &[LoadRun]) -> Validity {
    let of_runs = named(runs).flat_map(|(of, run)| {
        run.not_valid
            .reasons
            .iter()
            .map(move |reason| Reason { text: format!("{of}{}", reason.text), ..reason.clone() })
    });
    of_runs.collect()
}

/// Returns the runs with the prefix of texts about them.
fn named(runs: &[LoadRun]) -> impl Iterator<Item = (String, &LoadRun)> {
    (1..).zip(runs).map(|(number, run)| {
        let of = match run.share {
            _ if runs.len() == 1 => String::new(),
            Some(share) => format!("part {share}: "),
            None => format!("run {number}: "),
        };
        (of, run)
    })
}
