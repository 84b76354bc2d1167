//! Tests `thalweg load` of BenchmarkService, with and without a call type.

use std::fs;

use serde_json::Value;

use crate::support::{Running, load, load_json, outcome, thalweg};

/// Accepts general options and counts message bytes. A payload of 1000 bytes has 6 bytes of framing, and a request
/// takes 3 more for the response size.
#[test]
fn benchmark_load_has_all_load_features() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--size", "1000", "--rps", "200", "-n", "50", "--expect", "errors<1%", "--tags", "a=b"];
    let named = ["--call", "grpc.testing.BenchmarkService/UnaryCall"];
    for words in [words.to_vec(), [&words[..], &["--call", "unary"]].concat(), [&words[..], &named].concat()]
    {
        let run = load_json(&addresses[0], &words);
        assert_eq!(run["schema"], "thalweg.load-run/2");
        assert_eq!(run["method"], "grpc.testing.BenchmarkService/UnaryCall");
        assert_eq!((&run["ok"], &run["loop"]), (&50.into(), &"open".into()), "{run}");
        assert_eq!((&run["bytes_sent"], &run["bytes_received"]), (&50_450.into(), &50_300.into()), "{run}");
        assert_eq!(run["gates"][0]["is_kept"], true, "{run}");
    }
    let (code, page, stderr) = load(&addresses[0], &["-n", "10", "-O", "html"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(page.contains("grpc.testing.BenchmarkService/UnaryCall"), "{page}");
}

#[test]
fn call_types_are_benchmark_service_methods() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let run = |words: &[&str]| load_json(&addresses[0], &[words, &["--size", "100", "-c", "2"]].concat());
    let messages =
        |run: &Value| (run["messages_sent"].as_u64().unwrap(), run["messages_received"].as_u64().unwrap());
    for (call, method, sent_by_number, received_by_number) in [
        ("client-stream", "StreamingFromClient", Some(40), None),
        ("server-stream", "StreamingFromServer", None, Some(40)),
        ("bidi-stream", "StreamingCall", Some(40), Some(40)),
        ("ping-pong", "StreamingCall", Some(40), Some(40)),
    ] {
        let by_number = run(&["--call", call, "-n", "40"]);
        assert_eq!(by_number["method"], format!("grpc.testing.BenchmarkService/{method}"));
        // One stream may carry all messages before the other starts.
        assert!((1..=2).contains(&by_number["ok"].as_u64().unwrap()), "{by_number}");
        let (sent, received) = messages(&by_number);
        assert_eq!(sent_by_number.unwrap_or(sent), sent, "{by_number}");
        assert_eq!(received_by_number.unwrap_or(received), received, "{by_number}");
        let mut by_time = run(&["--call", call, "-z", "400ms", "--warmup", "0s"]);
        assert_eq!(
            (&by_time["stream_for_ns"], &by_time["ok"]),
            (&400_000_000.into(), &2.into()),
            "{by_time}"
        );
        let (sent, received) = messages(&by_time);
        assert!(sent + received > 100 && by_time["failed"] == 0, "{by_time}");
        // These streams are compared by messages. This machine may have been busy.
        by_time["not_valid"] = serde_json::json!([]);
        let file = folder.path().join(format!("{call}.json"));
        fs::write(&file, by_time.to_string()).unwrap();
        let file = file.display().to_string();
        let (_, report, stderr) =
            outcome(thalweg(&["compare", &file, &file, "--force", "-O", "json"]).output().unwrap());
        let report: Value = serde_json::from_str(&report).expect(&stderr);
        let figures = report["comparisons"][0]["cells"][0]["figures"].as_array().unwrap();
        let rate = figures.iter().find(|figure| figure["figure"] == "rate").unwrap();
        let messages = if call == "client-stream" { sent } else { received };
        let expected = messages as f64 / 0.4;
        assert!((rate["a"].as_f64().unwrap() / expected - 1.0).abs() < 0.01, "{rate}, not {expected}");
    }
}

#[test]
fn lanes_per_call_opens_connection_per_call() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let run = load_json(&addresses[0], &["--lanes", "per-call", "-n", "20", "-c", "1"]);
    assert_eq!((&run["ok"], &run["connections_established"]), (&20.into(), &Value::Null), "{run}");
}

/// These options moved from `load` to `peer load`.
#[test]
fn moved_lab_options_still_work_with_hint() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["load", &addresses[0], "--bare", "grpc", "-z", "100ms", "--warmup", "0s", "-O", "json"];
    let (code, stdout, stderr) = outcome(thalweg(&words).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr, "note: --bare is an option of `thalweg peer load`; running that\n");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["schema"], "thalweg.load/3");
    for (word, begins) in [
        ("variants", "server owned in-place no-busy-poll\nclient owned in-place no-busy-poll\n"),
        ("version", "thalweg "),
    ] {
        let (code, stdout, stderr) = outcome(thalweg(&["peer", word]).output().unwrap());
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(stdout.starts_with(begins), "{stdout}");
    }
}
