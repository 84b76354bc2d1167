//! `thalweg call`, `thalweg load` of any method, and `thalweg compare` with third-party servers. These are grpc-go's
//! examples with reflection, without it and over TLS; services like tonic's examples on tonic; gRPC C++ with its older
//! reflection; and etcd by its protos.

mod servers;

use std::fs;

use serde_json::{Value, json};

use super::cases::{Cases, check_output};
use super::rust;
use crate::failure::{Failure, Result};
use crate::files::{self, list, text};
use crate::job::{CapturedOutput, Job};
use crate::{etcd, tools, workspace};

/// The runs, each with its server, its words after the target, and the expected result.
const CASES: &str = "call/cases.json";

pub(super) fn check() -> Result<String> {
    let thalweg = rust::command()?;
    let (examples, etcd) = (tools::grpc_go_examples()?, etcd::protos()?);
    let all = files::json(&workspace::suites().join(CASES))?;
    let servers = servers::start_all(&all)?;
    // A word `EXAMPLES/…` is a file of grpc-go's examples, and `ETCD/…` one of etcd's protos.
    let word = |word: &str| match word.split_once('/') {
        Some(("EXAMPLES", path)) => examples.join(path).into_os_string(),
        Some(("ETCD", path)) => etcd.join(path).into_os_string(),
        _ => word.into(),
    };
    let target = |case: &Value| -> Result<String> {
        let server = servers.iter().find(|(name, _)| *name == text(&case["server"]));
        let (_, server) = server.ok_or_else(|| failed!("no server of {case}"))?;
        Ok(format!("localhost:{}", server.port()))
    };
    let run = |command: &str, case: &Value| {
        let job = Job::new(&thalweg).arg(command).arg(target(case)?);
        let job = job.args(list(&case["words"]).iter().map(|it| word(text(it))));
        let input = workspace::output().join("call.stdin");
        fs::write(&input, text(&case["stdin"]))?;
        let job = if command == "load" { job.words("-O json") } else { job };
        job.directory(workspace::suites()).stdin(input).seconds(30).output()
    };
    let mut cases = Cases::default();
    for load in list(&all["loads"]) {
        cases.count(&format!("load {}", load["words"]), check_load(load, &run("load", load)?))?;
    }
    for call in list(&all["calls"]) {
        cases.count(&format!("call {}", call["words"]), check_output(call, &run("call", call)?))?;
    }
    for comparison in list(&all["comparisons"]) {
        let side =
            |side: &str| Ok::<_, Failure>(servers::job(&all, text(&comparison[side]), "{port}")?.shell());
        let job = Job::new(&thalweg).words("compare --a").arg(side("a")?).arg("--b").arg(side("b")?);
        let job = job.arg("--target").arg(text(&comparison["target"])).words(SETTINGS);
        let words = list(&comparison["words"]).iter().map(|it| word(text(it)));
        let job = job.args(words).directory(workspace::suites());
        let outcome = check_comparison(comparison, &job.output()?);
        cases.count(&format!("compare {}", comparison["words"]), outcome)?;
    }
    cases.verdict(&format!("cases at {} servers of others", servers.len()))
}

/// Checks a run of `thalweg load`: the `exit_code`, calls that ended with OK (`ok`), those that did not (`failed`, by
/// status), and received messages (`received`).
fn check_load(load: &Value, captured: &CapturedOutput) -> Result<()> {
    let result: Value = serde_json::from_str(&captured.out).unwrap_or_default();
    let number = |key: &str| Value::from(load[key].as_u64().unwrap_or(0));
    let failed = load["failed"].as_object().cloned().unwrap_or_default();
    let expected =
        [("ok", number("ok")), ("errors", failed.into()), ("messages_received", number("received"))];
    check_values(&result, &expected)?;
    check_output(&json!({"exit_code": load["exit_code"]}), captured)
}

fn check_values(result: &Value, expected: &[(&str, Value)]) -> Result<()> {
    for (key, expected) in expected {
        ensure!(result[key] == *expected, "{key}: {}, not {expected}", result[key]);
    }
    Ok(())
}

const ROUNDS: usize = 3;
const SETTINGS: &str = "--rounds 3 --window 300ms --warmup 100ms --fail-on none --force -O json --";

/// Checks a run of `thalweg compare`, which starts two servers itself and measures them alternately. In each round no
/// call failed, and the CPU time of both servers is known.
fn check_comparison(expected: &Value, captured: &CapturedOutput) -> Result<()> {
    check_output(&json!({}), captured)?;
    let report: Value = serde_json::from_str(&captured.out).unwrap_or_default();
    let comparison = &report["comparisons"][0];
    let cell = &comparison["cells"][0];
    for name in ["rate", "p50", "p99", "client-cpu", "server-cpu"] {
        let is_measured = list(&cell["figures"]).iter().any(|figure| {
            let is_positive = |side: &str| figure[side].as_f64().is_some_and(|value| value > 0.0);
            figure["figure"] == name
                && figure["rounds"] == json!([ROUNDS, ROUNDS])
                && is_positive("a")
                && is_positive("b")
        });
        ensure!(is_measured, "{name} does not have {ROUNDS} rounds");
    }
    check_values(comparison, &[("paired", true.into())])?;
    check_values(cell, &[("loop", expected["loop"].clone()), ("failed_share", json!([0.0, 0.0]))])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test::cases::captured;

    #[test]
    fn every_case_has_a_server_and_words() {
        let cases: Value = files::json(&workspace::suites().join(CASES)).unwrap();
        let all = |kind: &str| list(&cases[kind]).iter();
        let mut servers: Vec<&Value> = all("loads").chain(all("calls")).map(|case| &case["server"]).collect();
        servers.extend(all("comparisons").flat_map(|case| [&case["a"], &case["b"]]));
        assert!(!servers.is_empty());
        for server in servers {
            assert!(all("servers").any(|it| it["name"] == *server), "{server}");
        }
        for case in all("loads").chain(all("calls")).chain(all("comparisons")) {
            assert!(case["words"][0].is_string(), "{case}");
        }
    }

    #[test]
    fn calls_statuses_and_messages_are_compared() {
        let load = json!({"exit_code": 1, "ok": 2, "failed": {"ABORTED": 1}, "received": 4});
        let error = |code: i32, out: &str| check_load(&load, &captured(code, out, "")).err();
        let expected = r#"{"ok": 2, "errors": {"ABORTED": 1}, "messages_received": 4}"#;
        assert!(error(1, expected).is_none());
        assert!(error(0, expected).is_some());
        let other = expected.replace("ABORTED\": 1", "ABORTED\": 2");
        let error = error(1, &other).map(|why| why.to_string()).unwrap_or_default();
        assert!(error.contains("errors: {\"ABORTED\":2}, not {\"ABORTED\":1}"), "{error}");
    }
}
