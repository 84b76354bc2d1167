//! Tests `thalweg load --share` and `--start-at`, and `thalweg merge` of the results.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Running, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
/// The response size identifies the call.
const NUMBERED: &str = r#"{"response_size": {{.RequestNumber}}}"#;

struct Results(TempDir);

impl Results {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a load and returns the result.
    fn load(&self, address: &str, name: &str, arguments: &[&str]) -> Value {
        let file = self.path(name);
        let words = ["load", address, "--call", UNARY, "-d", NUMBERED, "-O", "json", "-o", text(&file)];
        let (code, _, stderr) = outcome(thalweg(&[&words, arguments].concat()).output().unwrap());
        assert_eq!(code, Some(0), "{stderr}");
        read(&file)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn merge(arguments: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(&[&["merge"], arguments].concat()).output().unwrap())
}

/// Requests are numbered, so the total of response bytes shows that each was made once.
#[test]
fn shares_make_all_calls_and_are_merged() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |arguments: &[&str]| {
        let results = Results::new();
        let whole = Results::new().load(&addresses[0], "whole.json", arguments);
        let mut calls = Vec::new();
        for share in ["0/3", "1/3", "2/3"] {
            let name = format!("{}.json", &share[..1]);
            let part = results.load(&addresses[0], &name, &[arguments, &["--share", share]].concat());
            assert_eq!(format!("{}/{}", part["share"]["index"], part["share"]["of"]), share);
            assert_eq!(part["schedule"], whole["schedule"]);
            calls.push(part["ok"].as_u64().unwrap());
        }
        assert_eq!(calls, [167, 167, 167], "{arguments:?}");
        let (code, stdout, stderr) = merge(&[text(results.0.path()), "-O", "json"]);
        assert_eq!(code, Some(0), "{stderr}");
        let merged: Value = serde_json::from_str(&stdout).unwrap();
        for figure in
            ["ok", "failed", "messages_received", "bytes_sent", "bytes_received", "schedule", "share"]
        {
            assert_eq!(merged[figure], whole[figure], "{figure} of {arguments:?}");
        }
        assert_eq!((&merged["ok"], &merged["latency"]["count"]), (&501.into(), &501.into()));
    };
    check(&["-n", "501", "-c", "2"]);
    check(&["-n", "501", "--rps", "2000"]);
    check(&["-n", "501", "--rps", "500..3500/300ms", "--arrivals", "poisson", "--seed", "7"]);
}

#[test]
fn shares_start_together() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let results = Results::new();
    fs::create_dir(results.path("run")).unwrap();
    let start_at = SystemTime::now() + Duration::from_millis(1500);
    let start_at = humantime::format_rfc3339_millis(start_at).to_string();
    let mut parts: Vec<_> = (0..2)
        .map(|index| {
            let (share, file) = (format!("{index}/2"), results.path(&format!("run/{index}.json")));
            let words =
                ["load", &addresses[0], "--call", UNARY, "--rps", "1000", "-z", "1s", "--warmup", "300ms"];
            let more = ["--share", &share, "--start-at", &start_at, "-O", "json", "-o", text(&file)];
            thalweg(&[&words[..], &more].concat()).spawn().unwrap()
        })
        .collect();
    let folder = results.path("run");
    let (code, stdout, stderr) = merge(&[text(&folder), "--wait-for", "2", "--timeout", "1m", "-O", "json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(parts.iter_mut().all(|part| part.wait().unwrap().success()));
    let merged: Value = serde_json::from_str(&stdout).unwrap();
    // On a busy machine a call may be dropped for lack of CPU time.
    let calls = merged["ok"].as_u64().unwrap() + merged["dropped"].as_u64().unwrap();
    assert_eq!((calls, &merged["failed"]), (1000, &0.into()), "{}", merged["notes"]);
    assert_eq!(merged["started"], start_at);
    assert_eq!((&merged["duration_ns"], &merged["scheduled_per_s"]), (&1_000_000_000.into(), &1000.0.into()));
    assert_eq!(read(&folder.join("0.json"))["started"], read(&folder.join("1.json"))["started"]);
}

#[test]
fn past_start_time_exits_with_2() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 60;
    let words = ["load", &addresses[0], "--call", UNARY, "--start-at", &passed.to_string()];
    let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--start-at was 6"), "{stderr}");
}

