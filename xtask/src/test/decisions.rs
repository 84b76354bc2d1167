//! Our client's decisions beside those of grpc-go's: attempts, status, retries, throttling, picks, and which service
//! configs it accepts. A scripted server (`xtask/suites/decisions`) has both experience the same. Then each stack's
//! client balances by the load that the other's servers report.

use super::rust;
use crate::failure::Result;
use crate::job::Job;
use crate::{tools, workspace};

pub(super) fn check() -> Result<String> {
    let program = tools::go_program("decisions", ".", "decisions")?;
    let cases = workspace::suites().join("decisions/cases.json");
    let captured = Job::new(program).arg(cases).arg(rust::example("decisions")?).minutes(5).output()?;
    let [same, differs, failed] = ["ok ", "differs ", "FAIL "].map(|start| captured.count(start));
    ensure!(captured.status.success(), "{failed} cases failed: {}", captured.err.trim());
    ensure!(same > 0, "no case ran");
    Ok(format!("{same} cases as grpc-go, {differs} otherwise with a reason"))
}
