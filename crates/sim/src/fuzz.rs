//! Fuzzing that runs on stable Rust, for a bounded time, as a test.
//!
//! A [`Target`] takes any bytes, and panics when an invariant breaks. [`run`] starts from recorded connections, changes
//! them frame by frame, and keeps what made the target do something new: an error that was not seen before, an event
//! behind another that it had not stood behind.
//!
//! [`frames`], [`calls`], [`tls`](tls()), [`hpack`], [`operations`], [`dissect`], [`transcode`], [`web_requests`],
//! [`web_envelopes`], [`http1`](http1()), [`connect_get`], [`msgpack`], [`text_format`], [`field_paths`] and
//! [`sources`] have the form that libFuzzer wants, for those who have a nightly toolchain:
//!
//! ```text
//! fuzz_target!(|data: &[u8]| thalweg_sim::fuzz::frames(data));
//! ```

mod calls;
mod captures;
mod dissect;
mod features;
mod frames;
mod hpack;
mod http1;
mod mutate;
mod operations;
mod protobuf;
mod texts;
mod tls;
mod transcode;
mod web;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::random::Random;
use features::{Features, INPUT_LEN_MAX, feature};

/// Frames, from a client or from a server; see [`run`].
pub fn frames(data: &[u8]) {
    frames::target(data);
}

/// gRPC's calls, from a client to a server or back.
pub fn calls(data: &[u8]) {
    calls::target(data);
}

/// TLS's handshakes and records, from a client or from a server.
pub fn tls(data: &[u8]) {
    tls::target(data);
}

/// HPACK blocks and changes of the table's size.
pub fn hpack(data: &[u8]) {
    hpack::target(data);
}

/// Protobuf bytes taken apart and put together again, and texts that are to be bytes.
pub fn dissect(data: &[u8]) {
    dissect::target(data);
}

/// What two owners do with their connections: a world of [`crate::http2`] that is played by `data`.
pub fn operations(data: &[u8]) {
    operations::target(data);
}

/// A message of one of some random Protobuf schemas, decoded and encoded by three implementations.
pub fn protobuf(data: &[u8]) {
    protobuf::target(data);
}

/// Protobuf descriptors.
pub fn descriptors(data: &[u8]) {
    protobuf::descriptors(data);
}

/// Messages on the wire, in JSON and in MessagePack.
pub fn transcode(data: &[u8]) {
    transcode::target(data);
}

/// Requests of JSON by the annotations `google.api.http`.
pub fn web_requests(data: &[u8]) {
    web::requests(data);
}

/// Messages in envelopes, as Connect and gRPC-Web have them.
pub fn web_envelopes(data: &[u8]) {
    web::envelopes(data);
}

/// The query of a unary call of Connect's by GET.
pub fn connect_get(data: &[u8]) {
    web::connect_get(data);
}

/// Messages in MessagePack.
pub fn msgpack(data: &[u8]) {
    transcode::msgpack(data);
}

/// Messages in Protobuf's text format.
pub fn text_format(data: &[u8]) {
    texts::text_format(data);
}

/// JSON, and the paths of the fields in it.
pub fn field_paths(data: &[u8]) {
    texts::field_paths(data);
}

/// The text of a `.proto` file.
pub fn sources(data: &[u8]) {
    texts::sources(data);
}

/// A packet capture.
pub fn captures(data: &[u8]) {
    captures::target(data);
}

/// A connection of HTTP/1.1, from a client.
pub fn http1(data: &[u8]) {
    http1::target(data);
}

/// What is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    name: &'static str,
    /// Returns what was remarkable.
    entry: fn(&[u8]) -> Features,
    corpus: fn() -> Vec<Vec<u8>>,
    mutate: fn(&mut Random, &mut Vec<u8>, &[Vec<u8>]),
}

