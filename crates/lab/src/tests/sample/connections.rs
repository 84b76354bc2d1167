//! Sample connections study with made-up figures. A call costs more as connections grow, ours less than gRPC C++'s,
//! and TLS costs most at the start of a connection.

use thalweg_measure::distribution::Latency;
use thalweg_measure::usage::{ProcessUsage, ServerMemory, Usage};

use crate::connections::{self, ConnectionsOptions};
use crate::load::Outcome;
use crate::load::{CallsTables, LabResults, PointResult, StackInfo, Strategy, Window};
use crate::record::{Fairness, LoadResult};
use crate::stack::{OURS, SOCKET, Stack};
use crate::study::StudyKind;

/// Server time per call over one connection, ns: the bare echo, ours, others.
const ECHO_NS: f64 = 2_500.0;
const OURS_NS: f64 = 4_000.0;
const OTHERS_NS: f64 = 14_000.0;
/// Server time per new connection, ns, and the addition for TLS.
const ARRIVAL_NS: f64 = 60_000.0;
const TLS_NS: f64 = 400_000.0;

pub(crate) fn quick() -> LabResults {
    let stacks: Vec<Stack> = ["thalweg", "grpc-cpp"].map(|name| name.parse().expect("a valid name")).to_vec();
    let options = ConnectionsOptions {
        connections: vec![1, 10, 100, 1000, 10_000],
        tls: stacks.clone(),
        ..ConnectionsOptions::quick(stacks)
    };
    let study = connections::plan(&options).expect("the plan fits its budget");
    let template = super::sizes();
    let load = template.points[0].measured().expect("the sample was measured").clone();
    let point = |window: &Window| PointResult {
        outcome: Outcome::Measured(Box::new(measured(window, &load))),
        usage: Some(usage(window)),
        not_valid: None,
        request: window.request.clone(),
    };
    let points = study.windows.iter().map(point).collect();
    let stacks = [("thalweg", "thalweg 0.1.0"), ("grpc-cpp", "gRPC C++ 1.51.1")]
        .map(|(name, version)| StackInfo {
            settings: Vec::new(),
            stack: name.parse().expect("a valid name"),
            version: version.to_owned(),
        })
        .to_vec();
    LabResults {
        study: StudyKind::Connections,
        planned: study.windows.len(),
        tables: CallsTables { stacks, points, ..template.tables },
        ..template
    }
}

/// Returns the server's processor time per operation in ns, varying slightly by round and load.
fn server_ns(window: &Window) -> f64 {
    let point = &window.point;
    let server = window.pair.as_ref().map_or(OURS, |pair| pair.server.name());
    let of_call = match server {
        SOCKET => ECHO_NS,
        OURS => OURS_NS,
        _ => OTHERS_NS,
    };
    let letters = server.bytes().map(u32::from).sum::<u32>();
    let chance =
        f64::from((letters * 13 + point.connections * 37 + point.in_flight * 11 + window.round * 61) % 101)
            / 50.0;
    let off = 1.0 + 0.03 * (chance - 1.0);
    if window.strategy == Some(Strategy::PerCall) {
        let tls = if point.tls { TLS_NS } else { 0.0 };
        return off * (ARRIVAL_NS + 3.0 * of_call + tls);
    }
    let shared = f64::from(point.in_flight) / f64::from(point.active.unwrap_or(1));
    off * of_call * (1.0 + 0.2 * f64::from(point.connections).log10()) * (0.4 + 0.6 / shared)
}

fn operations(window: &Window) -> f64 {
    window.point.duration.as_nanos() as f64 / server_ns(window)
}

fn measured(window: &Window, load: &LoadResult) -> LoadResult {
    let point = &window.point;
    let duration = point.duration.as_nanos() as f64;
    let median = duration * f64::from(point.in_flight) / operations(window);
    let at = |share: f64| (median * share) as u64;
    let mut result = load.clone();
    result.duration_ns = duration as u64;
    result.messages = operations(window) as u64;
    result.rate_per_s = operations(window) / duration * 1e9;
    result.connections.established = Some(point.connections);
    result.latency_ns = Some(Latency {
        min: at(0.6),
        mean: median,
        p50: at(1.0),
        p90: at(1.2),
        p95: Some(at(1.4)),
        p99: at(1.7),
        p99_9: at(2.4),
        p99_99: at(3.0),
        max: at(4.0),
    });
    result.fairness = point.active.map(|active| {
        let each = operations(window) / f64::from(active);
        let (least, most) = ((each * 0.9) as u64, (each * 1.1) as u64);
        Fairness { connections: active, jain: 0.997, least, most }
    });
    result
}

fn usage(window: &Window) -> Usage {
    let window_ns = window.point.duration.as_nanos() as u64;
    let used = |ns: f64| ProcessUsage {
        user_ns: (0.4 * ns * operations(window)) as u64,
        system_ns: (0.6 * ns * operations(window)) as u64,
        ..ProcessUsage::default()
    };
    let connections = u64::from(window.point.connections);
    let memory = ServerMemory {
        first: 8 << 20,
        connected: (8 << 20) + 5_700 * connections,
        measuring: (8 << 20) + 9_100 * connections,
    };
    let server_memory = window.is_bare().then_some(memory);
    Usage { window_ns, client: used(3_000.0), server: used(server_ns(window)), server_memory }
}
