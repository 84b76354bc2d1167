//! Sample comparison with made-up figures, shaped like a real one. It has three peers and the bare socket, cells that
//! ours wins, ties and loses, failed windows, and an unavailable peer.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Latency;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::size::ByteSize;
use thalweg_measure::usage::{ProcessUsage, Usage};

use crate::load::results::AaResult;
use crate::load::{
    AaSide, CallsSettings, CallsTables, LabResults, Pattern, Point, PointResult, StackInfo, SystemCalls,
    Transport, WindowRequest, Work,
};
use crate::load::{Outcome, WindowResult};
use crate::record::{
    CallType, Connections, LOAD_SCHEMA, LaneRule, LoadResult, LoadSettings, MessageOwnership, Note, Pace,
    Spike,
};
use crate::sizes::SizesOptions;
use crate::stack::{Pair, Stack};
use crate::study::LeftOut;
use crate::study::StudyKind;

/// Rounds per cell.
const ROUNDS: u32 = 8;
const WINDOW: Duration = Duration::from_millis(400);

/// Cost of an operation in a made-up stack: a fixed time, and an addition per byte.
#[derive(Clone, Copy)]
struct Costs {
    lone_us: f64,
    unary_us: f64,
    /// Client, server and bidi streams.
    message_us: [f64; 3],
    byte_ns: f64,
    /// Share of processor time spent in the kernel.
    in_kernel: f64,
}

const OURS: Costs =
    Costs { lone_us: 58.0, unary_us: 1.7, message_us: [0.024, 0.027, 0.09], byte_ns: 0.42, in_kernel: 0.66 };
const TONIC: Costs =
    Costs { lone_us: 81.0, unary_us: 11.3, message_us: [0.041, 0.043, 0.4], byte_ns: 0.43, in_kernel: 0.3 };
const GRPC_CPP: Costs =
    Costs { lone_us: 92.0, unary_us: 12.8, message_us: [2.6, 2.4, 5.1], byte_ns: 0.39, in_kernel: 0.25 };
const GRPC_GO: Costs =
    Costs { lone_us: 104.0, unary_us: 15.9, message_us: [0.9, 0.7, 2.4], byte_ns: 0.81, in_kernel: 0.28 };
const SOCKET: Costs =
    Costs { lone_us: 49.0, unary_us: 0.8, message_us: [0.011, 0.011, 0.05], byte_ns: 0.24, in_kernel: 0.95 };

/// Four sizes over TCP and Unix sockets.
pub(crate) fn quick() -> LabResults {
    comparison(&SizesOptions::quick().sizes)
}

/// Fourteen sizes.
pub(crate) fn whole() -> LabResults {
    comparison(&SizesOptions::whole().sizes)
}

fn comparison(sizes: &[ByteSize]) -> LabResults {
    let mut random = Random::new(42);
    let mut points = Vec::new();
    for &size in sizes {
        for transport in Transport::ALL {
            for (work, in_flight) in WORKS {
                points.extend(cell(&point(work, in_flight, size, transport), &mut random));
            }
        }
    }
    LabResults {
        schema: "thalweg.lab/5".to_owned(),
        study: StudyKind::Sizes,
        started: "2026-11-21T08:00:00Z".to_owned(),
        ended: "2026-11-21T08:31:12Z".to_owned(),
        planned: points.len(),
        machine: Machine {
            cpu: "made-up processor".to_owned(),
            cores: 2,
            physical_cores: 4,
            sockets: 1,
            mhz: 2950.0,
            governor: String::new(),
            kernel: "Linux 6.1".to_owned(),
            tcp_congestion: "cubic".to_owned(),
            memory_bytes: 8_341_835_776,
            gives_memory_back: false,
            load_average: 0.1,
        },
        versions: Versions { thalweg: "0.1.0".to_owned(), build: "release".to_owned() },
        settings: CallsSettings {
            arguments: ["lab", "sizes", "--against", "tonic,grpc-cpp,grpc-go,connect-go,socket"]
                .map(str::to_owned)
                .to_vec(),
            client_cpus: Some("0".parse().expect("0 is a list of processors")),
            server_cpus: Some("1".parse().expect("1 is a list of processors")),
            ..CallsSettings::default()
        },
        others: Vec::new(),
        left_out: vec![LeftOut::new(
            "connect-go",
            "target/peers/connect-go/peer is not there; build it with `cargo xtask peers connect-go`",
        )],
        tables: CallsTables {
            stacks: [
                ("thalweg", "thalweg 0.1.0"),
                ("tonic", "tonic 0.14.9"),
                ("grpc-cpp", "gRPC C++ 1.51.1"),
                ("grpc-go", "grpc-go 1.85.0"),
            ]
            .map(|(name, version)| StackInfo {
                stack: stack(name),
                version: version.to_owned(),
                settings: Vec::new(),
            })
            .to_vec(),
            aa: aa(&mut random),
            system_calls: system_calls(sizes),
            wire: Vec::new(),
            points,
        },
    }
}