impl Target {
    /// [`frames`]
    pub const FRAMES: Target =
        Target { name: "frames", entry: frames::target, corpus: frames::corpus, mutate: mutate::frames };
    /// [`calls`]
    pub const CALLS: Target =
        Target { name: "calls", entry: calls::target, corpus: calls::corpus, mutate: mutate::frames };
    /// [`tls`]
    pub const TLS: Target =
        Target { name: "tls", entry: tls::target, corpus: tls::corpus, mutate: mutate::records };
    /// [`hpack`]
    pub const HPACK: Target =
        Target { name: "hpack", entry: hpack::target, corpus: hpack::corpus, mutate: mutate::bytes };
    /// [`dissect`]
    pub const DISSECT: Target =
        Target { name: "dissect", entry: dissect::target, corpus: dissect::corpus, mutate: mutate::bytes };
    /// [`operations`]
    pub const OPERATIONS: Target = Target {
        name: "operations",
        entry: operations::target,
        corpus: operations::corpus,
        mutate: mutate::bytes,
    };
    /// [`protobuf`](protobuf())
    pub const PROTOBUF: Target =
        Target { name: "protobuf", entry: protobuf::target, corpus: protobuf::corpus, mutate: mutate::bytes };
    /// [`descriptors`](descriptors())
    pub const DESCRIPTORS: Target = Target {
        name: "descriptors",
        entry: protobuf::descriptors,
        corpus: protobuf::descriptor_corpus,
        mutate: mutate::bytes,
    };
    /// [`transcode`](transcode())
    pub const TRANSCODE: Target = Target {
        name: "transcode",
        entry: transcode::target,
        corpus: transcode::corpus,
        mutate: mutate::bytes,
    };
    /// [`web_requests`]
    pub const WEB_REQUESTS: Target = Target {
        name: "web_requests",
        entry: web::requests,
        corpus: web::requests_corpus,
        mutate: mutate::bytes,
    };
    /// [`web_envelopes`]
    pub const WEB_ENVELOPES: Target = Target {
        name: "web_envelopes",
        entry: web::envelopes,
        corpus: web::envelopes_corpus,
        mutate: mutate::bytes,
    };
    /// [`http1`](http1())
    pub const HTTP1: Target =
        Target { name: "http1", entry: http1::target, corpus: http1::corpus, mutate: mutate::bytes };
    /// [`connect_get`]
    pub const CONNECT_GET: Target = Target {
        name: "connect_get",
        entry: web::connect_get,
        corpus: web::connect_get_corpus,
        mutate: mutate::bytes,
    };
    /// [`msgpack`]
    pub const MSGPACK: Target = Target {
        name: "msgpack",
        entry: transcode::msgpack,
        corpus: transcode::msgpack_corpus,
        mutate: mutate::bytes,
    };
    /// [`text_format`]
    pub const TEXT_FORMAT: Target = Target {
        name: "text_format",
        entry: texts::text_format,
        corpus: texts::text_format_corpus,
        mutate: mutate::bytes,
    };
    /// [`field_paths`]
    pub const FIELD_PATHS: Target = Target {
        name: "field_paths",
        entry: texts::field_paths,
        corpus: texts::field_paths_corpus,
        mutate: mutate::bytes,
    };
    /// [`captures`]
    pub const CAPTURES: Target =
        Target { name: "captures", entry: captures::target, corpus: captures::corpus, mutate: mutate::bytes };
    /// [`sources`]
    pub const SOURCES: Target = Target {
        name: "sources",
        entry: texts::sources,
        corpus: texts::sources_corpus,
        mutate: mutate::bytes,
    };
}

/// Changes to one input, at most.
const MUTATIONS_MAX: usize = 6;

/// Runs `target` with its corpus and `iterations` inputs made from it. The environment may say otherwise:
///
/// - `THALWEG_FUZZ_ITERATIONS=n` runs so many;
/// - `THALWEG_FUZZ_SECONDS=n` runs for so long, instead;
/// - `THALWEG_FUZZ_SEED=n` makes other inputs;
/// - `THALWEG_FUZZ_INPUT=FILE` runs only the input in the file.
///
/// # Panics
///
/// When an input makes the target panic: the input is kept in a file, and the command that replays it is printed.
pub fn run(target: Target, iterations: u64) {
    if let Ok(path) = std::env::var("THALWEG_FUZZ_INPUT") {
        let input = std::fs::read(&path).unwrap_or_else(|error| panic!("can't read {path}: {error}"));
        (target.entry)(&input);
        return;
    }
    let number = |name| std::env::var(name).ok().map(|value| value.parse().expect("a number"));
    let iterations = number("THALWEG_FUZZ_ITERATIONS").unwrap_or(iterations);
    let mut random = Random::new(number("THALWEG_FUZZ_SEED").unwrap_or(0));
    let mut corpus = (target.corpus)();
    let (recorded, mut seen) = (corpus.len(), Features::new());
    for input in &corpus {
        seen.extend(execute(target, input));
    }
    let until = number("THALWEG_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut iteration = 0;
    while until.map_or(iteration < iterations, |until| Instant::now() < until) {
        iteration += 1;
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..random.between(1, MUTATIONS_MAX) {
            (target.mutate)(&mut random, &mut input, &corpus);
        }
        input.truncate(INPUT_LEN_MAX);
        let features = execute(target, &input);
        if !features.is_subset(&seen) {
            seen.extend(features);
            corpus.push(input);
        }
    }
    let (name, found) = (target.name, corpus.len() - recorded);
    println!(
        "{name}: {iteration} inputs from {recorded} recorded, {found} did something new, {} features",
        seen.len()
    );
}

fn execute(target: Target, input: &[u8]) -> Features {
    catch_unwind(AssertUnwindSafe(|| (target.entry)(input))).unwrap_or_else(|panic| {
        let name = target.name;
        let path = std::env::temp_dir().join(format!("thalweg-fuzz-{name}-{:016x}", feature(input)));
        match std::fs::write(&path, input) {
            Ok(()) => eprintln!(
                "{name} failed; to replay it:\n    \
                 THALWEG_FUZZ_INPUT={} cargo test -p thalweg-sim --test it fuzz::{name}",
                path.display()
            ),
            Err(error) => {
                eprintln!("{name} failed with {input:02x?}; can't keep that in {}: {error}", path.display());
            }
        }
        resume_unwind(panic)
    })
}
