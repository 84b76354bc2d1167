use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use thalweg_measure::distribution::Distribution;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::validity::Validity;

use super::*;
use crate::record::LaneRule;
use crate::run::{FurtherAttempts, Interval, ServerInterval, ServerRun, Timing};
use crate::share::Share;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A run with calls of these latencies.
fn run(started_s: u64, took_ns: impl Iterator<Item = u64>, failed: u64) -> LoadRun {
    let mut latency = Distribution::new();
    took_ns.for_each(|ns| latency.record(ns));
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(started_s);
    let interval = |at_ns| Interval {
        at_ns,
        scheduled: 10.0,
        ok: latency.len() / 2,
        failed,
        flows: None,
        late: 0,
        in_flight: 1,
        connections: 3,
        latency_ns: latency.latency(),
        histogram: Some(latency.coarse_histogram()),
        messages_sent: 3,
        messages_received: 4,
        bytes_sent: 1,
        bytes_received: 2,
        reply_ns: None,
        reply_histogram: None,
        servers: vec![ServerInterval { server: "a:1".to_owned(), calls: 2, failed: 1 }],
    };
    LoadRun {
        schema: SCHEMA.to_owned(),
        ids: vec![NEXT_ID.fetch_add(1, Relaxed).to_string()],
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
        stream_for_ns: None,
        connections: 1,
        lanes: Some(LaneRule::Fixed),
        to_each_server: true,
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
        flows: None,
        late: 1,
        dropped: 2,
        delayed: Some(5),
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
        attempts: FurtherAttempts { retries: 3, transparent_retries: 2, hedges: 1 },
        servers: Vec::new(),
        interval_ns: 1_000_000_000,
        intervals: vec![interval(0), interval(1_000_050_000)],
        spun_ns: 7,
        client_cpu: CpuTime::default(),
        client_cpu_per_call: None,
        machine: Some(Machine::this()),
        conditions: Vec::new(),
        search: None,
        not_valid: Validity::default(),
        notes: vec![RunNote::new("slow")],
    }
}

/// Two runs with alternate calls merge to the whole.
#[test]
fn merging_two_halves_gives_whole() {
    let took = |n: u64| 1_000 + n * n * 37 % 1_000_003;
    let halves = [run(10, (0..5000).map(|n| took(2 * n)), 1), run(10, (0..5000).map(|n| took(2 * n + 1)), 2)];
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
    assert_eq!(
        (merged.lanes, merged.requested_connections().as_str()),
        (Some(LaneRule::Fixed), "2 requested to each server")
    );
    assert_eq!(merged.attempts.text(), "6 retries, 4 transparent retries, 2 hedges");
    assert_eq!(
        merged.intervals[0].servers,
        [ServerInterval { server: "a:1".to_owned(), calls: 4, failed: 2 }]
    );
    assert_eq!(merged.delayed, Some(10));
    assert_eq!(merged.intervals.len(), 2);
    assert_eq!((merged.intervals[1].ok, merged.intervals[1].failed), (5000, 3));
    assert_eq!(merged.intervals[1].connections, 6);
    let all = Distribution::restored(&of_whole_histogram, &of_whole_ns).unwrap();
    assert_eq!(merged.intervals[1].histogram, Some(all.coarse_histogram()));
    assert_eq!(merged.notes[1].text, "run 2: slow");
}

#[test]
fn merged_run_is_not_merged_with_its_parts() {
    let without_ids = || LoadRun { ids: Vec::new(), ..run(10, 0..10, 0) };
    let parts = [without_ids(), LoadRun { started: "1970-01-01T00:00:10.001Z".to_owned(), ..without_ids() }];
    let joined = LoadRun::merged(&parts).unwrap();
    let [one, other] = parts;
    let error = LoadRun::merged(&[one, other, joined.clone()]).unwrap_err();
    assert_eq!(error, MergeError::Joined { number: 3, of: 2 });
    let again = LoadRun::merged(std::slice::from_ref(&joined)).unwrap();
    assert_eq!((again.ok, again.merged_of), (20, Some(2)));
    assert_eq!(LoadRun::merged(&[joined.clone(), joined]), Err(MergeError::Twice { number: 2, earlier: 1 }));
}