#[test]
fn invalid_shares_are_explained() {
    let check = |arguments: &[&str], expected: &str| {
        let (code, _, stderr) =
            outcome(thalweg(&[&["load", "127.0.0.1:1"], arguments].concat()).output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(&["--call", UNARY, "--share", "4/4"], "parts are numbered from 0 to 3");
    check(&["--call", UNARY, "--start-at", "soon"], "invalid time `soon`");
}

#[test]
fn results_missing_at_timeout_are_reported() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let results = Results::new();
    results.load(&addresses[0], "0.json", &["-n", "5", "--share", "0/2"]);
    let folder = text(results.0.path());
    let waited = |count: &str| merge(&[folder, "--wait-for", count, "--timeout", "100ms"]);
    let (code, _, stderr) = waited("2");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("after 100ms, 1 of 2 results are complete") && stderr.contains("0.json"),
        "{stderr}"
    );
    // A partly written file is not a result, nor is another file.
    fs::write(results.path("1.json"), "{\"schema\": ").unwrap();
    fs::write(results.path("settings.json"), "{}").unwrap();
    let (code, _, stderr) = waited("2");
    assert!(code == Some(1) && stderr.contains("1.json: not a result of"), "{stderr}");
    let (code, _, stderr) = merge(&[folder]);
    assert!(code == Some(1) && stderr.contains("1.json: not a result of"), "{stderr}");
    fs::remove_file(results.path("1.json")).unwrap();
    let (code, stdout, _) = merge(&[folder]);
    assert!(code == Some(0) && stdout.contains("part 1 of 2 is missing"), "{stdout}");
    results.load(&addresses[0], "1.json", &["-n", "5", "--share", "1/2"]);
    let (code, _, stderr) = waited("1");
    assert!(code == Some(1) && stderr.contains("found 2 results, more than --wait-for 1"), "{stderr}");
    // The result of a run that continues or was killed does not count for `--wait-for`, but is merged with a note
    // otherwise.
    let mut part = read(&results.path("1.json"));
    part["so_far"] = true.into();
    fs::write(results.path("1.json"), part.to_string()).unwrap();
    let (code, _, stderr) = waited("2");
    assert!(code == Some(1) && stderr.contains("1.json: the run is not complete"), "{stderr}");
    let (code, stdout, _) = merge(&[folder, "-O", "json"]);
    assert!(code == Some(0) && stdout.contains("\"so_far\": true"), "{stdout}");
    part["so_far"] = false.into();
    fs::write(results.path("1.json"), part.to_string()).unwrap();
    // The output in the folder is not merged by the next run.
    for _ in 0..2 {
        let merged = results.path("merged.json");
        let (code, _, stderr) = merge(&[folder, "-O", "json", "-o", text(&merged), "--wait-for", "2"]);
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!((&read(&merged)["ok"], &read(&merged)["merged_of"]), (&5.into(), &2.into()));
    }
    // With another output, the earlier one is an error, because its calls would count twice.
    let (code, _, stderr) = merge(&[folder]);
    assert!(code == Some(1) && stderr.contains("contain the same run, which would count twice"), "{stderr}");
    assert!(stderr.contains("merged.json"), "{stderr}");
    let (code, stdout, _) = merge(&[text(&results.path("merged.json")), "-O", "json"]);
    assert!(code == Some(0) && stdout.contains("\"merged_of\": 2"), "{stdout}");
    fs::remove_file(results.path("merged.json")).unwrap();
    let nowhere = results.path("nowhere");
    let (code, _, stderr) = merge(&[text(&nowhere), "--wait-for", "2", "--timeout", "100ms"]);
    assert!(code == Some(1) && stderr.contains("0 of 2 results are complete: none"), "{stderr}");
    let (code, _, stderr) = merge(&[text(tempfile::tempdir().unwrap().path())]);
    assert!(code == Some(1) && stderr.contains("no results in"), "{stderr}");
}
