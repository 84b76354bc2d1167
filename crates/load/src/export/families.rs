//! Metrics of a run. Names, units and attributes follow OpenTelemetry's conventions where they exist.

use std::collections::BTreeMap;

use super::snapshot::Snapshot;
use crate::{Flows, LoadRun, StepRun, Timing};

/// Upper bounds of histogram buckets in seconds, those of gRFC A66 for durations.
pub(super) const BOUNDS_S: [f64; 41] = [
    0.0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008,
    0.01, 0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4,
    0.5, 0.65, 0.8, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

pub(super) type Attributes = Vec<(&'static str, String)>;

#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    /// UCUM unit: `s`, `By`, `{call}`.
    pub(super) unit: &'static str,
    pub(super) about: &'static str,
    pub(super) points: Points,
}

/// Values of a metric, by attributes.
#[derive(Debug)]
pub(super) enum Points {
    /// Counters since measuring began.
    Counts(Vec<Point<u64>>),
    /// Counters with fractions.
    Seconds(Vec<Point<f64>>),
    /// Current values.
    Now(Vec<Point<u64>>),
    Histograms(Vec<Point<Buckets>>),
}

#[derive(Debug)]
pub(super) struct Point<T> {
    pub(super) attributes: Attributes,
    pub(super) value: T,
}

/// A histogram of durations.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Counts of each bucket, not cumulative. The last bucket has no upper bound.
    pub(super) counts: Vec<u64>,
    pub(super) count: u64,
    pub(super) sum_s: f64,
    pub(super) min_s: f64,
    pub(super) max_s: f64,
}

pub(super) fn families(snapshot: &Snapshot) -> Vec<Family> {
    let Snapshot { run, in_flight, connections } = snapshot;
    let target = ("grpc.target", run.targets.join(","));
    let counts = |name, about, counts: Vec<(Attributes, u64)>| Family {
        name,
        unit: "{call}",
        about,
        points: Points::Counts(points(&target, counts)),
    };
    let seconds = run.duration_ns as f64 / 1e9;
    let scheduled = run.scheduled_per_s.map(|rate| (Vec::new(), (rate * seconds).round() as u64));
    let direction = |sent, received| {
        let of = |name: &str| vec![("network.io.direction", name.to_owned())];
        vec![(of("transmit"), sent), (of("receive"), received)]
    };
    let cpu = |mode: &str, ns: f64| (vec![("cpu.mode", mode.to_owned())], ns / 1e9);
    let now = |name, unit, about, value| Family {
        name,
        unit,
        about,
        points: Points::Now(points(&target, vec![(Vec::new(), value)])),
    };
    let histograms = |name, about, timings: Vec<(Attributes, Option<&Timing>)>| {
        let buckets = timings.into_iter().filter_map(|(with, timing)| Some((with, buckets(timing?)?)));
        Family { name, unit: "s", about, points: Points::Histograms(points(&target, buckets.collect())) }
    };
    let mut families = vec![
        counts("thalweg.load.calls", "Finished calls", calls(run)),
        histograms("thalweg.load.latency", "Call latency from the scheduled start", latencies(run)),
        counts(
            "thalweg.load.late",
            "Scheduled calls (scenarios: flows) that started more than 1 ms late",
            vec![(Vec::new(), run.late)],
        ),
        counts(
            "thalweg.load.dropped",
            "Scheduled calls (scenarios: flows) that never started",
            vec![(Vec::new(), run.dropped)],
        ),
        now("thalweg.load.in_flight", "{call}", "Calls in flight", *in_flight),
        now("thalweg.load.connections", "{connection}", "Open connections", u64::from(*connections)),
        Family {
            name: "thalweg.load.messages",
            unit: "{message}",
            about: "Messages sent and received",
            points: Points::Counts(points(&target, direction(run.messages_sent, run.messages_received))),
        },
        Family {
            name: "thalweg.load.io",
            unit: "By",
            about: "Message bytes sent and received",
            points: Points::Counts(points(&target, direction(run.bytes_sent, run.bytes_received))),
        },
        Family {
            name: "process.cpu.time",
            unit: "s",
            about: "Client CPU time",
            points: Points::Seconds(points(
                &target,
                vec![cpu("user", run.client_cpu.user_ns), cpu("system", run.client_cpu.system_ns)],
            )),
        },
    ];
    if scheduled.is_some() {
        families.push(counts(
            "thalweg.load.scheduled",
            "Scheduled calls (scenarios: flows)",
            scheduled.into_iter().collect(),
        ));
    }
    if let Some(Flows { ok, failed, .. }) = run.flows {
        let of = |outcome: &str| vec![("thalweg.load.outcome", outcome.to_owned())];
        let ended = points(&target, vec![(of("ok"), ok), (of("failed"), failed)]);
        families.push(Family {
            name: "thalweg.load.flows",
            unit: "{flow}",
            about: "Finished flows",
            points: Points::Counts(ended),
        });
    }
    // If all calls are of one method, their latency from the actual start is known too.
    if run.steps.is_empty() {
        let service = run.service.as_ref().or(run.latency.as_ref());
        families.push(histograms(
            "grpc.client.call.duration",
            "Duration of calls that ended with OK, from the actual start",
            vec![(vec![("grpc.method", run.method.clone()), ("grpc.status", "OK".to_owned())], service)],
        ));
    }
    families
}

