//! `deploy/ray/thalweg_ray.py` on a cluster of two nodes on this machine.

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// As many as `xtask/suites/ray/two_nodes.py` has.
const CASES: usize = 25;

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let thalweg = rust::command(log)?;
    let python = tools::ray(log)?;
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let serve = Job::new(&thalweg).words(&format!("serve --threads 1 --listen {address}"));
    let server = Server::start(&serve, port, log)?;
    let suite = Job::new(python).arg(workspace::suites().join("ray/two_nodes.py")).arg(thalweg).arg(&address);
    let output = suite.minutes(5).output(log)?;
    server.stop()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let held = said.lines().filter(|line| line.starts_with("ok ")).count();
    let account = format!("Ray, two nodes: {held} of {CASES} cases");
    if output.status.success() && held == CASES { Ok(account) } else { Err(Failure::failed(account)) }
}
