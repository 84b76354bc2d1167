//! Servers that misbehave (`xtask/suites/python/misbehaving_server.py`), and what our client makes of them: either the
//! calls succeed all the same, or there is one clear line and exit code 1. It never hangs.

use crate::job::{Failure, Job, Log};
use crate::peers::measure;
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// One misbehaviour, what is driven against it and what must come of it.
struct Case {
    name: &'static str,
    /// Flags of `thalweg load`.
    load: &'static str,
    expected: Expected,
}

enum Expected {
    /// All calls succeed.
    Success,
    /// Exit code 1, and one of these in what it says, whatever the case.
    Failure(&'static [&'static str]),
}

use Expected::{Failure as Fails, Success};

const CASES: &[Case] = &[
    Case { name: "goaway", load: "-n 5 -c 1", expected: Success },
    // gRPC over HTTP/2, "Errors": RST_STREAM with NO_ERROR before the status is INTERNAL.
    Case { name: "rst_after_header", load: "-n 2 -c 1", expected: Fails(&["internal"]) },
    Case { name: "rst_during_data", load: "-n 2 -c 1 --size 1000", expected: Fails(&["internal"]) },
    Case { name: "rst_after_data", load: "-n 2 -c 1 --size 1000", expected: Fails(&["internal"]) },
    Case { name: "ping", load: "-n 20 -c 1 --size 1000", expected: Success },
    Case { name: "max_streams", load: "-n 30 -c 15", expected: Success },
    Case { name: "data_frame_padding", load: "-n 2 -c 1 --size 50000", expected: Success },
    Case { name: "no_trailers", load: "-n 2 -c 1", expected: Fails(&["unknown", "internal"]) },
    Case { name: "not_grpc", load: "-n 2 -c 1", expected: Fails(&["unavailable"]) },
    Case {
        name: "message_too_long",
        load: "-n 2 -c 1",
        expected: Fails(&["resource_exhausted", "resourceexhausted"]),
    },
    Case { name: "http1", load: "-z 1s -c 1", expected: Fails(&["http/1"]) },
    Case { name: "tls", load: "-z 1s -c 1", expected: Fails(&["tls"]) },
    Case { name: "garbage", load: "-z 1s -c 1", expected: Fails(&["http/2"]) },
    Case { name: "closes", load: "-z 1s -c 1", expected: Fails(&["127.0.0.1"]) },
    Case { name: "silent", load: "-z 1s -c 1", expected: Fails(&["127.0.0.1"]) },
    Case { name: "silent_calls", load: "-z 1s -c 1", expected: Fails(&["127.0.0.1"]) },
];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let python = tools::python(log)?;
    let thalweg = rust::command(log)?;
    let mut wrong = Vec::new();
    for case in CASES {
        if let Err(failure) = run_case(case, Job::new(&python), Job::new(&thalweg), log) {
            log.line(format_args!("FAILED: {}: {failure}", case.name))?;
            wrong.push(case.name);
        }
    }
    match wrong.len() {
        0 => Ok(format!("{} misbehaving servers", CASES.len())),
        _ => Err(Failure::failed(format!("{} of {} cases: {}", wrong.len(), CASES.len(), wrong.join(", ")))),
    }
}

fn run_case(case: &Case, python: Job, thalweg: Job, log: &Log) -> Result<(), Failure> {
    let port = free_port()?;
    let script = workspace::suites().join("python/misbehaving_server.py");
    let server = Server::start(&python.arg(script).arg(case.name).arg(port.to_string()), port, log)?;
    // The driver is told to give up after 3 s: what takes several times that hangs.
    let words = format!("peer load 127.0.0.1:{port} --warmup 0s --timeout 3s {}", case.load);
    let load = thalweg.words(&words).seconds(20);
    match case.expected {
        Success => {
            measure(load, log)?;
        }
        Fails(words) => fails(&load, words, log)?,
    }
    let behaved = server.stop()?;
    if behaved.success() {
        Ok(())
    } else {
        Err(Failure::failed("the server was not content with the client"))
    }
}

/// The run must end with exit code 1 and say one of `words`.
fn fails(load: &Job, words: &[&str], log: &Log) -> Result<(), Failure> {
    let output = load.output(log)?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).to_lowercase();
    match output.status.code() {
        Some(1) if words.iter().any(|word| said.contains(word)) => Ok(()),
        Some(1) => Err(Failure::failed(format!("the message holds none of {}", words.join(", ")))),
        code => Err(Failure::failed(format!("exit code {code:?}, expected 1"))),
    }
}