const WORKS: [(Work, u32); 5] = [
    (Work::Call(CallType::Unary), 1),
    (Work::Call(CallType::Unary), 16),
    (Work::Call(CallType::ClientStream), 1),
    (Work::Call(CallType::ServerStream), 1),
    (Work::Call(CallType::BidiStream), 1),
];

pub(super) fn point(work: Work, in_flight: u32, size_bytes: ByteSize, transport: Transport) -> Point {
    let warmup = Duration::from_millis(100);
    let round_trip = Duration::ZERO;
    Point {
        work,
        size_bytes,
        transport,
        in_flight,
        connections: 1,
        active: None,
        tls: false,
        round_trip,
        warmup,
        duration: WINDOW,
    }
}

/// Returns every round of a cell, in alternating order.
fn cell(point: &Point, random: &mut Random) -> Vec<PointResult> {
    let mut windows = Vec::new();
    for round in 0..ROUNDS {
        let mut of_round: Vec<Option<Pair>> = ["thalweg", "tonic", "grpc-cpp", "grpc-go"]
            .map(|name| Some(Pair::own(stack(name))))
            .into_iter()
            .chain(mixed(point).into_iter().map(Some))
            .chain([None])
            .collect();
        if round % 2 == 1 {
            of_round.reverse();
        }
        windows.extend(of_round.into_iter().map(|pair| window(point, pair, round, random)));
    }
    windows
}

/// Returns pairs of clients with other stacks' servers, for one kind of call.
fn mixed(point: &Point) -> Vec<Pair> {
    if (point.in_flight, point.transport) != (16, Transport::Tcp) {
        return Vec::new();
    }
    let names = ["thalweg", "tonic", "grpc-cpp", "grpc-go"];
    let pairs = names.iter().flat_map(|client| names.map(|server| (*client, server)));
    pairs
        .filter(|(client, server)| client != server)
        .map(|(client, server)| Pair { client: stack(client), server: stack(server) })
        .collect()
}

