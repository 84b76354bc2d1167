//! Fuzzing on stable Rust, for a bounded time, as a test.
//!
//! A [`Target`] accepts any bytes and panics if an invariant is violated. [`run`] starts from recorded connections and
//! changes them frame by frame. It keeps inputs with new behaviour: a new error, or a new pair of consecutive events.
//!
//! [`frames`], [`calls`], [`tls`](tls()), [`hpack`], [`operations`], [`dissect`], [`transcode`], [`web_requests`],
//! [`web_envelopes`], [`http1`](http1()), [`connect_get`], [`msgpack`], [`text_format`], [`field_paths`] and
//! [`sources`] also work with libFuzzer on a nightly toolchain:
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

/// Fuzzes frames, from a client or from a server; see [`run`].
pub fn frames(data: &[u8]) {
    frames::target(data);
}

/// Fuzzes gRPC calls, from a client to a server or back.
pub fn calls(data: &[u8]) {
    calls::target(data);
}

/// Fuzzes TLS handshakes and records, from a client or from a server.
pub fn tls(data: &[u8]) {
    tls::target(data);
}

/// Fuzzes HPACK blocks and changes of the table size.
pub fn hpack(data: &[u8]) {
    hpack::target(data);
}

/// Fuzzes dissecting and reassembling Protobuf messages, and assembling text.
pub fn dissect(data: &[u8]) {
    dissect::target(data);
}

/// Fuzzes the actions of two connections' drivers: a world of [`crate::http2`] controlled by `data`.
pub fn operations(data: &[u8]) {
    operations::target(data);
}

/// Fuzzes decoding and encoding a message of a random Protobuf schema, by three implementations.
pub fn protobuf(data: &[u8]) {
    protobuf::target(data);
}

/// Fuzzes Protobuf descriptors.
pub fn descriptors(data: &[u8]) {
    protobuf::descriptors(data);
}

/// Fuzzes messages in wire format, JSON and MessagePack.
pub fn transcode(data: &[u8]) {
    transcode::target(data);
}

/// Fuzzes JSON requests according to `google.api.http` annotations.
pub fn web_requests(data: &[u8]) {
    web::requests(data);
}

/// Fuzzes messages in envelopes of Connect and gRPC-Web.
pub fn web_envelopes(data: &[u8]) {
    web::envelopes(data);
}

/// Fuzzes the query of a unary Connect call by GET.
pub fn connect_get(data: &[u8]) {
    web::connect_get(data);
}

/// Fuzzes messages in MessagePack.
pub fn msgpack(data: &[u8]) {
    transcode::msgpack(data);
}

/// Fuzzes messages in Protobuf's text format.
pub fn text_format(data: &[u8]) {
    texts::text_format(data);
}

/// Fuzzes JSON and the paths of its fields.
pub fn field_paths(data: &[u8]) {
    texts::field_paths(data);
}

/// Fuzzes the text of a `.proto` file.
pub fn sources(data: &[u8]) {
    texts::sources(data);
}

/// Fuzzes a packet capture.
pub fn captures(data: &[u8]) {
    captures::target(data);
}

/// Fuzzes an HTTP/1.1 connection, from a client.
pub fn http1(data: &[u8]) {
    http1::target(data);
}

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    name: &'static str,
    /// Returns the features of a run.
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

/// Maximum number of changes to an input.
const MUTATIONS_MAX: usize = 6;

/// Runs `target` with its corpus and `iterations` inputs derived from it. Environment variables override this:
///
/// - `THALWEG_FUZZ_ITERATIONS=n` sets the number of iterations;
/// - `THALWEG_FUZZ_SECONDS=n` sets a duration instead;
/// - `THALWEG_FUZZ_SEED=n` creates other inputs;
/// - `THALWEG_FUZZ_INPUT=FILE` runs only the input in the file.
///
/// # Panics
///
/// If an input makes the target panic. The input is saved to a file, and the command that replays it is printed.
pub fn run(target: Target, iterations: u64) {
    if let Ok(path) = std::env::var("THALWEG_FUZZ_INPUT") {
        let input = std::fs::read(&path).unwrap_or_else(|error| panic!("failed to read {path}: {error}"));
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
                eprintln!(
                    "{name} failed with {input:02x?}; failed to save it in {}: {error}",
                    path.display()
                );
            }
        }
        resume_unwind(panic)
    })
}
