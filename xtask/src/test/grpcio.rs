//! gRPC's C core (PyPI's grpcio) in both directions: the four call types with messages from 0 bytes to 4 MiB, plain and
//! compressed. grpclib, on hyper-h2, as a server.

use super::rust;
use crate::failure::{Failure, Result, verdict};
use crate::job::Job;
use crate::peers::measure;
use crate::server::Server;
use crate::{log, tools, workspace};

const CALLS: &[&str] = &["unary", "client-stream", "server-stream", "bidi-stream"];
/// Same as in `xtask/suites/python/sizes.py`.
const SIZES: &[usize] = &[0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_500_000, 4 << 20];

/// Message sizes for grpclib, which is slow.
const GRPCLIB_SIZES: &[usize] = &[0, 65_536, 1_500_000];

/// Encodings that grpcio supports.
const ENCODINGS: &[&str] = &["gzip", "deflate"];
/// Number of sizes of the program that calls grpcio's server with compressed messages.
const COMPRESSED_SIZES: usize = 8;

/// grpcio's client against `thalweg serve` and against a compressing server.
pub(super) fn server() -> Result<String> {
    let client = Job::new(tools::python()?).arg(workspace::suites().join("python/grpcio_client.py"));
    let passed = |server: Server, encoding: &str| {
        let captured = client.clone().arg(server.address()).words(encoding).minutes(5).output()?;
        server.stop()?;
        ensure!(captured.status.success(), "{encoding}: {} passed", captured.count("ok "));
        Ok(captured.count("ok "))
    };
    let mut all = passed(rust::serve("")?, "")?;
    let program = rust::example("compressed")?;
    for encoding in ENCODINGS {
        let serve = |port| Job::new(&program).words(&format!("server {port} {encoding}"));
        all += passed(Server::start(serve)?, encoding)?;
    }
    check_counts(all, CALLS.len() * SIZES.len() * (1 + ENCODINGS.len()))
}

/// `thalweg peer load` against the servers of grpcio and grpclib. Also a compressing client against a compressing
/// server, and a client that drops its channel during a stream.
pub(super) fn client() -> Result<String> {
    let (python, thalweg) = (tools::python()?, rust::command()?);
    let serve = |script: &str, encoding: &str| {
        let script = workspace::suites().join("python").join(script);
        Server::start(|port| Job::new(&python).arg(script).arg(port.to_string()).words(encoding))
    };
    let load = |server: &Server, sizes: &[usize]| {
        let mut passed = 0;
        for (call, size) in CALLS.iter().flat_map(|call| sizes.iter().map(move |size| (call, size))) {
            let flags = format!("--call {call} --size {size} -n 20 -c 2 --warmup 0s");
            let job = Job::new(&thalweg).words(&format!("peer load {} {flags}", server.address()));
            match measure(job.seconds(60)) {
                Ok(_) => passed += 1,
                Err(failure) => log::line(format_args!("FAIL  {flags}: {failure}"))?,
            }
        }
        Ok::<usize, Failure>(passed)
    };
    let server = serve("grpcio_server.py", "")?;
    let mut passed = load(&server, SIZES)?;
    server.stop()?;
    let server = serve("grpclib_server.py", "")?;
    passed += load(&server, GRPCLIB_SIZES)?;
    let dropped = Job::new(rust::example("dropped")?).arg(server.port().to_string());
    passed += dropped.minutes(1).output()?.count("ok ");
    server.stop()?;
    let program = rust::example("compressed")?;
    for encoding in ENCODINGS {
        let server = serve("grpcio_server.py", encoding)?;
        let client = Job::new(&program).words(&format!("client {} {encoding}", server.port()));
        passed += client.minutes(2).output()?.count("ok ");
        server.stop()?;
    }
    let loads = CALLS.len() * (SIZES.len() + GRPCLIB_SIZES.len());
    check_counts(passed, loads + 1 + COMPRESSED_SIZES * ENCODINGS.len())
}

fn check_counts(passed: usize, expected: usize) -> Result<String> {
    let summary = format!("{passed} of {expected}: call types × sizes, plain, by gzip and by deflate");
    verdict(passed == expected, summary)
}