#[test]
fn duplicate_run_is_rejected() {
    let [one, other, third] = [run(10, 0..10, 0), run(10, 0..10, 0), run(10, 0..10, 0)];
    let merged = |runs: &[&LoadRun]| LoadRun::merged(&runs.iter().copied().cloned().collect::<Vec<_>>());
    let pair = merged(&[&one, &other]).unwrap();
    let twice = |number, earlier| Err(MergeError::Twice { number, earlier });
    assert_eq!(merged(&[&one, &other, &one]), twice(3, 1));
    assert_eq!(merged(&[&pair, &other]), twice(2, 1));
    assert_eq!(merged(&[&third, &pair, &pair]), twice(3, 2));
    // An interim result counts as the same run.
    let so_far = LoadRun { so_far: true, ok: 3, ..one.clone() };
    assert_eq!(merged(&[&so_far, &one]), twice(2, 1));
    let all = merged(&[&pair, &third]).unwrap();
    assert_eq!((all.ok, all.merged_of, all.ids.len()), (30, Some(3), 3));
}

#[test]
fn runs_that_do_not_overlap_are_noted() {
    let notes_of = |runs: &[LoadRun]| -> Vec<String> {
        let notes = LoadRun::merged(runs).unwrap().notes;
        notes.into_iter().map(|note| note.text).filter(|text| text.contains("started after")).collect()
    };
    // Each takes 2 s.
    assert_eq!(notes_of(&[run(10, 0..10, 0), run(11, 0..10, 0)]), [""; 0]);
    let notes = notes_of(&[run(13, 0..10, 0), run(10, 0..10, 0), run(11, 0..10, 0)]);
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with("run 1 started after run 2 ended: the merged rate is an average"),
        "{notes:?}"
    );
}

#[test]
fn percentiles_survive_missing_histograms() {
    let whole = run(10, 0..1000, 0);
    let light = whole.clone().without_histograms();
    let (of_light, of_whole) = (light.latency.as_ref().unwrap(), whole.latency.as_ref().unwrap());
    assert_eq!((of_light.ns, &of_light.histogram), (of_whole.ns, &Histogram::default()));
    assert!(light.intervals.iter().all(|interval| interval.histogram.is_none()));
    assert_eq!(light.intervals[0].latency_ns, whole.intervals[0].latency_ns);
}

/// A run of 12 s with intervals of this length, whose figures grow with their number.
fn with_intervals(interval_ms: u64, in_flight: u64) -> LoadRun {
    let whole = run(10, 0..10, 0);
    let interval = |number: u64| Interval {
        // Ticks are late.
        at_ns: number * interval_ms * 1_000_000 + 30_000,
        ok: interval_ms,
        in_flight: in_flight + number,
        connections: 1 + number as u32,
        ..whole.intervals[0].clone()
    };
    let intervals = (0..12_000 / interval_ms).map(interval).collect();
    LoadRun { interval_ns: interval_ms * 1_000_000, intervals, duration_ns: 12_000_000_000, ..whole }
}

/// Calls in flight are those at the end of the interval; different interval lengths must not add to them.
#[test]
fn intervals_of_different_lengths_are_widened() {
    let merged = LoadRun::merged(&[with_intervals(1000, 100), with_intervals(2000, 10)]).unwrap();
    assert_eq!((merged.interval_ns, merged.intervals.len()), (2_000_000_000, 6));
    for (number, interval) in (0..).zip(&merged.intervals) {
        assert_eq!(interval.at_ns, number * 2_000_000_000);
        assert_eq!(interval.ok, 1000 + 1000 + 2000);
        assert_eq!(interval.in_flight, (100 + 2 * number + 1) + (10 + number));
        assert_eq!(u64::from(interval.connections), (1 + 2 * number + 1) + (1 + number));
        let all = interval.latencies().unwrap();
        assert_eq!((all.len(), Some(all.len())), (30, interval.latencies().map(|it| it.len())));
    }
    assert_eq!(merged.notes.len(), 2, "one of each run: {:?}", merged.notes);
}

