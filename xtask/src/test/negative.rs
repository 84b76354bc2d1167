//! Servers that misbehave (`xtask/suites/python/misbehaving_server.py`), and what our client makes of them: either the
//! calls succeed all the same, or there is one clear line and exit code 1. It never hangs.

use super::cases::Cases;
use super::rust;
use crate::failure::Result;
use crate::job::Job;
use crate::peers::measure;
use crate::server::Server;
use crate::{tools, workspace};

/// Misbehaviours, flags of `thalweg load` that is driven against each, and what must come of it: success of all calls
/// where there is no word; else exit code 1, and one of these words in what it says, whatever the case.
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
        // The driver is told to give up after 3 s: what takes several times that hangs.
        let load = format!("peer load {} --warmup 0s --timeout 3s {flags}", server.address());
        let outcome = is_expected(Job::new(&thalweg).words(&load).seconds(20), words);
        // It ends badly if it was not content with the client.
        cases.count(name, outcome.and_then(|()| server.stop_well()))?;
    }
    cases.verdict("misbehaving servers")
}

fn is_expected(load: Job, words: &[&str]) -> Result<()> {
    if words.is_empty() {
        return measure(load).map(drop);
    }
    let said = load.output()?;
    ensure!(said.status.code() == Some(1), "exit code {:?}, expected 1", said.status.code());
    let text = said.all().to_lowercase();
    ensure!(words.iter().any(|word| text.contains(word)), "the message holds none of {}", words.join(", "));
    Ok(())
}
