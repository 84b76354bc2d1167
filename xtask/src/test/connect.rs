//! Connect's conformance suite, for its three protocols: gRPC, gRPC-Web and Connect.

use super::rust;
use crate::failure::{Result, verdict};
use crate::job::Job;
use crate::{tools, workspace};

/// Number of cases for the features in `suites/connect`; fewer would mean that something was not run.
const SERVER_CASES: u32 = 9_022;
const CLIENT_CASES: u32 = 10_524;
/// The server's response encodings; each run of it uses one.
const RESPONSE_ENCODINGS: &[&str] = &["gzip", "br"];

/// Runs the server against the suite's clients and grpc-go's, and the client against the suite's servers and grpc-go's.
pub(super) fn check() -> Result<String> {
    let suite = tools::connect_conformance()?;
    let side = |side: &str, arguments: &str, cases: u32| {
        let features = workspace::suites().join(format!("connect/{side}.yaml"));
        let job = Job::new(&suite.runner).words(&format!("--mode {side} --conf")).arg(features).arg("--");
        let job = job.arg(rust::example(&format!("connect_{side}"))?).arg(&suite.protos).words(arguments);
        let captured = job.minutes(10).output()?;
        check_counts(captured.status.success(), &captured.all(), cases)
    };
    let mut summaries = Vec::new();
    for encoding in RESPONSE_ENCODINGS {
        summaries.push(format!("server with {encoding}: {}", side("server", encoding, SERVER_CASES)?));
    }
    summaries.push(format!("client: {}", side("client", "", CLIENT_CASES)?));
    Ok(summaries.join("; "))
}

/// The suite's summary, which must report `cases` cases.
fn check_counts(is_success: bool, text: &str, cases: u32) -> Result<String> {
    let (ran, passed) = counts_in(text).ok_or_else(|| failed!("the suite printed no result"))?;
    verdict(is_success && passed == ran && ran == cases, format!("{passed} of {cases} cases"))
}

/// Reads `Total cases: 5094` and `5090 passed, 4 failed`.
fn counts_in(text: &str) -> Option<(u32, u32)> {
    let ran = text.lines().find_map(|line| line.strip_prefix("Total cases: "))?;
    let passed = text.lines().find_map(|line| Some(line.split_once(" passed, ")?.0))?;
    Some((ran.trim().parse().ok()?, passed.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_summary_is_parsed() {
        let check = |is_success, text: &str, expected: Result<&str, ()>| {
            let verdict = check_counts(is_success, text, 12);
            assert_eq!(verdict.as_deref().map_err(|_| ()), expected, "{text}");
        };
        check(true, "Total cases: 12\n12 passed, 0 failed\n", Ok("12 of 12 cases"));
        check(false, "Total cases: 12\n12 passed, 0 failed\n", Err(()));
        check(false, "FAILED: Basic/x:\n\tno\nTotal cases: 12\n10 passed, 2 failed\n", Err(()));
        check(true, "Total cases: 12\n10 passed, 2 failed\n", Err(()));
        check(true, "Total cases: 11\n11 passed, 0 failed\n", Err(()));
        check(true, "Total cases: 0\n0 passed, 0 failed\n", Err(()));
        check(true, "", Err(()));
    }
}
