//! The services of `crates/services`, asked by other people's clients: grpcurl by reflection, and gRPC's own health and
//! reflection clients for Python.

use super::cases::{Cases, is_said};
use super::rust;
use crate::failure::{Result, verdict};
use crate::files::{self, list, text};
use crate::job::Job;
use crate::{tools, workspace};

/// As many as `xtask/suites/python/grpcio_services.py` has.
const GRPCIO_CASES: usize = 7;

/// Runs of grpcurl against `thalweg serve`, without any .proto file: flags before the address and words behind it. Its
/// exit code is 64 and the status code where a call fails, 1 where there is no such symbol.
pub(super) fn check() -> Result<String> {
    let (grpcurl, python) = (tools::GRPCURL.get()?, tools::python()?);
    let server = rust::serve("")?;
    let mut cases = Cases::default();
    for case in list(&files::json(&workspace::suites().join("grpcurl.json"))?) {
        let job = Job::new(&grpcurl).arg("-plaintext").args(list(&case["flags"]).iter().map(text));
        let job = job.arg(server.address()).words(text(&case["words"])).seconds(30);
        cases.count(text(&case["words"]), is_said(case, &job.output()?))?;
    }
    // It tells the server to stop, and watches that.
    let client = Job::new(python).arg(workspace::suites().join("python/grpcio_services.py"));
    let client = client.arg(server.address()).arg(server.process_id().to_string()).seconds(60).output()?;
    server.stop_well()?;
    let passed = client.count("ok ");
    let account = format!("grpcurl: {}; grpcio: {passed} of {GRPCIO_CASES}", cases.account("cases"));
    verdict(cases.is_well() && passed == GRPCIO_CASES && client.status.success(), account)
}
