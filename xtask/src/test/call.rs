//! `thalweg call`, `thalweg load` of any method, and `thalweg compare` of two, at servers of other people: grpc-go's
//! examples, with reflection, without, and over TLS; services in the shape of tonic's examples on tonic; gRPC C++ with
//! its older reflection; and etcd by its protos.

mod case;
mod compare;
mod etcd;
mod grpc_cpp;
mod grpc_go;
mod load;
mod servers;
mod tonic;

use std::fs;

use crate::job::{Failure, Job, Log};
use crate::test::rust;
use crate::workspace;

use case::Case;
use load::Load;
use servers::{KINDS, Servers};

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
    let loads: [&[Load]; 4] = [grpc_go::LOADS, tonic::LOADS, grpc_cpp::LOADS, etcd::LOADS];
    for load in loads.into_iter().flatten() {
        let words = [load.words, &["-O", "json"]].concat();
        let output = run("load", servers.target(load.server), &words, "")?;
        count("load", load.words, load.fault(&output))?;
    }
    let cases: [&[Case]; 4] = [grpc_go::CASES, tonic::CASES, grpc_cpp::CASES, etcd::CASES];
    for case in cases.into_iter().flatten() {
        let output = run("call", servers.target(case.server), case.words, case.stdin)?;
        count("call", case.words, case.fault(&output))?;
    }
    for comparison in compare::COMPARISONS {
        let words = comparison.words(log)?;
        let job = words.iter().fold(Job::new(&thalweg).arg("compare"), |job, it| job.arg(word(it)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        count("compare", &words, comparison.fault(&job.directory(workspace::suites()).output(log)?))?;
    }
    let account = format!("{} of {all} cases at {} servers of others", all - failed, KINDS.len());
    if failed == 0 { Ok(account) } else { Err(Failure::failed(account)) }
}
