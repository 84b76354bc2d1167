//! Synthetic runs and comparisons.

use serde_json::{Value, json};
use thalweg_compare::{
    Comparison, Input, MeasuredSide, Options, Report, SCHEMA, Settings, Side, SideId, WindowResult, WindowRun,
};
use thalweg_load::LoadRun;
use thalweg_measure::machine::{Machine, Versions};

/// Returns a fictitious machine.
pub(crate) fn machine() -> Machine {
    let machine = json!({"cpu": "Abacus 9", "cores": 4, "kernel": "Linux 6.0", "memory_bytes": 8_u64 << 30});
    serde_json::from_value(machine).unwrap()
}

/// Returns a closed loop at this rate, with matching latencies: with 64 calls in flight the mean is 64 ÷ rate.
pub(crate) fn run(rate_per_s: f64) -> LoadRun {
    let latency = latency(rate_per_s);
    let mut timing = latency.clone();
    timing["count"] = 1000.into();
    timing["histogram"] = "".into();
    serde_json::from_value(json!({
        "schema": "thalweg.load-run/1", "targets": ["a:1"], "method": "shop.Orders/Get", "kind": "unary",
        "loop": "closed", "schedule": null, "spacing": null, "in_flight": 64, "connections": 1,
        "connections_established": 1, "warmup_ns": 0, "started": "2026-11-26T00:00:00.000Z",
        "ended": "2026-11-26T00:00:05.000Z", "duration_ns": 5_000_000_000_u64, "drain_ns": 0,
        "rate_per_s": rate_per_s, "scheduled_per_s": null, "ok": (rate_per_s * 5.0) as u64, "failed": 0,
        "errors": {}, "late": 0, "dropped": 0, "messages_sent": 1000, "messages_received": 1000,
        "bytes_sent": 20_000, "bytes_received": 30_000, "latency": timing, "service": null, "wait": null,
        "failed_latency": null, "first_message": null, "reply": null, "interval_ns": 1_000_000_000_u64,
        "intervals": [], "spun_ns": 0, "client_cpu": {"user_ns": 1.0, "system_ns": 1.0},
        "client_cpu_per_call": {"user_ns": 4000.0, "system_ns": 6000.0}, "machine": machine(), "notes": [],
    }))
    .unwrap()
}

fn latency(rate_per_s: f64) -> Value {
    let mean = 64e9 / rate_per_s;
    let times = |factor: f64| (mean * factor) as u64;
    json!({
        "min": times(0.3), "mean": mean, "p50": times(0.9), "p90": times(1.5), "p95": times(2.0), "p99": times(3.0),
        "p99_9": times(5.0), "p99_99": times(8.0), "max": times(9.0),
    })
}

/// Returns a run with one interval per second, at these rates.
pub(crate) fn run_of_intervals(rates: &[f64]) -> LoadRun {
    let mut run = run(rates.iter().sum::<f64>() / rates.len() as f64);
    let interval = |(at, rate): (u64, &f64)| {
        let value = json!({
            "at_ns": at * 1_000_000_000, "scheduled": 0.0, "ok": *rate as u64, "failed": 0, "late": 0,
            "in_flight": 64, "latency_ns": latency(*rate), "bytes_sent": 0, "bytes_received": 0,
        });
        serde_json::from_value(value).unwrap()
    };
    run.intervals = (0..).zip(rates).map(interval).collect();
    run.duration_ns = rates.len() as u64 * 1_000_000_000;
    run
}

/// Returns a side with these runs as rounds.
pub(crate) fn side(name: &str, runs: Vec<LoadRun>) -> Side {
    let input = |run| (format!("{name}.json"), Input::Run(Box::new(run)));
    Side::of_inputs(name, runs.into_iter().map(input).collect()).unwrap()
}

/// Returns a side with runs at these rates.
pub(crate) fn rates(name: &str, rates: &[f64]) -> Side {
    side(name, rates.iter().map(|rate| run(*rate)).collect())
}

/// Returns alternating windows at these rates of A and B. The server's CPU time is 10 µs per call of A and 20 µs of B.
pub(crate) fn comparison(rounds: &[(f64, f64)]) -> Comparison {
    let measured = |name: &str| MeasuredSide {
        name: name.to_owned(),
        command: format!("serve {name}"),
        target: "a:1".to_owned(),
        revision: None,
    };
    let window = |side, round, rate: f64, cpu_ns: u64| {
        let run = run(rate);
        WindowResult {
            side,
            round,
            server_cpu_ns: Some(run.ok * cpu_ns),
            run: WindowRun::Method(Box::new(run)),
        }
    };
    let windows = (0..).zip(rounds).flat_map(|(round, (a, b))| {
        let mut both = [window(SideId::A, round, *a, 10_000), window(SideId::B, round, *b, 20_000)];
        if round % 2 == 1 {
            both.reverse();
        }
        both
    });
    Comparison {
        schema: SCHEMA.to_owned(),
        started: "2026-11-26T00:00:00Z".to_owned(),
        ended: "2026-11-26T00:01:00Z".to_owned(),
        machine: machine(),
        versions: Versions { thalweg: "9.9.9".to_owned(), build: "release".to_owned() },
        settings: Settings {
            rounds: rounds.len() as u32,
            window_ns: 2_000_000_000,
            warmup_ns: 0,
            load: Vec::new(),
            server_cpus: None,
            client_cpus: None,
        },
        a: measured("main"),
        b: measured("a|b"),
        windows: windows.collect(),
    }
}

pub(crate) fn options() -> Options {
    Options { margin: 0.05, fail_on: None, force: false }
}

/// Returns a figure of the only load.
pub(crate) fn figure(report: &Report, name: &str) -> thalweg_compare::FigureComparison {
    let figures = &report.cells[0].figures;
    *figures.iter().find(|compared| compared.figure.name() == name).unwrap_or_else(|| panic!("no {name}"))
}
