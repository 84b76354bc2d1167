//! `deploy/ray/thalweg_ray.py` on a cluster of two nodes on this machine.

use crate::failure::{Result, verdict};
use crate::job::Job;
use crate::test::rust;
use crate::{tools, workspace};

/// Number of cases in `xtask/suites/ray/two_nodes.py`.
const CASES: usize = 25;

pub(super) fn check() -> Result<String> {
    let python = tools::ray()?;
    let server = rust::serve("--threads 1")?;
    let suite = Job::new(python).arg(workspace::suites().join("ray/two_nodes.py")).arg(rust::command()?);
    let captured = suite.arg(server.address()).minutes(5).output()?;
    server.stop()?;
    let passed = captured.count("ok ");
    let summary = format!("Ray, two nodes: {passed} of {CASES} cases");
    verdict(captured.status.success() && passed == CASES, summary)
}
