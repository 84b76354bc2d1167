//! Several runs as one: parts of a load that came from several machines.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use thalweg_lab::record::{CpuTime, Distribution};
use thalweg_lab::study::Machine;

use crate::label::Label;
use crate::parts::{self, PartsError};
use crate::run::{Interval, LoadRun, RunNote, SCHEMA, StepRun, Timing};

/// Why runs are not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to join.
    #[error("there is no run to join")]
    Nothing,
    /// A file of another kind, or of another version.
    #[error("run {number} is of the schema `{schema}`, and {SCHEMA} is joined")]
    Schema {
        /// Which one, from 1.
        number: usize,
        /// What it says.
        schema: String,
    },
    /// Runs of different things.
    #[error("run {number} has another {what} than the first: {one} and {other}")]
    Different {
        /// Which one, from 1.
        number: usize,
        /// Of what.
        what: &'static str,
        /// The first one's.
        one: String,
        /// This one's.
        other: String,
    },
    /// One that is joined already, beside others that may be in it.
    #[error(
        "run {number} is joined of {of} already, and others here are not: those that are in it would count twice. Name \
         the files that are to be joined"
    )]
    Joined {
        /// Which one, from 1.
        number: usize,
        /// Of how many runs it is joined.
        of: u64,
    },
    /// Parts that are not those of one load.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A histogram or a time that cannot be read.
    #[error("run {number} is damaged: its {what} cannot be read")]
    Damaged {
        /// Which one, from 1.
        number: usize,
        /// Of what.
        what: &'static str,
    },
}

impl LoadRun {
    /// How many calls its schedule had.
    fn scheduled(&self) -> Option<f64> {
        Some(self.scheduled_per_s? * self.duration_ns as f64 / 1e9)
    }

