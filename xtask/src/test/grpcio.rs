//! gRPC's C core (PyPI's grpcio) both ways: the four call types with messages from nothing to 4 MiB.

use crate::job::{Failure, Job, Log};
use crate::peers::measure;
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

const CALLS: &[&str] = &["unary", "client-stream", "server-stream", "bidi-stream"];
/// As in `xtask/suites/python/sizes.py`.
const SIZES: &[usize] = &[0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_500_000, 4 << 20];

/// grpcio's client against `thalweg serve`.
pub(super) fn server(log: &Log) -> Result<String, Failure> {
    let python = tools::python(log)?;
    let port = free_port()?;
    let serve = Job::new(rust::thalweg(log)?).words(&format!("serve --listen 127.0.0.1:{port}"));
    let server = Server::start(&serve, port, log)?;
    let client = Job::new(python).arg(workspace::suites().join("python/grpcio_client.py"));
    let output = client.arg(format!("127.0.0.1:{port}")).minutes(5).output(log)?;
    server.stop()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = text.lines().filter(|line| line.starts_with("ok ")).count();
    verdict(passed, output.status.success())
}

/// `thalweg load` against grpcio's server.
pub(super) fn client(log: &Log) -> Result<String, Failure> {
    let python = tools::python(log)?;
    let thalweg = rust::thalweg(log)?;
    let port = free_port()?;
    let serve =
        Job::new(python).arg(workspace::suites().join("python/grpcio_server.py")).arg(port.to_string());
    let server = Server::start(&serve, port, log)?;
    let mut passed = 0;
    for call in CALLS {
        for size in SIZES {
            let words = format!("load 127.0.0.1:{port} --call {call} --size {size} -n 20 -c 2 --warmup 0s");
            match measure(Job::new(&thalweg).words(&words).seconds(60), log) {
                Ok(_) => passed += 1,
                Err(failure) => log.line(format_args!("FAIL  {call} {size}: {failure}"))?,
            }
        }
    }
    server.stop()?;
    verdict(passed, true)
}

fn verdict(passed: usize, succeeded: bool) -> Result<String, Failure> {
    let expected = CALLS.len() * SIZES.len();
    let account = format!("{passed} of {expected}: 4 call types × {} sizes", SIZES.len());
    if passed == expected && succeeded { Ok(account) } else { Err(Failure::failed(account)) }
}
