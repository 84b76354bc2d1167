//! Sample runs with invented figures.

use std::collections::BTreeMap;

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Distribution;
use thalweg_measure::machine::Machine;
use thalweg_measure::validity::{Cause, Reason, Validity};

use crate::record::LaneRule;
use crate::run::{
    ConditionResult, FurtherAttempts, Interval, LoadRun, RunNote, SCHEMA, Search, ServerRun, StepRun, Timing,
    Try,
};

const SECOND: u64 = 1_000_000_000;
const SECONDS: u64 = 10;

/// A distribution of `count` times: half are up to twice the shortest, one in a hundred is 100 times as long.
fn spread(count: u64, ns: u64) -> Distribution {
    let mut all = Distribution::new();
    (0..count).for_each(|n| all.record(ns * 997 / (997 - n * 389 % 997)));
    all
}

/// One second with `ok` successful calls.
fn interval(second: u64, scheduled: f64, ok: u64, ns: u64) -> Interval {
    let latency = spread(ok, ns);
    Interval {
        at_ns: second * SECOND + 40_000,
        scheduled,
        ok,
        failed: 0,
        flows: None,
        late: 0,
        in_flight: 3,
        connections: 2,
        latency_ns: latency.latency(),
        histogram: (ok > 0).then(|| latency.histogram()),
        messages_sent: ok,
        messages_received: ok,
        bytes_sent: 10 * ok,
        bytes_received: 20 * ok,
        reply_ns: None,
        reply_histogram: None,
        servers: Vec::new(),
    }
}

/// An open loop of 1000 calls/s.
pub(super) fn open() -> LoadRun {
    let ok = 1000 * SECONDS;
    LoadRun {
        schema: SCHEMA.to_owned(),
        ids: Vec::new(),
        so_far: false,
        name: None,
        tags: BTreeMap::new(),
        targets: vec!["a:1".to_owned(), "b:1".to_owned()],
        method: "shop.Orders/Get".to_owned(),
        kind: "unary".to_owned(),
        loop_kind: "open".to_owned(),
        schedule: Some("1000".to_owned()),
        spacing: Some("constant".to_owned()),
        share: None,
        merged_of: None,
        in_flight: 64,
        workers: None,
        stream_for_ns: None,
        connections: 2,
        lanes: Some(LaneRule::Fixed),
        to_each_server: false,
        connections_established: Some(2),
        warmup_ns: 0,
        started: "2026-11-26T10:00:00.000Z".to_owned(),
        ended: "2026-11-26T10:00:10.000Z".to_owned(),
        duration_ns: SECONDS * SECOND,
        drain_ns: 3_000_000,
        stopped_early: false,
        rate_per_s: 1000.0,
        scheduled_per_s: Some(1000.0),
        ok,
        failed: 0,
        errors: BTreeMap::new(),
        flows: None,
        late: 0,
        dropped: 0,
        delayed: None,
        messages_sent: ok,
        messages_received: ok,
        bytes_sent: 10 * ok,
        bytes_received: 20 * ok,
        latency: Timing::of(&spread(ok, 400_000)),
        service: Timing::of(&spread(ok, 300_000)),
        wait: Timing::of(&spread(ok, 20_000)),
        failed_latency: None,
        first_message: None,
        reply: None,
        flow: None,
        steps: Vec::new(),
        attempts: FurtherAttempts::default(),
        servers: Vec::new(),
        interval_ns: SECOND,
        intervals: (0..SECONDS).map(|second| interval(second, 1000.0, 950 + 10 * second, 400_000)).collect(),
        spun_ns: SECOND,
        client_cpu: CpuTime { user_ns: 2e9, system_ns: 1e9 },
        machine: Some(Machine { cpu: "Slow 1".to_owned(), cores: 2, ..Machine::this() }),
        client_cpu_per_call: Some(CpuTime { user_ns: 2e5, system_ns: 1e5 }),
        conditions: Vec::new(),
        search: None,
        not_valid: Validity::default(),
        notes: Vec::new(),
    }
}

/// The same with a stalled server: calls fail and start late.
pub(super) fn stalled() -> LoadRun {
    let mut run = open();
    run.intervals[4] = Interval { in_flight: 64, ..interval(4, 1000.0, 0, 1) };
    run.intervals[5] = Interval { failed: 500, late: 800, ..interval(5, 1000.0, 1500, 20_000_000) };
    (run.failed, run.late, run.dropped) = (500, 800, 70);
    run.errors = BTreeMap::from([("DEADLINE_EXCEEDED".to_owned(), 500)]);
    run.failed_latency = Timing::of(&spread(500, SECOND));
    let judged = |condition: &str, figure: &str, is_met| ConditionResult {
        condition: condition.to_owned(),
        figure: figure.to_owned(),
        is_met,
    };
    run.conditions = vec![judged("p99<5ms", "812 ms", false), judged("calls>=1", "10000", true)];
    run.notes = vec![RunNote::new("the server was slow")];
    run.not_valid =
        [Reason::new(Cause::ClientLimit, "the client had no processor left")].into_iter().collect();
    run
}