fn points<T>(target: &(&'static str, String), values: Vec<(Attributes, T)>) -> Vec<Point<T>> {
    let point = |(mut attributes, value): (Vec<_>, T)| {
        attributes.insert(0, target.clone());
        Point { attributes, value }
    };
    values.into_iter().map(point).collect()
}

/// Returns the calls by method, step and status.
fn calls(run: &LoadRun) -> Vec<(Attributes, u64)> {
    let by_status = |of: Attributes, ok: u64, errors: &BTreeMap<String, u64>| {
        let all =
            std::iter::once(("OK", ok)).chain(errors.iter().map(|(name, count)| (name.as_str(), *count)));
        let with = |(status, count): (&str, u64)| {
            let mut with = of.clone();
            with.push(("grpc.status", status.to_owned()));
            (with, count)
        };
        all.map(with).collect::<Vec<_>>()
    };
    if run.steps.is_empty() {
        return by_status(vec![("grpc.method", run.method.clone())], run.ok, &run.errors);
    }
    run.steps.iter().flat_map(|step| by_status(of_step(step), step.ok, &step.errors)).collect()
}

/// Returns latencies from the intended start: successful calls by method and step, failed calls together.
fn latencies(run: &LoadRun) -> Vec<(Attributes, Option<&Timing>)> {
    let outcome = |mut with: Attributes, how: &str| {
        with.push(("thalweg.load.outcome", how.to_owned()));
        with
    };
    let mut latencies: Vec<_> = match &run.steps[..] {
        [] => vec![(outcome(vec![("grpc.method", run.method.clone())], "ok"), run.latency.as_ref())],
        steps => steps.iter().map(|step| (outcome(of_step(step), "ok"), step.latency.as_ref())).collect(),
    };
    latencies.push((outcome(Vec::new(), "failed"), run.failed_latency.as_ref()));
    latencies
}

fn of_step(step: &StepRun) -> Attributes {
    vec![
        ("grpc.method", step.method.clone()),
        ("thalweg.load.flow", step.flow.clone()),
        ("thalweg.load.step", step.step.clone()),
    ]
}

fn buckets(timing: &Timing) -> Option<Buckets> {
    let distribution = timing.distribution()?;
    let mut counts = Vec::with_capacity(BOUNDS_S.len() + 1);
    let mut below = 0;
    for bound in BOUNDS_S {
        let upto = distribution.count_up_to((bound * 1e9).round() as u64);
        counts.push(upto - below);
        below = upto;
    }
    counts.push(timing.count - below);
    Some(Buckets {
        counts,
        count: timing.count,
        sum_s: timing.ns.mean * timing.count as f64 / 1e9,
        min_s: timing.ns.min as f64 / 1e9,
        max_s: timing.ns.max as f64 / 1e9,
    })
}