#[test]
fn interval_length_becomes_common_multiple() {
    let check = |lengths_ms: &[u64], expected_ms: u64, is_common: bool| {
        let runs: Vec<LoadRun> = lengths_ms.iter().map(|ms| with_intervals(*ms, 1)).collect();
        let merged = LoadRun::merged(&runs).unwrap();
        assert_eq!(merged.interval_ns, expected_ms * 1_000_000, "{lengths_ms:?}");
        // No call is lost or counted twice.
        let ok: u64 = runs.iter().flat_map(|run| &run.intervals).map(|interval| interval.ok).sum();
        assert_eq!(merged.intervals.iter().map(|interval| interval.ok).sum::<u64>(), ok, "{lengths_ms:?}");
        let count =
            merged.notes.iter().filter(|note| note.text.contains("not multiples of each other")).count();
        assert_eq!(count == 0, is_common, "{:?}", merged.notes);
        merged
    };
    check(&[1000, 1000, 500], 1000, true);
    check(&[2000, 3000], 6000, true);
    // Three of them are a second, up to 0.1 %.
    check(&[1000, 333], 1000, true);
    let merged = check(&[1000, 997], 1000, false);
    assert_eq!(
        merged.notes[0].text,
        "the runs have intervals of 997ms and 1s, which are not multiples of each other; each interval is counted in \
         the 1s interval that contains its middle"
    );
    assert!(merged.intervals.iter().all(|interval| interval.ok <= 1000 + 2 * 997));
}

