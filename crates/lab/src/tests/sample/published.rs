//! Sample results of published measurements with made-up figures, mostly as published.

use thalweg_measure::size::ByteSize;

use crate::AnyResults;
use crate::codec::CodecResults;
use crate::codec::line::{CodecLine, Operation};
use crate::codec::tables::{DataInfo, PeerLine, PeerLoop};
use crate::json::JsonResults;
use crate::load::{LabResults, Outcome, SystemCalls, Transport, WindowRequest, WindowResult, Work};
use crate::published::{Evidence, Publication, PublishedResults, PublishedSettings, judge};
use crate::record::CallType;
use crate::stack::Pair;

use super::{channels, codec, comparison, json};

/// Returns all publications with their judged claims.
pub(crate) fn results() -> PublishedResults {
    let mut results = PublishedResults::started(PublishedSettings {
        publications: Publication::ALL.to_vec(),
        quick: true,
        ..PublishedSettings::default()
    });
    results.answer(judge(&Publication::ALL, &evidence()));
    results
}

/// Returns all runs of all publications.
pub(crate) fn evidence() -> Evidence {
    let calls = |results: LabResults| AnyResults::Calls(Box::new(results));
    Evidence::default()
        .with("qt-at-cpp", calls(at("grpc-cpp")))
        .with("qt-at-ours", calls(at("thalweg")))
        .with("qt-over-tcp", calls(at("grpc-cpp")))
        .with("json", AnyResults::Json(Box::new(on_the_jvm())))
        .with_jvm_log("json", "[1970-01-01T00:00:00.000+0000][jit,compilation] 1201 3 a.B::c (60 bytes)\n")
        .with("codec", AnyResults::Codec(Box::new(by_the_jvm())))
        .with("channels", calls(channels::quick()))
        .with("channels-unpinned", calls(channels::quick()))
}

/// Returns clients of Qt, gRPC C++ and ours with one server.
fn at(server: &str) -> LabResults {
    let mut results = comparison::whole();
    let met = |pair: &Pair| {
        let client = match pair.client.name() {
            "tonic" => "qt",
            name @ ("grpc-cpp" | "thalweg") => name,
            _ => return None,
        };
        Some(Pair { client: client.parse().unwrap(), server: server.parse().unwrap() })
    };
    let mut points = Vec::new();
    for mut point in results.points.drain(..) {
        let Some(pair) = point.pair.as_ref().and_then(met) else { continue };
        let is_stream = matches!(point.point.work, Work::Call(CallType::ClientStream));
        let is_empty = point.point.size_bytes.0 == 0;
        if let Outcome::Measured(load) = &mut point.outcome
            && pair.client.name() == "qt"
            && is_stream
            && is_empty
        {
            load.rate_per_s = 1.2e6;
        }
        point.pair = Some(pair);
        points.push(point);
    }
    results.points = points;
    // Each call makes some system calls, and a stream's message almost none.
    for client in ["qt", "grpc-cpp", "thalweg"] {
        let pair = Pair { client: client.parse().unwrap(), server: server.parse().unwrap() };
        for (call, client_per_operation) in [(CallType::Unary, 4.0), (CallType::ClientStream, 0.05)] {
            let point = comparison::point(Work::Call(call), 1, ByteSize(0), Transport::Uds);
            let counted = SystemCalls { client_per_operation, server_per_operation: 1.0 };
            let request = WindowRequest { point, pair: Some(pair.clone()), strategy: None, round: 0 };
            results.system_calls.push(WindowResult::of_other(request, Ok(counted)));
        }
    }
    results
}

fn on_the_jvm() -> JsonResults {
    let text = serde_json::to_string(&json::with_spikes(2)).unwrap();
    serde_json::from_str(&text.replace("\"axum\"", "\"spring\"").replace("\"grpc-gateway\"", "\"lognet\""))
        .unwrap()
}

/// Returns figures with the published factor of seven at ten million conversions, and a late compiler.
fn by_the_jvm() -> CodecResults {
    const DATA: &str = "person-sparse";
    let mut results = codec::quick();
    results.data.push(DataInfo { name: DATA.to_owned(), about: "made up".to_owned(), messages: 1 });
    let peer = results.peers.first_mut().unwrap();
    for (name, bytes, first_ns, last_ns) in
        [("protobuf-java", 17.0, 9_000.0, 60.0), ("jackson-blackbird", 63.0, 27_000.0, 420.0)]
    {
        let line =
            CodecLine { data: DATA.to_owned(), codec: name.to_owned(), operation: Operation::RoundTrip };
        peer.lines.push(PeerLine { line: line.clone(), ns_per_conversion: vec![last_ns], bytes });
        for power in 1..=7 {
            let conversions = 10_u64.pow(power);
            let each = if power < 4 { first_ns } else { last_ns };
            let elapsed_ns = (each * conversions as f64) as u64;
            peer.loops.push(PeerLoop { line: line.clone(), round: 0, conversions, elapsed_ns });
        }
    }
    results
}
