//! Tests the bare client, the bare echo, and `thalweg lab connections` with minimal measuring time.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Running, has_answer, outcome, thalweg};

const CALLS: [&str; 8] = ["-c", "12", "--warmup", "20ms", "-z", "200ms", "-O", "json"];

fn load(target: &str, rest: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(&[&["peer", "load", target], rest, &CALLS].concat()).output().unwrap())
}

/// Drives 3 of 10 connections with the bare client.
fn check(wire: &str, target: &str) {
    let many = ["--bare", wire, "--connections", "10", "--active", "3", "--announce"];
    let (code, stdout, stderr) = load(target, &many);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let json = stdout.strip_prefix("first\nconnected\nmeasuring\nmeasured\n").unwrap();
    let result: Value = serde_json::from_str(json).unwrap();
    assert!(result["messages"].as_u64().unwrap() > 10 && result["errors"] == serde_json::json!({}));
    assert_eq!(result["connections"]["established"], 10);
    let fairness = &result["fairness"];
    assert_eq!(fairness["connections"], 3);
    assert!(
        fairness["least"].as_u64().unwrap() > 0 && fairness["jain"].as_f64().unwrap() > 0.5,
        "{fairness}"
    );
    assert_eq!(result["settings"]["bare"]["active"], 3);
}

#[test]
fn bare_client_calls_over_active_connections_only() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    check("grpc", &addresses[0]);
    let (code, _, stderr) = load(&addresses[0], &["--bare", "grpc", "--method", "a.B/C"]);
    assert!(code == Some(1) && stderr.contains("no message"), "{stderr}");
}

#[test]
fn bare_echo_returns_received_bytes() {
    let mut server = Running::start(&["serve", "--bare-echo", "--listen", "127.0.0.1:0"]);
    let line = server.line();
    let address = line.trim_end().strip_prefix("listening on ").unwrap();
    check("echo", address);
    let (code, _, stderr) = load(address, &["--bare", "grpc", "--timeout", "1s"]);
    assert!(code == Some(1) && stderr.lines().count() == 1, "{stderr}");
}

fn results(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap()
}

#[test]
fn tiny_connections_study_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let arguments = ["lab", "connections", "--quick", "--connections", "1,20", "-c", "1", "--active", "100%"];
    let least = ["--rounds", "1", "--budget", "30s", "--out", out.to_str().unwrap()];
    let (code, stdout, stderr) = outcome(thalweg(&[&arguments[..], &least].concat()).output().unwrap());
    has_answer(code, &stderr);
    let found = results(&out);
    let is_valid = |point: &Value| point["not_valid"].as_array().is_some_and(Vec::is_empty);
    if found["points"].as_array().unwrap().iter().all(is_valid) {
        for words in ["20", "socket", "new connections", "TLS", "their own servers"] {
            assert!(stdout.contains(words), "{words} is not in {stdout}");
        }
    }
    assert_eq!((&found["schema"], &found["study"]), (&"thalweg.lab/5".into(), &"connections".into()));
    let points = found["points"].as_array().unwrap();
    // The bare echo, our server with the bare client and with our own, over 1 and 20 connections; then new connections,
    // plain and over TLS.
    assert_eq!(points.len(), 2 * 3 + 2);
    for point in points {
        assert!(point["measured"]["messages"].as_u64().unwrap() > 0, "{point}");
        assert!(point["usage"]["server"]["user_ns"].is_u64(), "{point}");
        let is_bare = point["pair"]["client"] == "bare";
        assert_eq!(point["usage"]["server_memory"]["first"].is_u64(), is_bare, "{point}");
        assert_eq!(point["measured"]["fairness"]["jain"].is_f64(), is_bare, "{point}");
    }
    // The report can be generated again from the results.
    let again = folder.path().join("again");
    let from = out.join("results.json");
    let arguments =
        ["lab", "connections", "--from", from.to_str().unwrap(), "--out", again.to_str().unwrap()];
    let (again_code, told, _) = outcome(thalweg(&arguments).output().unwrap());
    assert_eq!(again_code, code);
    assert_eq!(told.split("Report:").next(), stdout.split("Report:").next());
    assert_eq!(results(&again), found);
    assert!(fs::metadata(again.join("report.html")).unwrap().len() > 10_000);
}

#[test]
fn external_server_is_measured_over_many_connections() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let arguments = ["lab", "connections", "--connections", "1,20", "-c", "1", "--active", "100%"];
    let least =
        ["--rounds", "1", "--budget", "20s", "--out", out.to_str().unwrap(), "--target", &addresses[0]];
    let (code, stdout, stderr) = outcome(thalweg(&[&arguments[..], &least].concat()).output().unwrap());
    // The windows over 20 connections may be disturbed alone.
    if has_answer(code, &stderr) && !stdout.contains("! Not valid") {
        assert!(stdout.contains("Over 20 connections, target answers"), "{stdout}");
    }
    assert_eq!(results(&out)["points"].as_array().unwrap().len(), 3);
}
