//! h2spec: RFC 9113 and RFC 7541 case by case, against our server and against our client.

use std::process::ExitCode;

use crate::Ended;
use crate::arguments::{Arguments, Misuse};
use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::tools;

/// All cases of h2spec 2.2.1 with the strict ones.
const SERVER_CASES: u32 = 146;
/// All cases of h2specd.
const CLIENT_CASES: u32 = 57;
/// h2specd answers as a web server does, and a gRPC client gives such an answer up at its head (RST_STREAM with
/// CANCEL). These cases are about what comes on that stream later.
const NOT_FOR_GRPC: &[&str] = &[
    "Sends a WINDOW_UPDATE frame with a flow control window increment of 0 on a stream",
    "Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream",
];

/// What h2spec counted, from its last line.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    tests: u32,
    passed: u32,
}

pub(super) fn server(log: &Log) -> Result<String, Failure> {
    let h2spec = tools::H2SPEC.get(log)?;
    let thalweg = rust::thalweg(log)?;
    let port = free_port()?;
    let serve = Job::new(thalweg).words(&format!("serve --listen 127.0.0.1:{port}"));
    let server = Server::start(&serve, port, log)?;
    let job = Job::new(h2spec)
        .words(&format!("--host 127.0.0.1 --port {port} --path / --strict --timeout 1"))
        .minutes(10);
    let counts = counts(&String::from_utf8_lossy(&job.output(log)?.stdout))?;
    server.stop()?;
    verdict(&counts, SERVER_CASES)
}

pub(super) fn client(log: &Log) -> Result<String, Failure> {
    let h2specd = tools::H2SPECD.get(log)?;
    let thalweg = rust::thalweg(log)?;
    let from_port = free_ports(CLIENT_CASES as u16)?;
    let xtask = std::env::current_exe()?;
    // h2specd splits the command at spaces and adds the URL of each case, on a port of its own, at the end.
    let command = format!("{} call-url {}", xtask.display(), thalweg.display());
    let job = Job::new(h2specd)
        .words(&format!("--timeout 1 --from-port {from_port} --exec"))
        .arg(command)
        .minutes(10);
    let text = job.text(log)?;
    let Counts { tests, passed } = counts(&text)?;
    let failed = failed_cases(&text);
    let all_apply = failed.iter().all(|case| NOT_FOR_GRPC.contains(case));
    if tests == CLIENT_CASES && passed + failed.len() as u32 == tests && all_apply {
        return Ok(format!("{passed} of {tests} cases; {} that do not apply to gRPC", failed.len()));
    }
    Err(Failure::failed(format!("{passed} of {CLIENT_CASES} cases passed ({tests} ran)")))
}

/// Names of the cases in the list of failures at the end: `× 2: Sends a frame`.
fn failed_cases(text: &str) -> Vec<&str> {
    let (_, failures) = text.split_once("Failures:").unwrap_or_default();
    let marked = failures.lines().filter_map(|line| line.trim_start().strip_prefix('×'));
    marked.filter_map(|line| line.split_once(": ")).map(|(_, name)| name.trim_end()).collect()
}

/// `call-url THALWEG http://HOST:PORT/`: one call, as h2specd wants its client to be started.
pub(crate) fn call_url(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let (Some(thalweg), Some(url)) = (arguments.next_word(), arguments.next_word()) else {
        return Err(Misuse("call-url wants the path of `thalweg` and a URL".to_owned()).into());
    };
    let target = url.trim_start_matches("http://").trim_end_matches('/');
    // h2specd ends altogether when its client has not ended after 3 s; many cases leave the call without an answer.
    let call = Job::new(thalweg)
        .words("load --call unary -c 1 --connections 1 -n 1 --warmup 0s")
        .arg(target)
        .seconds(2);
    let status = call.status(&Log::create("h2specd-client")?)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first of `count` neighbouring ports that are free.
fn free_ports(count: u16) -> Result<u16, Failure> {
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Below the range from which the kernel takes ports for outgoing connections (32768 on Linux).
    let first =
        (20_000..32_000).step_by(usize::from(count)).find(|first| (*first..first + count).all(is_free));
    first.ok_or_else(|| Failure::failed(format!("there are no {count} neighbouring free ports")))
}

fn verdict(counts: &Counts, expected: u32) -> Result<String, Failure> {
    let Counts { tests, passed } = counts;
    if *tests == expected && passed == tests {
        return Ok(format!("{passed} of {expected} cases"));
    }
    Err(Failure::failed(format!("{passed} of {expected} cases passed ({tests} ran)")))
}

/// Reads `146 tests, 145 passed, 0 skipped, 1 failed`.
fn counts(text: &str) -> Result<Counts, Failure> {
    let parse = |line: &str| {
        let mut parts = line.split(", ").map(|part| part.split_once(' '));
        let (tests, noun) = parts.next()??;
        let (passed, _) = parts.next()??;
        let is_summary = noun == "tests" || noun == "test";
        is_summary.then_some(Counts { tests: tests.trim().parse().ok()?, passed: passed.parse().ok()? })
    };
    text.lines().rev().find_map(parse).ok_or_else(|| Failure::failed("h2spec printed no summary"))
}

#[cfg(test)]
mod tests {
    use super::{Counts, counts, failed_cases};

    #[test]
    fn the_summary_is_read() {
        let text = "  1) x\nFinished in 0.1 seconds\n146 tests, 145 passed, 0 skipped, 1 failed\n";
        assert_eq!(counts(text).ok(), Some(Counts { tests: 146, passed: 145 }));
        assert_eq!(
            failed_cases("  × 9: no\nFailures:\n  6.9. Z\n   × 2: Sends: it\n     -> must"),
            ["Sends: it"]
        );
        assert!(counts("Error: the server didn't receive the request").is_err());
    }
}