    /// These runs as one: counts are added, and so are the histograms, so that percentiles are those of all calls,
    /// as if one client had made them. It lasts from the first start to the last end, by the machines' clocks.
    /// Parts of a load ([`Share`](crate::Share)) are the whole one; if one is missing, a note says which.
    /// Intervals lie one upon the other by the time since each run's own start.
    ///
    /// # Errors
    ///
    /// For runs of different methods or loops, for parts of different loads, for joined runs beside others, and for
    /// results that are damaged.
    pub fn merged(runs: &[Self]) -> Result<Self, MergeError> {
        let first = runs.first().ok_or(MergeError::Nothing)?;
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
        let joined = (1..).zip(runs).find_map(|(number, run)| Some((number, run.merged_of?)));
        if let Some((number, of)) = joined
            && runs.iter().any(|run| run.merged_of.is_none())
        {
            return Err(MergeError::Joined { number, of });
        }
        let mut of_parts = parts::check(runs)?;
        let mut began = Vec::new();
        let mut ended = Vec::new();
        for (number, run) in (1..).zip(runs) {
            let time = |text: &str| {
                humantime::parse_rfc3339(text).map_err(|_| MergeError::Damaged { number, what: "times" })
            };
            let start = time(&run.started)?;
            began.push(start);
            ended.push(start + Duration::from_nanos(run.duration_ns));
        }
        let (started, end) = (began.iter().min().copied(), ended.iter().max().copied());
        let started = started.unwrap_or(SystemTime::UNIX_EPOCH);
        let end = end.unwrap_or(started);
        let last_start = began.iter().max().copied().unwrap_or(started);
        of_parts.extend(parts::apart(runs, last_start.duration_since(started).unwrap_or_default()));
        let duration = end.duration_since(started).unwrap_or_default();
        let seconds = duration.as_secs_f64();
        let sum = |of: fn(&Self) -> u64| runs.iter().map(of).sum::<u64>();
        let timing = |of: fn(&Self) -> Option<&Timing>, what| timing(runs, of, what);
        let ok = sum(|run| run.ok);
        let mut errors = BTreeMap::new();
        for (code, count) in runs.iter().flat_map(|run| &run.errors) {
            *errors.entry(code.clone()).or_insert(0) += count;
        }
        let cpu = runs.iter().map(|run| run.client_cpu).fold(CpuTime::default(), |all, cpu| all + cpu);
        let per_call = runs
            .iter()
            .filter_map(|run| Some(run.client_cpu_per_call? / (1.0 / run.ok as f64)))
            .fold(None, |all, cpu| Some(all.map_or(cpu, |all| all + cpu)));
        let mut targets: Vec<String> = runs.iter().flat_map(|run| run.targets.clone()).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut schedules: Vec<String> = runs.iter().filter_map(|run| run.schedule.clone()).collect();
        schedules.dedup();
        let label = Label::common(runs.iter().map(|run| (&run.name, &run.tags)));
        Ok(Self {
            schema: SCHEMA.to_owned(),
            so_far: runs.iter().any(|run| run.so_far),
            name: label.name,
            tags: label.tags,
            targets,
            method: first.method.clone(),
            kind: first.kind.clone(),
            loop_kind: first.loop_kind.clone(),
            schedule: (!schedules.is_empty()).then(|| schedules.join(" and ")),
            spacing: first.spacing.clone(),
            share: None,
            merged_of: Some(runs.iter().map(|run| run.merged_of.unwrap_or(1)).sum()),
            in_flight: runs.iter().map(|run| run.in_flight).sum(),
            workers: first.workers.clone(),
            connections: runs.iter().map(|run| run.connections).sum(),
            connections_established: runs.iter().map(|run| run.connections_established).sum(),
            warmup_ns: runs.iter().map(|run| run.warmup_ns).max().unwrap_or(0),
            started: humantime::format_rfc3339_millis(started).to_string(),
            ended: humantime::format_rfc3339_millis(end).to_string(),
            duration_ns: duration.as_nanos() as u64,
            drain_ns: runs.iter().map(|run| run.drain_ns).max().unwrap_or(0),
            stopped_early: runs.iter().any(|run| run.stopped_early),
            rate_per_s: if seconds > 0.0 { ok as f64 / seconds } else { 0.0 },
            scheduled_per_s: runs.iter().map(|run| Some(run.scheduled()? / seconds.max(1e-9))).sum(),
            ok,
            failed: sum(|run| run.failed),
            errors,
            late: sum(|run| run.late),
            dropped: sum(|run| run.dropped),
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
            interval_ns: runs.iter().map(|run| run.interval_ns).max().unwrap_or(0),
            intervals: intervals(runs),
            spun_ns: sum(|run| run.spun_ns),
            client_cpu: cpu,
            client_cpu_per_call: per_call.filter(|_| ok > 0).map(|all| all / ok as f64),
            machine: machine(runs),
            gates: Vec::new(),
            search: None,
            notes: of_parts.into_iter().chain(notes(runs)).collect(),
        })
    }
}

/// Those of the same flow and name as one.
fn steps(runs: &[LoadRun]) -> Result<Vec<StepRun>, MergeError> {
    let mut all: Vec<StepRun> = Vec::new();
    for step in runs.iter().flat_map(|run| &run.steps) {
        let is_same = |known: &&mut StepRun| known.flow == step.flow && known.step == step.step;
        let Some(known) = all.iter_mut().find(is_same) else {
            let timings = runs.iter().map(|run| {
                let same = run.steps.iter().find(|one| one.flow == step.flow && one.step == step.step);
                same.and_then(|same| same.latency.as_ref())
            });
            all.push(StepRun { latency: joined(timings, "steps")?, ..step.clone() });
            continue;
        };
        known.ok += step.ok;
        known.failed += step.failed;
        for (code, count) in &step.errors {
            *known.errors.entry(code.clone()).or_insert(0) += count;
        }
    }
    Ok(all)
}

fn timing(
    runs: &[LoadRun],
    of: fn(&LoadRun) -> Option<&Timing>,
    what: &'static str,
) -> Result<Option<Timing>, MergeError> {
    joined(runs.iter().map(of), what)
}

/// The same timing of each run, as one.
fn joined<'t>(
    timings: impl Iterator<Item = Option<&'t Timing>>,
    what: &'static str,
) -> Result<Option<Timing>, MergeError> {
    let mut all: Option<Distribution> = None;
    for (number, timing) in (1..).zip(timings) {
        let Some(timing) = timing else { continue };
        let decoded = Distribution::decoded(&timing.histogram, &timing.ns);
        let decoded = decoded.ok_or(MergeError::Damaged { number, what })?;
        match &mut all {
            Some(all) => all.merge(&decoded),
            None => all = Some(decoded),
        }
    }
    Ok(all.as_ref().and_then(Timing::of))
}