/// A closed loop.
pub(super) fn closed() -> LoadRun {
    let mut run = open();
    run.loop_kind = "closed".to_owned();
    (run.schedule, run.spacing, run.scheduled_per_s) = (None, None, None);
    (run.service, run.wait) = (None, None);
    run.intervals.iter_mut().for_each(|interval| interval.scheduled = 0.0);
    run
}

pub(super) fn scenario() -> LoadRun {
    let mut run = closed();
    (run.method, run.kind) = ("shop".to_owned(), "scenario".to_owned());
    run.flow = Timing::of(&spread(50, 5_000_000));
    let step = |name: &str, method: &str, failed| StepRun {
        flow: "sign up".to_owned(),
        step: name.to_owned(),
        method: method.to_owned(),
        kind: "unary".to_owned(),
        ok: 100 - failed,
        failed,
        errors: if failed > 0 { BTreeMap::from([("ABORTED".to_owned(), failed)]) } else { BTreeMap::new() },
        latency: Timing::of(&spread(100 - failed, 300_000)),
    };
    run.steps = vec![step("add", "shop.Carts/Add", 0), step("pay", "shop.Carts/Pay", 7)];
    run
}

/// Three calls of four went to one of two servers.
pub(super) fn balanced() -> LoadRun {
    let server = |server: &str, calls, failed, latency| ServerRun {
        server: server.to_owned(),
        calls,
        failed: Some(failed),
        attempts: FurtherAttempts {
            retries: failed / 2,
            transparent_retries: failed / 4,
            hedges: failed / 3,
        },
        not_connected: (failed > 0).then(|| "connection <refused>".to_owned()),
        latency,
    };
    LoadRun {
        servers: vec![
            server("10.0.0.1:80", 7500, 0, Timing::of(&spread(7500, 400_000))),
            server("10.0.0.2:80", 2500, 12, None),
        ],
        ..closed()
    }
}

pub(super) fn searched() -> LoadRun {
    let tried = |rate_per_s, is_met, figure: &str| Try {
        rate_per_s,
        reached_per_s: rate_per_s,
        is_met,
        figures: vec![format!("p99<5ms: {figure}")],
    };
    let tries = vec![tried(500.0, true, "2 ms"), tried(1000.0, false, "9 ms")];
    let search = Search { conditions: vec!["p99<5ms".to_owned()], found_per_s: Some(500.0), tries };
    LoadRun { search: Some(search), ..open() }
}

/// Interrupted before the first response.
pub(super) fn nothing() -> LoadRun {
    LoadRun {
        duration_ns: 0,
        rate_per_s: 0.0,
        scheduled_per_s: Some(0.0),
        ok: 0,
        messages_sent: 0,
        messages_received: 0,
        latency: None,
        service: None,
        wait: None,
        intervals: Vec::new(),
        client_cpu_per_call: None,
        ..open()
    }
}

/// All external strings contain a script.
pub(super) fn hostile() -> LoadRun {
    let script = || "</script><script>document.documentElement.dataset.hostile='yes'</script>".to_owned();
    let mut run = stalled();
    run.targets = vec![script()];
    (run.method, run.kind) = (script(), script());
    (run.name, run.tags) = (Some(script()), BTreeMap::from([(script(), script())]));
    (run.schedule, run.spacing, run.workers) = (Some(script()), Some(script()), Some(script()));
    (run.started, run.ended) = (script(), script());
    run.machine = Some(Machine { cpu: script(), kernel: script(), ..Machine::this() });
    run.errors = BTreeMap::from([(script(), 500)]);
    run.conditions
        .iter_mut()
        .for_each(|condition| (condition.condition, condition.figure) = (script(), script()));
    run.notes.iter_mut().for_each(|note| note.text = script());
    let mut step = scenario().steps.remove(1);
    (step.flow, step.step, step.method) = (script(), script(), script());
    step.errors = run.errors.clone();
    (run.kind, run.steps) = ("scenario".to_owned(), vec![step]);
    let server = |calls| ServerRun {
        server: script(),
        calls,
        failed: None,
        attempts: FurtherAttempts::default(),
        not_connected: Some(script()),
        latency: None,
    };
    run.servers = [1, 2].map(server).to_vec();
    let tries = vec![Try { rate_per_s: 1.0, reached_per_s: 1.0, is_met: true, figures: vec![script()] }];
    run.search = Some(Search { conditions: vec![script()], found_per_s: None, tries });
    run
}
