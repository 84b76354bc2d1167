//! Our client against misbehaving servers (`xtask/suites/python/misbehaving_server.py`): either the calls succeed, or
//! the client prints one clear line and exits with code 1. It never hangs.

use super::cases::Cases;
use super::rust;
use crate::failure::Result;
use crate::job::Job;
use crate::peers::measure;
use crate::server::Server;
use crate::{tools, workspace};

/// Misbehaviours, flags of `thalweg load`, and the expected result: without words, all calls succeed. Otherwise the
/// exit code is 1 and the output contains one of the words, in any case.
const CASES: &[(&str, &str, &[&str])] = &[
    ("goaway", "-n 5 -c 1", &[]),
    // gRPC over HTTP/2, "Errors": RST_STREAM with NO_ERROR before the status is INTERNAL.
    ("rst_after_header", "-n 2 -c 1", &["internal"]),
    ("rst_during_data", "-n 2 -c 1 --size 1000", &["internal"]),
    ("rst_after_data", "-n 2 -c 1 --size 1000", &["internal"]),
    ("ping", "-n 20 -c 1 --size 1000", &[]),
    ("max_streams", "-n 30 -c 15", &[]),
    ("data_frame_padding", "-n 2 -c 1 --size 50000", &[]),
    ("no_trailers", "-n 2 -c 1", &["unknown", "internal"]),
    ("not_grpc", "-n 2 -c 1", &["unavailable"]),
    ("message_too_long", "-n 2 -c 1", &["resource_exhausted", "resourceexhausted"]),
    ("http1", "-z 1s -c 1", &["http/1"]),
    ("tls", "-z 1s -c 1", &["tls"]),
    ("garbage", "-z 1s -c 1", &["http/2"]),
    ("closes", "-z 1s -c 1", &["127.0.0.1"]),
    ("silent", "-z 1s -c 1", &["127.0.0.1"]),
    ("silent_calls", "-z 1s -c 1", &["127.0.0.1"]),
];

pub(super) fn check() -> Result<String> {
    let (python, thalweg) = (tools::python()?, rust::command()?);
    let script = workspace::suites().join("python/misbehaving_server.py");
    let mut cases = Cases::default();
    for (name, flags, words) in CASES {
        let server = Server::start(|port| Job::new(&python).arg(&script).arg(name).arg(port.to_string()))?;
        // The driver gives up after 3 s; the limit of several times that detects a hang.
        let load = format!("peer load {} --warmup 0s --timeout 3s {flags}", server.address());
        let outcome = is_expected(Job::new(&thalweg).words(&load).seconds(20), words);
        // The server exits with failure if the client's reaction was wrong.
        cases.count(name, outcome.and_then(|()| server.stop_gracefully()))?;
    }
    cases.verdict("misbehaving servers")
}

fn is_expected(load: Job, words: &[&str]) -> Result<()> {
    if words.is_empty() {
        return measure(load).map(drop);
    }
    let captured = load.output()?;
    ensure!(captured.status.code() == Some(1), "exit code {:?}, expected 1", captured.status.code());
    let text = captured.all().to_lowercase();
    ensure!(words.iter().any(|word| text.contains(word)), "the message holds none of {}", words.join(", "));
    Ok(())
}