/// The one that all were made on, if all say so.
fn machine(runs: &[LoadRun]) -> Option<Machine> {
    let first = runs.first()?.machine.as_ref()?;
    let is_same = |run: &LoadRun| run.machine.as_ref().is_some_and(|it| first.differences(it).is_empty());
    runs.iter().all(is_same).then(|| first.clone())
}

/// Those that begin at the same time of their runs, one upon the other.
fn intervals(runs: &[LoadRun]) -> Vec<Interval> {
    let length = runs.iter().map(|run| run.interval_ns).max().unwrap_or(0).max(1);
    let mut by_place: BTreeMap<u64, Interval> = BTreeMap::new();
    for interval in runs.iter().flat_map(|run| &run.intervals) {
        // Ticks come some microseconds late.
        let place = (interval.at_ns + length / 2) / length;
        match by_place.get_mut(&place) {
            Some(all) => {
                all.add(interval);
                all.in_flight += interval.in_flight;
                all.connections += interval.connections;
            }
            None => {
                by_place.insert(place, interval.clone());
            }
        }
    }
    by_place.into_values().collect()
}

/// Each with the run that it is of, where there are several.
fn notes(runs: &[LoadRun]) -> Vec<RunNote> {
    let mut notes = Vec::new();
    for (number, run) in (1..).zip(runs) {
        let of = match run.share {
            _ if runs.len() == 1 => String::new(),
            Some(share) => format!("part {share}: "),
            None => format!("run {number}: "),
        };
        for RunNote { text, invalidates } in &run.notes {
            notes.push(RunNote { text: format!("{of}{text}"), invalidates: *invalidates });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Share;

    /// A run whose calls took these times.
    fn run(started_s: u64, took_ns: impl Iterator<Item = u64>, failed: u64) -> LoadRun {
        let mut latency = Distribution::new();
        took_ns.for_each(|ns| latency.record(ns));
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(started_s);
        let interval = |at_ns| Interval {
            at_ns,
            scheduled: 10.0,
            ok: latency.len() / 2,
            failed,
            late: 0,
            in_flight: 1,
            connections: 3,
            latency_ns: latency.latency(),
            histogram: Some(latency.encoded_coarsely()),
            bytes_sent: 1,
            bytes_received: 2,
        };
        LoadRun {
            schema: SCHEMA.to_owned(),
            so_far: false,
            name: Some("nightly".to_owned()),
            tags: BTreeMap::from([
                ("build".to_owned(), "7".to_owned()),
                ("part".to_owned(), started_s.to_string()),
            ]),
            targets: vec!["a:1".to_owned()],
            method: "a.B/C".to_owned(),
            kind: "unary".to_owned(),
            loop_kind: "open".to_owned(),
            schedule: Some("10".to_owned()),
            spacing: Some("constant".to_owned()),
            share: None,
            merged_of: None,
            in_flight: 4,
            workers: None,
            connections: 1,
            connections_established: Some(1),
            warmup_ns: 0,
            started: humantime::format_rfc3339_millis(started).to_string(),
            ended: String::new(),
            duration_ns: 2_000_000_000,
            drain_ns: 0,
            stopped_early: false,
            rate_per_s: latency.len() as f64 / 2.0,
            scheduled_per_s: Some(10.0),
            ok: latency.len(),
            failed,
            errors: BTreeMap::from([("NOT_FOUND".to_owned(), failed)]),
            late: 1,
            dropped: 2,
            messages_sent: 3,
            messages_received: 4,
            bytes_sent: 5,
            bytes_received: 6,
            latency: Timing::of(&latency),
            service: None,
            wait: None,
            failed_latency: None,
            first_message: None,
            reply: None,
            flow: None,
            steps: Vec::new(),
            interval_ns: 1_000_000_000,
            intervals: vec![interval(0), interval(1_000_050_000)],
            spun_ns: 7,
            client_cpu: CpuTime::default(),
            client_cpu_per_call: None,
            machine: Some(Machine::this()),
            gates: Vec::new(),
            search: None,
            notes: vec![RunNote { text: "slow".to_owned(), invalidates: false }],
        }
    }

    /// Every second call in one run and the others in another are those of one run.
    #[test]
    fn two_halves_are_the_whole() {
        let took = |n: u64| 1_000 + n * n * 37 % 1_000_003;
        let halves =
            [run(10, (0..5000).map(|n| took(2 * n)), 1), run(10, (0..5000).map(|n| took(2 * n + 1)), 2)];
        let whole = run(10, (0..10_000).map(took), 3);
        let merged = LoadRun::merged(&halves).unwrap();
        let (of_merged, of_whole) = (merged.latency.as_ref().unwrap(), whole.latency.as_ref().unwrap());
        assert_eq!((of_merged.count, &of_merged.histogram), (of_whole.count, &of_whole.histogram));
        let (of_whole_histogram, of_whole_ns) = (of_whole.histogram.clone(), of_whole.ns);
        let (mut one, other) = (of_merged.ns, of_whole.ns);
        assert!((one.mean / other.mean - 1.0).abs() < 1e-9);
        one.mean = other.mean;
        assert_eq!(one, other);
        assert_eq!((merged.ok, merged.failed, merged.errors["NOT_FOUND"]), (10_000, 3, 3));
        assert!((merged.rate_per_s - 5000.0).abs() < 1e-9, "both ran at the same time");
        assert_eq!((merged.in_flight, merged.connections_established, merged.dropped), (8, Some(2), 4));
        assert_eq!(merged.intervals.len(), 2);
        assert_eq!((merged.intervals[1].ok, merged.intervals[1].failed), (5000, 3));
        assert_eq!(merged.intervals[1].connections, 6);
        let all = Distribution::decoded(&of_whole_histogram, &of_whole_ns).unwrap();
        assert_eq!(merged.intervals[1].histogram, Some(all.encoded_coarsely()));
        assert_eq!(merged.notes[1].text, "run 2: slow");
    }

    #[test]
    fn a_joined_run_is_not_joined_with_what_may_be_in_it() {
        let parts = [run(10, 0..10, 0), run(10, 0..10, 0)];
        let joined = LoadRun::merged(&parts).unwrap();
        let [one, other] = parts;
        let error = LoadRun::merged(&[one, other, joined.clone()]).unwrap_err();
        assert_eq!(error, MergeError::Joined { number: 3, of: 2 });
        // Alone it stays what it is, and those of several groups are joined like runs.
        let check = |runs: &[LoadRun], expected: (u64, u64)| {
            let again = LoadRun::merged(runs).unwrap();
            assert_eq!((again.ok, again.merged_of), (expected.0, Some(expected.1)));
        };
        check(std::slice::from_ref(&joined), (20, 2));
        check(&[joined.clone(), joined], (40, 4));
    }

    #[test]
    fn percentiles_stay_without_their_histograms() {
        let whole = run(10, 0..1000, 0);
        let light = whole.clone().without_histograms();
        let (of_light, of_whole) = (light.latency.as_ref().unwrap(), whole.latency.as_ref().unwrap());
        assert_eq!((of_light.ns, of_light.histogram.as_str()), (of_whole.ns, ""));
        assert!(light.intervals.iter().all(|interval| interval.histogram.is_none()));
        assert_eq!(light.intervals[0].latency_ns, whole.intervals[0].latency_ns);
    }

    #[test]
    fn a_machine_stays_where_all_say_the_same() {
        let check = |change: fn(&mut LoadRun), expected: bool| {
            let mut other = run(10, 0..10, 0);
            change(&mut other);
            let merged = LoadRun::merged(&[run(10, 0..10, 0), other]).unwrap();
            assert_eq!(merged.machine.is_some(), expected);
        };
        check(|_| (), true);
        check(|run| run.machine.as_mut().unwrap().load_average += 1.0, true);
        check(|run| run.machine.as_mut().unwrap().cpu += " II", false);
        check(|run| run.machine = None, false);
    }

    #[test]
    fn what_all_are_called_stays() {
        let merged = LoadRun::merged(&[run(10, 0..10, 0), run(11, 0..10, 0)]).unwrap();
        assert_eq!(merged.name.as_deref(), Some("nightly"));
        assert_eq!(merged.tags, BTreeMap::from([("build".to_owned(), "7".to_owned())]));
        let other = LoadRun { name: None, tags: BTreeMap::new(), ..run(10, 0..10, 0) };
        let merged = LoadRun::merged(&[run(10, 0..10, 0), other]).unwrap();
        assert_eq!((merged.name, merged.tags), (None, BTreeMap::new()));
    }

    #[test]
    fn a_later_part_makes_the_run_longer() {
        let merged = LoadRun::merged(&[run(10, 0..10, 0), run(11, 0..10, 0)]).unwrap();
        assert_eq!(merged.duration_ns, 3_000_000_000);
        assert_eq!(merged.started, "1970-01-01T00:00:10.000Z");
    }

    fn part(index: u32, of: u32) -> LoadRun {
        LoadRun { share: Some(Share::new(index, of).unwrap()), notes: Vec::new(), ..run(10, 0..10, 0) }
    }

    #[test]
    fn parts_are_the_whole() {
        let merged = LoadRun::merged(&[part(1, 2), part(0, 2)]).unwrap();
        assert_eq!((merged.schedule.as_deref(), merged.share), (Some("10"), None));
        assert_eq!((merged.ok, merged.scheduled_per_s, merged.notes), (20, Some(20.0), Vec::new()));
    }

    #[test]
    fn notes_say_whose_they_are() {
        let said = |runs: &[LoadRun]| LoadRun::merged(runs).unwrap().notes.pop().unwrap().text;
        let noted = |share| LoadRun { share: Some(share), ..run(10, 0..10, 0) };
        assert_eq!(said(&[run(10, 0..10, 0)]), "slow");
        assert_eq!(said(&[noted("0/2".parse().unwrap()), noted("1/2".parse().unwrap())]), "part 1/2: slow");
    }

    #[test]
    fn a_part_that_is_missing_or_late_is_said() {
        let said = |runs: &[LoadRun]| LoadRun::merged(runs).unwrap().notes.remove(0).text;
        assert_eq!(
            said(&[part(1, 3), part(0, 3)]),
            "part 2 of 3 is missing: counts and the rate are those of the other 2"
        );
        assert_eq!(
            said(&[part(1, 20)]),
            "parts 0, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 9 more of 20 are missing: counts and the rate are those of the \
             other 1"
        );
        let late = LoadRun { started: "1970-01-01T00:00:12.500Z".to_owned(), ..part(1, 2) };
        assert!(said(&[part(0, 2), late]).contains("began 2.5 s apart"));
    }

    #[test]
    fn what_are_not_the_parts_of_one_load_is_refused() {
        let check = |other: LoadRun, expected: &str| {
            let error = LoadRun::merged(&[part(0, 3), other]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(run(10, 0..10, 0), "run 1 is part 0/3 of a load, and run 2 is no part");
        check(part(1, 4), "run 2 is part 1/4 of a load, and the first is part 0/3");
        check(part(0, 3), "run 2 is part 0/3 of the load, and so is run 1");
        let slower = LoadRun { schedule: Some("5".to_owned()), ..part(1, 3) };
        check(slower, "run 2 is a part of another load than the first: 5, constant, and not 10, constant");
    }

    #[test]
    fn what_is_not_one_run_is_refused() {
        let check = |change: fn(&mut LoadRun), expected: &str| {
            let mut other = run(10, 0..10, 0);
            change(&mut other);
            let error = LoadRun::merged(&[run(10, 0..10, 0), other]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        assert_eq!(LoadRun::merged(&[]), Err(MergeError::Nothing));
        check(|run| run.schema = "thalweg.load/3".to_owned(), "run 2 is of the schema `thalweg.load/3`");
        check(|run| run.method = "a.B/D".to_owned(), "another method than the first: a.B/C and a.B/D");
        check(|run| run.loop_kind = "closed".to_owned(), "another loop");
        check(|run| run.started = "yesterday".to_owned(), "its times cannot be read");
        check(
            |run| {
                if let Some(latency) = &mut run.latency {
                    latency.histogram = "no base64".to_owned();
                }
            },
            "its latency cannot be read",
        );
    }
}