pub(super) fn window(point: &Point, pair: Option<Pair>, round: u32, random: &mut Random) -> PointResult {
    let name = pair.as_ref().map_or("socket", |pair| pair.client.name());
    let is_too_large = name == "grpc-go" && point.size_bytes.0 > 4_000_000;
    if is_too_large && point.work == Work::Call(CallType::BidiStream) {
        let reason = "the driver ended with RESOURCE_EXHAUSTED: received message larger than max (4194309 vs. 4194304)";
        return PointResult {
            request: WindowRequest { point: point.clone(), pair, strategy: None, round },
            outcome: Outcome::Failed(reason.to_owned()),
            usage: None,
            not_valid: None,
        };
    }
    let operation_ns = match &pair {
        // Each end does half of the work; when they overlap, the slower one determines the time.
        Some(pair) => {
            let (client, server) = (costs(pair.client.name()), costs(pair.server.name()));
            (ns(client, point) + ns(server, point)).max(2.0 * 0.8 * ns(client, point).max(ns(server, point)))
                / 2.0
        }
        None => ns(SOCKET, point),
    };
    let noise = if point.size_bytes.0 > 1 << 20 { 0.05 } else { 0.022 };
    let rate_per_s = 1e9 / operation_ns * (noise * random.normal() - 0.001 * f64::from(round)).exp();
    let mut result = result(point, rate_per_s, random);
    if name == "tonic" && round == 3 && point.size_bytes.0 == 256 << 10 && point.in_flight == 16 {
        result.errors = BTreeMap::from([("UNAVAILABLE".to_owned(), 7)]);
    }
    let usage = pair.as_ref().map(|pair| usage(pair, &result));
    let mut limited = point.clone();
    if pair.is_none() {
        let Work::Call(call) = point.work else { unreachable!("sockets are measured beside calls") };
        limited.work = Work::Socket(Pattern::of(call));
    }
    if name == "thalweg" && point.in_flight == 16 && point.size_bytes.0 == 0 && round == 5 {
        result.notes.push(Note {
            text: "the client's processors were busy for 97 % of the time: the client was the limit, not the server"
                .to_owned(),
            invalidates: true,
        });
    }
    PointResult {
        request: WindowRequest { point: limited, pair, strategy: None, round },
        outcome: Outcome::Measured(Box::new(result)),
        usage,
        not_valid: None,
    }
}

fn costs(name: &str) -> Costs {
    match name {
        "thalweg" => OURS,
        "tonic" => TONIC,
        "grpc-cpp" => GRPC_CPP,
        _ => GRPC_GO,
    }
}

fn ns(costs: Costs, point: &Point) -> f64 {
    let own_us = match (point.work, point.in_flight) {
        (Work::Call(CallType::Unary), 1) => costs.lone_us,
        (Work::Call(CallType::ClientStream), _) => costs.message_us[0],
        (Work::Call(CallType::ServerStream), _) => costs.message_us[1],
        (Work::Call(CallType::BidiStream), _) => costs.message_us[2],
        _ => costs.unary_us,
    };
    let own_us = if point.transport == Transport::Uds { own_us * 0.9 } else { own_us };
    own_us * 1e3 + costs.byte_ns * point.size_bytes.0 as f64
}

fn result(point: &Point, rate_per_s: f64, random: &mut Random) -> LoadResult {
    let messages = (rate_per_s * WINDOW.as_secs_f64()).max(1.0).round() as u64;
    let mean = 1e9 / rate_per_s * f64::from(point.in_flight);
    let at = |share: f64| (mean * share) as u64;
    let max = at(6.0 + 20.0 * random.unit());
    let is_one_way = match point.work {
        Work::Call(call) => matches!(call, CallType::ClientStream | CallType::ServerStream),
        Work::Socket(pattern) => pattern == Pattern::OneWay,
    };
    let cpu_ns = WINDOW.as_nanos() as f64 * 0.8;
    let client_cpu = CpuTime { user_ns: cpu_ns * 0.4, system_ns: cpu_ns * 0.6 };
    LoadResult {
        schema: LOAD_SCHEMA.to_owned(),
        settings: LoadSettings {
            target: "127.0.0.1:41233".to_owned(),
            call: match point.work {
                Work::Call(call) => call,
                Work::Socket(pattern) => pattern.call(),
            },
            size_bytes: point.size_bytes.0,
            in_flight: point.in_flight,
            connections: 1,
            lanes: LaneRule::Fixed,
            method: None,
            echo: None,
            message_ownership: MessageOwnership::default(),
            warmup_ns: point.warmup.as_nanos() as u64,
            duration_ns: Some(WINDOW.as_nanos() as u64),
            total: None,
            bare: None,
            busy_poll_ns: Some(0),
            cpus: None,
        },
        started: "2026-11-21T08:00:01Z".to_owned(),
        ended: "2026-11-21T08:00:02Z".to_owned(),
        duration_ns: WINDOW.as_nanos() as u64,
        drain_ns: 0,
        closed_loop: true,
        rate_per_s,
        calls: messages,
        messages,
        errors: BTreeMap::new(),
        bytes_sent: messages * point.size_bytes.0,
        bytes_received: messages * point.size_bytes.0,
        latency_ns: (!is_one_way).then(|| Latency {
            min: at(0.6),
            mean,
            p50: at(0.95),
            p90: at(1.3),
            p95: Some(at(1.6)),
            p99: at(1.9),
            p99_9: at(2.6),
            p99_99: at(4.0),
            max,
        }),
        pace_ns: is_one_way.then_some(Pace { mean, gap_max: max, messages_per_reading: 16 }),
        spikes: vec![Spike { took_ns: max, at_ns: (random.unit() * 4e8) as u64 }],
        histogram: Histogram::default(),
        client_cpu,
        first_call_ns: None,
        stages: Vec::new(),
        fairness: None,
        lanes: Vec::new(),
        client_cpu_per_call: Some(client_cpu / messages as f64),
        busy_poll_wasted_ns: 0,
        connections: Connections { asked: 1, established: Some(1) },
        notes: Vec::new(),
    }
}

