//! Sample codec study with made-up figures.

use thalweg_measure::machine::{Machine, Versions};

use crate::codec::line::{CodecLine, Decodes, Format, Operation};
use crate::codec::tables::{
    Allocations, AllocationsOf, CallFigures, CallsOf, CodecInfo, CodecStep, DataInfo, InstructionsOf,
    MessageSize, PeerLine, PeerResult,
};
use crate::codec::{CodecResults, CodecSettings, CodecTables};
use crate::study::StudyKind;

/// Messages, with their cost relative to the first.
const DATA: [(&str, f64); 2] = [("small", 1.0), ("strings", 100.0)];
/// Name, format, whether dynamic, ns and bytes of the first message, and of the second ÷ 100.
type Codec = (&'static str, Format, bool, [f64; 2], [f64; 2]);

const CODECS: [Codec; 4] = [
    ("prost", Format::Protobuf, false, [100.0, 20.0], [100.0, 110.0]),
    ("dynamic", Format::Protobuf, true, [200.0, 20.0], [200.0, 110.0]),
    ("serde_json", Format::Json, false, [300.0, 60.0], [95.0, 115.0]),
    ("rmp-serde", Format::MessagePack, false, [150.0, 40.0], [80.0, 105.0]),
];

/// Returns two messages, four codecs, and a peer with two more.
pub(crate) fn quick() -> CodecResults {
    let mut results = CodecResults {
        schema: "thalweg.lab/5".to_owned(),
        study: StudyKind::Codec,
        started: "2026-11-21T08:00:00.000Z".to_owned(),
        ended: "2026-11-21T08:03:00.000Z".to_owned(),
        planned: 0,
        machine: Machine {
            cpu: "made up".to_owned(),
            cores: 2,
            physical_cores: 4,
            sockets: 1,
            mhz: 2950.0,
            governor: String::new(),
            kernel: "Linux 6".to_owned(),
            tcp_congestion: "cubic".to_owned(),
            memory_bytes: 1 << 34,
            gives_memory_back: false,
            load_average: 0.1,
        },
        versions: Versions { thalweg: "0.1.0".to_owned(), build: "release".to_owned() },
        settings: CodecSettings {
            arguments: vec!["lab".to_owned(), "codec".to_owned()],
            rounds: 3,
            warm_ups: 50,
            seed: Some(1),
            cpu: Some(0),
        },
        left_out: Vec::new(),
        others: Vec::new(),
        tables: CodecTables {
            codecs: CODECS.iter().map(|codec| info(codec.0, codec.1, codec.2)).collect(),
            data: DATA
                .map(|(name, _)| DataInfo { name: name.to_owned(), about: "made up".to_owned(), messages: 1 })
                .to_vec(),
            peers: vec![peer()],
            ..CodecTables::default()
        },
    };
    for (index, (data, scale)) in DATA.into_iter().enumerate() {
        for (name, _, _, small, large) in CODECS {
            let [ns, bytes] = if index == 0 { small } else { large };
            let raw = bytes * scale;
            let size = MessageSize {
                data: data.to_owned(),
                codec: name.to_owned(),
                raw,
                gzip: raw + 20.0,
                zstd: raw + 10.0,
            };
            results.sizes.push(size);
            for operation in Operation::ALL {
                add(&mut results, line(data, name, operation), ns * scale, name == "prost");
            }
        }
        for (format, size_bytes) in [(Format::Protobuf, 20), (Format::Json, 60)] {
            results.calls.extend([(1, 50_000.0), (64, 2_000.0)].map(|(in_flight, ns)| CallsOf {
                data: data.to_owned(),
                format,
                size_bytes,
                in_flight,
                rounds: vec![CallFigures { p50_ns: ns, cpu_ns: ns, rate_per_s: 1e9 / ns }],
            }));
        }
    }
    results.planned = results.measured();
    results
}

fn add(results: &mut CodecResults, line: CodecLine, ns: f64, twice: bool) {
    let times = if line.operation == Operation::RoundTrip { 2.0 } else { 1.0 };
    for conversions in [10, 1000] {
        let step = |is_duplicate, factor: f64| {
            let elapsed = |round: f64| (ns * times * conversions as f64 * factor * round) as u64;
            let elapsed_ns = [1.0, 0.98, 1.02].map(elapsed).to_vec();
            CodecStep { line: line.clone(), is_duplicate, conversions, elapsed_ns, not_valid: Vec::new() }
        };
        results.steps.push(step(false, 1.0));
        if twice {
            results.steps.push(step(true, 1.04));
        }
    }
    let allocations = Allocations { blocks: 2.0, bytes: 64.0 };
    results.allocations.push(AllocationsOf { line: line.clone(), allocations });
    results.instructions.push(InstructionsOf { line, instructions: ns * 3.0 });
}

fn peer() -> PeerResult {
    let of = |name: &str, ns: f64| {
        let times = |data: &str| PeerLine {
            line: line(data, name, Operation::RoundTrip),
            ns_per_conversion: vec![ns, ns * 1.1, ns * 0.9],
            bytes: 20.0,
        };
        DATA.map(|(data, _)| times(data)).to_vec()
    };
    PeerResult {
        name: "jvm-codec".to_owned(),
        version: "Java".to_owned(),
        method: "Timed by JMH.".to_owned(),
        codecs: vec![info("protobuf-java", Format::Protobuf, false), info("jackson", Format::Json, false)],
        lines: [of("protobuf-java", 400.0), of("jackson", 1200.0)].concat(),
        loops: Vec::new(),
    }
}

/// Returns a codec. The dynamic one borrows, as ours does.
fn info(name: &str, format: Format, dynamic: bool) -> CodecInfo {
    CodecInfo {
        name: name.to_owned(),
        version: "1".to_owned(),
        format,
        dynamic,
        decodes: Some(if dynamic { Decodes::Borrowed } else { Decodes::Owned }),
        about: "made up".to_owned(),
    }
}

fn line(data: &str, codec: &str, operation: Operation) -> CodecLine {
    CodecLine { data: data.to_owned(), codec: codec.to_owned(), operation }
}
