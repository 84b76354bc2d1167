//! Sample channels study with made-up figures: gRPC C++ as published, ours with an adaptive channel, and a call that
//! waits for its network. In gRPC C++, channels with equal arguments share a connection, which moves a sixth of what
//! several do.

use std::time::Duration;

use thalweg_measure::distribution::Latency;
use thalweg_measure::usage::{ProcessUsage, Usage};

use crate::channels::{self, ChannelsOptions, Contender, contenders};
use crate::load::{
    IdleGaps, LabResults, PointResult, Purpose, StackInfo, Strategy, SystemCalls, Window, WireTraffic,
};
use crate::load::{Outcome, WindowResult};
use crate::record::{LanesAt, LoadResult};
use crate::stack::Pair;
use crate::study::StudyKind;

/// Maximum operations per second of one connection.
const ONE_MOST: f64 = 150e3;
/// Maximum operations per second of any number of connections.
const ALL_MOST: f64 = 900e3;
/// Time of a lone call without a network.
const LONE_S: f64 = 50e-6;

pub(crate) fn quick() -> LabResults {
    let study = channels::plan(&ChannelsOptions::quick(all_contenders())).expect("the plan fits its budget");
    let template = super::sizes();
    let load = template.points[0].measured().expect("the sample was measured").clone();
    let mut sample = LabResults {
        study: StudyKind::Channels,
        planned: study.windows.iter().filter(|window| window.purpose == Purpose::Figures).count(),
        ..template
    };
    sample.points.clear();
    sample.stacks = [("thalweg", "thalweg 0.1.0"), ("grpc-cpp", "gRPC C++ 1.51.1")]
        .map(|(name, version)| StackInfo {
            settings: Vec::new(),
            stack: name.parse().expect("a valid name"),
            version: version.to_owned(),
        })
        .to_vec();
    for window in study.windows {
        let request = window.request.clone();
        match window.purpose {
            Purpose::Figures => sample.points.push(PointResult {
                outcome: Outcome::Measured(Box::new(measured(&window, &load))),
                usage: Some(usage(request.point.duration)),
                not_valid: None,
                request,
            }),
            Purpose::NoiseFloor(_) => {}
            Purpose::SystemCalls => {
                let counted = SystemCalls { client_per_operation: 0.5, server_per_operation: 0.25 };
                sample.system_calls.push(WindowResult::of_other(request, Ok(counted)));
            }
            Purpose::Wire => {
                sample.wire.push(WindowResult::of_other(request, Ok(wire(&window))));
            }
        }
    }
    sample
}

fn all_contenders() -> Vec<Contender> {
    let variants = ["own", "distinct", "shared", "one"].map(str::to_owned);
    let mut all = contenders(&Pair::ours(), &[], 6);
    all.extend(contenders(&Pair::own("grpc-cpp".parse().expect("a valid name")), &variants, 6));
    all
}

/// Returns the connections that the kernel would count.
fn connections(window: &Window) -> u32 {
    let pair = window.pair.as_ref().expect("every window is a pair's");
    match window.strategy.expect("every window has a strategy") {
        _ if pair.client.variant() == Some("shared") => 1,
        Strategy::Adaptive => (window.point.in_flight / 16).clamp(1, 4),
        Strategy::PerCall => window.point.in_flight,
        strategy => strategy.connections(window.point.in_flight),
    }
}

/// Returns a window's random deviation: a few percent, and more with few calls in flight.
fn off(window: &Window) -> f64 {
    let name = window.to_string();
    let letters = name.bytes().map(u32::from).sum::<u32>();
    let chance = f64::from((letters * 37 + window.round * 61) % 101) / 50.0 - 1.0;
    let is_small = (2..=4).contains(&window.point.in_flight);
    1.0 + chance * if is_small { 0.16 } else { 0.03 }
}

fn measured(window: &Window, load: &LoadResult) -> LoadResult {
    let point = &window.point;
    let connections = connections(window);
    let most = (ONE_MOST * f64::from(connections)).min(ALL_MOST);
    let ideal = f64::from(point.in_flight) / (LONE_S + point.round_trip.as_secs_f64());
    let dear = if window.strategy == Some(Strategy::PerCall) { 0.1 } else { 1.0 };
    let rate_per_s = dear * ideal.min(most) * off(window);
    let median = 1e9 * f64::from(point.in_flight) / rate_per_s;
    let at = |share: f64| (median * share) as u64;
    let is_adaptive = window.strategy == Some(Strategy::Adaptive);
    let lane = |at_ns, lanes| LanesAt { at_ns, lanes };
    let grown = [lane(-2_000_000_000, 1), lane(-1_500_000_000, 2), lane(-900_000_000, connections.max(2))];
    let mut result = load.clone();
    result.rate_per_s = rate_per_s;
    result.messages = (rate_per_s * point.duration.as_secs_f64()) as u64;
    result.duration_ns = point.duration.as_nanos() as u64;
    result.connections.established = Some(connections);
    result.latency_ns = Some(Latency {
        min: at(0.6),
        mean: median,
        p50: at(1.0),
        p90: at(1.3),
        p95: Some(at(1.6)),
        p99: at(1.9),
        p99_9: at(2.6),
        p99_99: at(4.0),
        max: at(9.0),
    });
    result.lanes = if is_adaptive { grown[..connections.min(3) as usize].to_vec() } else { Vec::new() };
    result
}

fn usage(window: Duration) -> Usage {
    let window_ns = window.as_nanos() as u64;
    let process =
        ProcessUsage { user_ns: window_ns / 4, system_ns: window_ns / 5, ..ProcessUsage::default() };
    Usage { window_ns, client: process, server: process, server_memory: None }
}

/// Returns wire traffic in which one connection is mostly silent, in gaps of 150 to 200 µs, and several are less so.
fn wire(window: &Window) -> WireTraffic {
    let share = 0.7 / f64::from(connections(window));
    let idle = IdleGaps {
        share,
        gaps: 2400,
        p50_ns: 165_000,
        p90_ns: 190_000,
        p99_ns: 210_000,
        max_ns: 4_000_000,
        buckets: vec![(1_250, 300), (145_519, 400), (181_899, 1_300), (227_374, 390), (4_000_000, 10)],
    };
    WireTraffic {
        watched_ns: 400_000_000,
        each: IdleGaps { share: share.max(0.7), ..idle.clone() },
        all: idle,
        sent_bytes: 10_000,
        received_bytes: 20_000,
        hop_busy_share: 0.4,
    }
}