fn usage(pair: &Pair, result: &LoadResult) -> Usage {
    let of = |stack: &Stack, busy: f64| {
        let costs = costs(stack.name());
        let cpu_ns = WINDOW.as_nanos() as f64 * busy;
        ProcessUsage {
            user_ns: (cpu_ns * (1.0 - costs.in_kernel)) as u64,
            system_ns: (cpu_ns * costs.in_kernel) as u64,
            voluntary_switches: result.messages / if result.settings.in_flight == 1 { 1 } else { 12 },
            involuntary_switches: 3,
            ..ProcessUsage::default()
        }
    };
    let (client, server) = (of(&pair.client, 0.93), of(&pair.server, 0.86));
    Usage { window_ns: result.duration_ns, client, server, server_memory: None }
}

/// Returns the noise floor, at two sizes of each kind.
fn aa(random: &mut Random) -> Vec<AaResult> {
    let mut windows = Vec::new();
    for (work, in_flight) in WORKS {
        for size in [ByteSize(1 << 10), ByteSize(256 << 10)] {
            let point = point(work, in_flight, size, Transport::Tcp);
            for round in 0..ROUNDS {
                for label in if round % 2 == 0 { [AaSide::A, AaSide::B] } else { [AaSide::B, AaSide::A] } {
                    windows
                        .push(AaResult { label, window: window(&point, Some(Pair::ours()), round, random) });
                }
            }
        }
    }
    windows
}

fn system_calls(sizes: &[ByteSize]) -> Vec<WindowResult<WindowRequest, SystemCalls>> {
    let names = [("thalweg", 0.14), ("tonic", 0.9), ("grpc-cpp", 1.4), ("grpc-go", 1.1)];
    let mut counted = Vec::new();
    for &size in sizes.iter().take(3) {
        for (name, per_operation) in names {
            let outcome = if name == "grpc-go" && size.0 > 0 {
                Err("strace: Operation not permitted".to_owned())
            } else {
                Ok(SystemCalls {
                    client_per_operation: per_operation,
                    server_per_operation: per_operation * 0.8,
                })
            };
            let point = point(Work::Call(CallType::Unary), 16, size, Transport::Tcp);
            let request =
                WindowRequest { point, pair: Some(Pair::own(stack(name))), strategy: None, round: 0 };
            counted.push(WindowResult::of_other(request, outcome));
        }
    }
    counted
}

fn stack(name: &str) -> Stack {
    name.parse().expect("it is a stack's name")
}

/// A deterministic linear congruential generator with Knuth's 64-bit constants.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number above 0 and up to 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) + 1) as f64 / (1_u64 << 31) as f64
    }

    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
