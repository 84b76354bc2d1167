//! Sample JSON study with made-up figures; [`base_ns`] defines the time of each endpoint.

use std::time::{Duration, Instant, SystemTime};

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::usage::{ProcessUsage, Usage};

use crate::echo::{ClientWork, EchoWork, Protocol, STAGES, Shape};
use crate::json::{
    Endpoint, JsonOptions, JsonResults, JsonSettings, PUBLISHED, endpoints_of, our_endpoints, plan,
};
use crate::load::{MeasuredLoad, Outcome, StackInfo};
use crate::record::{CallType, Connections, LaneRule, LoadSettings, MessageOwnership, Recorder, RunContext};
use crate::stack::Stack;
use crate::study::LeftOut;

/// Returns the time of a call, by message and protocol.
fn base_ns(endpoint: &Endpoint, shape: Shape) -> u64 {
    let of_shape = if shape == PUBLISHED { 500_000 } else { 50_000 };
    let of_protocol = match endpoint.protocol {
        Protocol::Grpc | Protocol::GrpcWebH2 => 10,
        Protocol::GrpcWebHttp1 => 11,
        Protocol::MsgpackH2 | Protocol::MsgpackHttp1 => 12,
        Protocol::ConnectH2 | Protocol::ConnectHttp1 => 15,
        Protocol::JsonH2 => 16,
        // The person is as fast over JSON.
        Protocol::JsonHttp1 if shape == Shape::Person => 10,
        Protocol::JsonHttp1 => 20,
    };
    let of_server = match endpoint.stack.name() {
        "thalweg" => 1,
        "axum" => 2,
        _ => 5,
    };
    let whole = of_shape * of_protocol * of_server / 10;
    if endpoint.is_views() { whole / 2 } else { whole }
}

/// Returns ours and three other servers, one of them unavailable.
pub(crate) fn quick() -> JsonResults {
    let mut endpoints = our_endpoints();
    let speaks = ["http1", "h2"].map(str::to_owned);
    let others: Vec<Stack> =
        ["axum", "grpc-gateway", "grpc-gateway:inside"].map(|name| name.parse().unwrap()).to_vec();
    endpoints.extend(others.iter().flat_map(|stack| endpoints_of(stack, &speaks)));
    let options = JsonOptions::quick(endpoints.clone(), Vec::new());
    let plan = plan(&options).unwrap();
    let info = |stack: Stack| StackInfo { version: format!("{stack} 1.0"), stack, settings: Vec::new() };
    let settings = JsonSettings {
        arguments: ["lab", "json", "--quick"].map(str::to_owned).to_vec(),
        published: PUBLISHED,
        own: None,
        endpoints,
        client_cpus: CpuAssignment::default().client_cpus.or_else(|| "0".parse().ok()),
        server_cpus: "1".parse().ok(),
    };
    let stacks = [Stack::ours()].into_iter().chain(others).map(info).collect();
    let left_out = vec![LeftOut::new("spring", "no Java here")];
    let mut results = JsonResults::started(settings, stacks, left_out, plan.windows.len());
    "release".clone_into(&mut results.versions.build);
    results.machine.load_average = 0.0;
    for window in &plan.windows {
        let network = window.case.round_trip_ns;
        let connecting = if window.case.new_connection { 100_000 } else { 0 };
        let took = base_ns(&window.endpoint, window.case.shape) + network + connecting;
        let found = measured(&window.endpoint, window.case.shape, took, u64::from(window.round), 1);
        results.record(window, Ok(found), SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    }
    results
}

/// Returns the same study with this many spikes in each window.
pub(crate) fn with_spikes(spikes: u64) -> JsonResults {
    let mut results = quick();
    for result in &mut results.windows {
        let window = result.window.clone();
        let took = base_ns(&window.endpoint, window.case.shape);
        let measured = measured(&window.endpoint, window.case.shape, took, 0, spikes);
        result.outcome = Outcome::Measured(Box::new(measured.load));
    }
    results
}

fn measured(endpoint: &Endpoint, shape: Shape, took_ns: u64, round: u64, spikes: u64) -> MeasuredLoad {
    const CALLS: u64 = 100;
    let began = Instant::now();
    let mut recorder = Recorder::new(CallType::Unary, began);
    for call in 0..CALLS {
        // Each window is slightly slower than the one before, and some calls are spikes.
        let is_spike = (50 - spikes / 2..50 + spikes.div_ceil(2)).contains(&call);
        let took = took_ns + took_ns * round / 200 + if is_spike { 12 * took_ns } else { 0 };
        recorder.record(began, began + Duration::from_nanos(took));
        let part = took / STAGES.len() as u64;
        let hidden = |name: &str| ["decode", "encode"].contains(&name);
        recorder.divided(&STAGES.map(|name| (!hidden(name)).then_some(part)));
    }
    let client_work = ClientWork::Times;
    let settings = LoadSettings {
        target: String::new(),
        call: CallType::Unary,
        size_bytes: 0,
        in_flight: 1,
        connections: 1,
        lanes: LaneRule::Fixed,
        method: None,
        echo: Some(EchoWork { shape, protocol: endpoint.protocol, client_work, gzip: false }),
        message_ownership: MessageOwnership::default(),
        warmup_ns: 0,
        duration_ns: None,
        total: Some(CALLS),
        bare: None,
        busy_poll_ns: Some(0),
        cpus: None,
    };
    let bytes = CALLS * if endpoint.protocol == Protocol::Grpc { 1000 } else { 1100 };
    let mut load = recorder.finish(RunContext {
        settings,
        started: SystemTime::UNIX_EPOCH,
        duration: Duration::from_nanos(CALLS * took_ns),
        from_ns: 0,
        client_cpu: CpuTime::default(),
        connections: Connections { asked: 1, established: Some(1) },
        notes: Vec::new(),
    });
    (load.bytes_sent, load.bytes_received) = (bytes, bytes);
    load.first_call_ns = Some(20 * took_ns);
    let used = ProcessUsage { user_ns: CALLS * took_ns / 4, ..ProcessUsage::default() };
    MeasuredLoad {
        load,
        usage: Some(Usage { window_ns: CALLS * took_ns, client: used, server: used, server_memory: None }),
    }
}