#[test]
fn machine_is_kept_if_all_agree() {
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
fn name_and_tags_common_to_all_are_kept() {
    let merged = LoadRun::merged(&[run(10, 0..10, 0), run(11, 0..10, 0)]).unwrap();
    assert_eq!(merged.name.as_deref(), Some("nightly"));
    assert_eq!(merged.tags, BTreeMap::from([("build".to_owned(), "7".to_owned())]));
    let other = LoadRun { name: None, tags: BTreeMap::new(), ..run(10, 0..10, 0) };
    let merged = LoadRun::merged(&[run(10, 0..10, 0), other]).unwrap();
    assert_eq!((merged.name, merged.tags), (None, BTreeMap::new()));
}

#[test]
fn later_part_extends_run() {
    let merged = LoadRun::merged(&[run(10, 0..10, 0), run(11, 0..10, 0)]).unwrap();
    assert_eq!(merged.duration_ns, 3_000_000_000);
    assert_eq!(merged.started, "1970-01-01T00:00:10.000Z");
}

#[test]
fn flows_are_added_if_all_runs_have_them() {
    let of = |flows| LoadRun { flows, ..run(10, 0..10, 0) };
    let merged = |runs: &[LoadRun]| LoadRun::merged(runs).unwrap().flows;
    let (one, other) = (Flows { started: 9, ok: 5, failed: 3 }, Flows { started: 2, ok: 1, failed: 1 });
    let both = Flows { started: 11, ok: 6, failed: 4 };
    assert_eq!(merged(&[of(Some(one)), of(Some(other))]), Some(both));
    assert_eq!(merged(&[of(Some(one)), of(None)]), None);
    assert_eq!(merged(&[of(None)]), None);
}

fn part(index: u32, of: u32) -> LoadRun {
    LoadRun { share: Some(Share::new(index, of).unwrap()), notes: Vec::new(), ..run(10, 0..10, 0) }
}

#[test]
fn merged_shares_equal_whole_load() {
    let merged = LoadRun::merged(&[part(1, 2), part(0, 2)]).unwrap();
    assert_eq!((merged.schedule.as_deref(), merged.share), (Some("10"), None));
    assert_eq!((merged.ok, merged.scheduled_per_s, merged.notes), (20, Some(20.0), Vec::new()));
}

#[test]
fn merged_notes_name_their_run() {
    let notes_of = |runs: &[LoadRun]| LoadRun::merged(runs).unwrap().notes.pop().unwrap().text;
    let noted = |share| LoadRun { share: Some(share), ..run(10, 0..10, 0) };
    assert_eq!(notes_of(&[run(10, 0..10, 0)]), "slow");
    assert_eq!(notes_of(&[noted("0/2".parse().unwrap()), noted("1/2".parse().unwrap())]), "part 1/2: slow");
}

#[test]
fn missing_or_late_share_is_noted() {
    let notes_of = |runs: &[LoadRun]| LoadRun::merged(runs).unwrap().notes.remove(0).text;
    assert_eq!(
        notes_of(&[part(1, 3), part(0, 3)]),
        "part 2 of 3 is missing: counts and rates cover only the other 2 parts"
    );
    assert_eq!(
        notes_of(&[part(1, 20)]),
        "parts 0, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 9 more of 20 are missing: counts and rates cover only \
         the other part"
    );
    let late = LoadRun { started: "1970-01-01T00:00:12.500Z".to_owned(), ..part(1, 2) };
    assert!(notes_of(&[part(0, 2), late]).contains("started 2.5 s apart"));
}

#[test]
fn shares_of_different_loads_are_rejected() {
    let check = |other: LoadRun, expected: &str| {
        let error = LoadRun::merged(&[part(0, 3), other]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(run(10, 0..10, 0), "run 1 is part 0/3 of a distributed load, but run 2 is a complete load");
    check(part(1, 4), "run 2 is part 1/4 and the first run is part 0/3");
    check(part(0, 3), "runs 1 and 2 are both part 0/3");
    let slower = LoadRun { schedule: Some("5".to_owned()), ..part(1, 3) };
    let schedules = "its schedule is 5, constant; the first run's is 10, constant";
    check(slower, &format!("run 2 belongs to a different load: {schedules}"));
}

#[test]
fn incompatible_runs_are_rejected() {
    let check = |change: fn(&mut LoadRun), expected: &str| {
        let mut other = run(10, 0..10, 0);
        change(&mut other);
        let error = LoadRun::merged(&[run(10, 0..10, 0), other]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    assert_eq!(LoadRun::merged(&[]), Err(MergeError::Nothing));
    check(|run| run.schema = "thalweg.load/3".to_owned(), "run 2 has schema `thalweg.load/3`");
    check(|run| run.method = "a.B/D".to_owned(), "a different method: a.B/D; the first has a.B/C");
    check(|run| run.loop_kind = "closed".to_owned(), "a different loop");
    check(|run| run.started = "yesterday".to_owned(), "invalid times");
    check(
        |run| {
            if let Some(latency) = &mut run.latency {
                latency.histogram = Histogram::default();
            }
        },
        "invalid latency",
    );
}

#[test]
fn calls_of_a_server_are_added() {
    let server = |server: &str, calls, failed| ServerRun {
        server: server.to_owned(),
        calls,
        failed,
        attempts: FurtherAttempts { retries: calls, transparent_retries: 0, hedges: 2 * calls },
        not_connected: (server == "a:1").then(|| "refused".to_owned()),
        latency: {
            let mut latency = Distribution::new();
            latency.record_many(1000, calls);
            Timing::of(&latency)
        },
    };
    let of = |servers: &[ServerRun]| LoadRun { servers: servers.to_vec(), ..run(0, 1..=1, 0) };
    let one = of(&[server("a:1", 1, Some(1)), server("b:1", 2, Some(0))]);
    let other = of(&[server("b:1", 4, Some(3)), server("c:1", 8, None)]);
    let expected = [server("a:1", 1, Some(1)), server("b:1", 6, Some(3)), server("c:1", 8, None)];
    assert_eq!(LoadRun::merged(&[one.clone(), other]).unwrap().servers, expected);
    // Results of earlier versions do not name them.
    assert_eq!(LoadRun::merged(&[one, of(&[])]).unwrap().servers, []);
}
