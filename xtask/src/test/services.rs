//! The services of `crates/services` with third-party clients: grpcurl with reflection, and gRPC's own health and
//! reflection clients for Python.

use super::cases::{Cases, check_output};
use super::rust;
use crate::failure::{Result, verdict};
use crate::files::{self, list, text};
use crate::job::Job;
use crate::{tools, workspace};

/// Number of cases in `xtask/suites/python/grpcio_services.py`.
const GRPCIO_CASES: usize = 7;

/// Runs grpcurl without any .proto file against `thalweg serve`: flags before the address and words after it. Its exit
/// code is 64 plus the status code for a failed call, and 1 for an unknown symbol.
pub(super) fn check() -> Result<String> {
    let (grpcurl, python) = (tools::GRPCURL.get()?, tools::python()?);
    let server = rust::serve("")?;
    let mut cases = Cases::default();
    for case in list(&files::json(&workspace::suites().join("grpcurl.json"))?) {
        let job = Job::new(&grpcurl).arg("-plaintext").args(list(&case["flags"]).iter().map(text));
        let job = job.arg(server.address()).words(text(&case["words"])).seconds(30);
        cases.count(text(&case["words"]), check_output(case, &job.output()?))?;
    }
    // The client stops the server and observes the shutdown.
    let client = Job::new(python).arg(workspace::suites().join("python/grpcio_services.py"));
    let client = client.arg(server.address()).arg(server.process_id().to_string()).seconds(60).output()?;
    server.stop_gracefully()?;
    let passed = client.count("ok ");
    let summary = format!("grpcurl: {}; grpcio: {passed} of {GRPCIO_CASES}", cases.summary("cases"));
    verdict(cases.all_passed() && passed == GRPCIO_CASES && client.status.success(), summary)
}
