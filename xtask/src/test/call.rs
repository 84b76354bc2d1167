//! `thalweg call`, `thalweg load` of any method, and `thalweg compare` of two, at servers of other people: grpc-go's
//! examples, with reflection, without, and over TLS; services in the shape of tonic's examples on tonic; gRPC C++ with
//! its older reflection; and etcd by its protos.

mod case;
mod compare;
mod load;
mod servers;

use std::fs;

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::test::rust;
use crate::workspace;

use case::texts;
use servers::{KINDS, Servers};

/// Runs, each with the server that it is made at, its words behind the target, and what is expected of it.
const CASES: &str = include_str!("../../suites/call/cases.json");

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let thalweg = rust::command(log)?;
    let servers = Servers::start(log)?;
    // A word `EXAMPLES/…` is a file of grpc-go's examples, and `ETCD/…` one of etcd's protos.
    let word = |word: &str| match word.split_once('/') {
        Some(("EXAMPLES", path)) => servers.examples.join(path).into_os_string(),
        Some(("ETCD", path)) => servers.etcd.join(path).into_os_string(),
        _ => word.into(),
    };
    let run = |command: &str, target: String, words: &[&str], stdin: &str| {
        let job = Job::new(&thalweg).arg(command).arg(target);
        let job = words.iter().fold(job, |job, it| job.arg(word(it)));
        let input = workspace::output().join("call.stdin");
        fs::write(&input, stdin)?;
        job.directory(workspace::suites()).stdin(input).seconds(30).output(log)
    };
    let (mut failed, mut all) = (0, 0);
    let mut count = |what: &str, words: &[&str], fault: Option<String>| {
        all += 1;
        let Some(fault) = fault else { return Ok(()) };
        failed += 1;
        log.line(format_args!("FAIL  {what} {}: {fault}", words.join(" ")))
    };
    let all_cases: Value = serde_json::from_str(CASES)
        .map_err(|why| Failure::failed(format!("suites/call/cases.json is not JSON: {why}")))?;
    let cases = |kind: &str| all_cases[kind].as_array().into_iter().flatten();
    let target = |case: &Value| servers.target(case["server"].as_str().unwrap_or_default());
    for load in cases("loads") {
        let words: Vec<&str> = texts(&load["words"]).chain(["-O", "json"]).collect();
        let output = run("load", target(load)?, &words, "")?;
        count("load", &words, load::fault(load, &output))?;
    }
    for case in cases("calls") {
        let words: Vec<&str> = texts(&case["words"]).collect();
        let output = run("call", target(case)?, &words, case["stdin"].as_str().unwrap_or_default())?;
        count("call", &words, case::fault(case, &output))?;
    }
    for comparison in cases("comparisons") {
        let words = compare::words(comparison, log)?;
        let job = words.iter().fold(Job::new(&thalweg).arg("compare"), |job, it| job.arg(word(it)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = job.directory(workspace::suites()).output(log)?;
        count("compare", &words, compare::fault(comparison, &output))?;
    }
    let account = format!("{} of {all} cases at {} servers of others", all - failed, KINDS.len());
    if failed == 0 { Ok(account) } else { Err(Failure::failed(account)) }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::servers::Kind;

    #[test]
    fn each_case_has_a_server_and_words() {
        let cases: Value = serde_json::from_str(super::CASES).unwrap();
        let all = |kind: &str| cases[kind].as_array().unwrap().iter();
        let mut servers: Vec<&Value> = all("loads").chain(all("calls")).map(|case| &case["server"]).collect();
        servers.extend(all("comparisons").flat_map(|case| [&case["a"], &case["b"]]));
        assert!(!servers.is_empty());
        for server in servers {
            assert!(server.as_str().is_some_and(|name| Kind::named(name).is_ok()), "{server}");
        }
        for case in all("loads").chain(all("calls")).chain(all("comparisons")) {
            assert!(super::texts(&case["words"]).count() > 0, "{case}");
        }
    }
}
