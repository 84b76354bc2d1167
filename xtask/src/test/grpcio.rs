//! gRPC's C core (PyPI's grpcio) both ways: the four call types with messages from nothing to 4 MiB, plain and
//! compressed. grpclib, on hyper-h2, as a server.

use crate::job::{Failure, Job, Log};
use crate::peers::measure;
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

const CALLS: &[&str] = &["unary", "client-stream", "server-stream", "bidi-stream"];
/// As in `xtask/suites/python/sizes.py`.
const SIZES: &[usize] = &[0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_500_000, 4 << 20];

/// Sizes of messages for grpclib, which is slow.
const GRPCLIB_SIZES: &[usize] = &[0, 65_536, 1_500_000];

/// What grpcio compresses with.
const ENCODINGS: &[&str] = &["gzip", "deflate"];
/// Of the program that calls grpcio's server with compressed messages.
const COMPRESSED_SIZES: usize = 8;

/// grpcio's client against `thalweg serve`, and against a server that compresses.
pub(super) fn server(log: &Log) -> Result<String, Failure> {
    let python = tools::python(log)?;
    let client = Job::new(python).arg(workspace::suites().join("python/grpcio_client.py"));
    let check = |port: u16, serve: &Job, encoding: Option<&str>| {
        let server = Server::start(serve, port, log)?;
        let client = client.clone().arg(format!("127.0.0.1:{port}")).words(encoding.unwrap_or_default());
        let output = client.minutes(5).output(log)?;
        server.stop()?;
        let passed = passed(&output.stdout);
        if output.status.success() { Ok(passed) } else { Err(Failure::failed(format!("{passed} passed"))) }
    };
    let port = free_port()?;
    let serve = Job::new(rust::command(log)?).words(&format!("serve --listen 127.0.0.1:{port}"));
    let mut all = check(port, &serve, None)?;
    let program = rust::example("compressed", log)?;
    for encoding in ENCODINGS {
        let port = free_port()?;
        let serve = Job::new(&program).words(&format!("server {port} {encoding}"));
        all += check(port, &serve, Some(encoding))?;
    }
    verdict(all, CALLS.len() * SIZES.len() * (1 + ENCODINGS.len()))
}

fn passed(output: &[u8]) -> usize {
    String::from_utf8_lossy(output).lines().filter(|line| line.starts_with("ok ")).count()
}

/// `thalweg peer load` against the servers of grpcio and grpclib, a client that compresses against one that does, too,
/// and one that drops its channel while a stream runs.
pub(super) fn client(log: &Log) -> Result<String, Failure> {
    let python = tools::python(log)?;
    let thalweg = rust::command(log)?;
    let port = free_port()?;
    let script = workspace::suites().join("python/grpcio_server.py");
    let serve = |port: u16| Job::new(&python).arg(&script).arg(port.to_string());
    let load = |port: u16, sizes: &[usize]| -> Result<usize, Failure> {
        let mut passed = 0;
        for call in CALLS {
            for size in sizes {
                let words =
                    format!("peer load 127.0.0.1:{port} --call {call} --size {size} -n 20 -c 2 --warmup 0s");
                match measure(Job::new(&thalweg).words(&words).seconds(60), log) {
                    Ok(_) => passed += 1,
                    Err(failure) => log.line(format_args!("FAIL  {call} {size}: {failure}"))?,
                }
            }
        }
        Ok(passed)
    };
    let server = Server::start(&serve(port), port, log)?;
    let mut passed = load(port, SIZES)?;
    server.stop()?;
    let port = free_port()?;
    let grpclib = Job::new(&python).arg(workspace::suites().join("python/grpclib_server.py"));
    let server = Server::start(&grpclib.arg(port.to_string()), port, log)?;
    passed += load(port, GRPCLIB_SIZES)?;
    let dropped = Job::new(rust::example("dropped", log)?).arg(port.to_string());
    passed += self::passed(&dropped.minutes(1).output(log)?.stdout);
    server.stop()?;
    let program = rust::example("compressed", log)?;
    for encoding in ENCODINGS {
        let port = free_port()?;
        let server = Server::start(&serve(port).words(encoding), port, log)?;
        let client = Job::new(&program).words(&format!("client {port} {encoding}"));
        passed += self::passed(&client.minutes(2).output(log)?.stdout);
        server.stop()?;
    }
    let loads = CALLS.len() * (SIZES.len() + GRPCLIB_SIZES.len());
    verdict(passed, loads + 1 + COMPRESSED_SIZES * ENCODINGS.len())
}

fn verdict(passed: usize, expected: usize) -> Result<String, Failure> {
    let account = format!("{passed} of {expected}: call types × sizes, plain, by gzip and by deflate");
    if passed == expected { Ok(account) } else { Err(Failure::failed(account)) }
}
