//! A bounded run of each fuzz target; `THALWEG_FUZZ_ITERATIONS` sets the number of iterations.

use thalweg_sim::fuzz::{Target, run};

#[test]
fn frames() {
    run(Target::FRAMES, 30_000);
}

#[test]
fn calls() {
    run(Target::CALLS, 3000);
}

#[test]
fn tls() {
    run(Target::TLS, 3000);
}

#[test]
fn hpack() {
    run(Target::HPACK, 50_000);
}

#[test]
fn protobuf() {
    run(Target::PROTOBUF, 50_000);
}

#[test]
fn descriptors() {
    run(Target::DESCRIPTORS, 50_000);
}

#[test]
fn operations() {
    run(Target::OPERATIONS, 1000);
}

#[test]
fn transcode() {
    run(Target::TRANSCODE, 100_000);
}

#[test]
fn dissect() {
    run(Target::DISSECT, 30_000);
}

#[test]
fn http1() {
    run(Target::HTTP1, 10_000);
}

#[test]
fn web_requests() {
    run(Target::WEB_REQUESTS, 30_000);
}

#[test]
fn web_envelopes() {
    run(Target::WEB_ENVELOPES, 20_000);
}

#[test]
fn connect_get() {
    run(Target::CONNECT_GET, 30_000);
}

#[test]
fn msgpack() {
    run(Target::MSGPACK, 30_000);
}

#[test]
fn text_format() {
    run(Target::TEXT_FORMAT, 30_000);
}

#[test]
fn field_paths() {
    run(Target::FIELD_PATHS, 30_000);
}

#[test]
fn sources() {
    run(Target::SOURCES, 3000);
}

#[test]
fn captures() {
    run(Target::CAPTURES, 5000);
}
