//! Tests `thalweg load` over time: stream rates and durations, changing workers, rate search, and results of killed
//! runs.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Running, load, load_json, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
const DUPLEX: &str = "grpc.testing.TestService/FullDuplexCall";

#[test]
fn stream_messages_follow_message_rate() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let answer = r#"{"response_parameters": [{"size": 1}]}"#;
    // 10 in the first half second, then 50. The first is sent at once.
    let words =
        ["--call", DUPLEX, "-d", answer, "--message-rate", "20/500ms,100", "--stream-for", "1s", "-n", "2"];
    let run = load_json(&addresses[0], &[&words[..], &["-c", "2"]].concat());
    let sent = run["messages_sent"].as_u64().unwrap();
    assert_eq!((sent, &run["messages_received"]), (2 * 60, &run["messages_sent"]), "{run}");
    assert_eq!(run["reply"]["count"], run["messages_sent"]);
    let lasted = run["latency"]["min"].as_u64().unwrap();
    assert!((990_000_000..3_000_000_000).contains(&lasted), "{lasted} ns");
}

/// A ramp between 0 and 100/s has 50 messages in a second, plus one at its end.
#[test]
fn stream_messages_follow_ramp() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let answer = r#"{"response_parameters": [{"size": 1}]}"#;
    // The ramp ends at 0, so that late last messages do not change the count.
    let words = ["--call", DUPLEX, "-d", answer, "--message-rate", "100..0/1s", "-n", "2", "-c", "2"];
    let run = load_json(&addresses[0], &[&words[..], &["--messages", "1000"]].concat());
    assert_eq!((&run["ok"], &run["messages_sent"]), (&2.into(), &(2 * 51).into()), "{run}");
    assert_eq!(run["messages_received"], run["messages_sent"], "{run}");
    let run = load_json(&addresses[0], &[&words[..], &["--messages", "40"]].concat());
    assert_eq!((&run["ok"], &run["messages_sent"]), (&2.into(), &(2 * 40).into()), "{run}");
}

/// From 20 streams/s to 0 in a second: 10 streams, plus one at the end.
#[test]
fn stream_starts_follow_ramp() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let answer = r#"{"response_parameters": [{"size": 1}]}"#;
    let words = ["--call", DUPLEX, "-d", answer, "--messages", "3", "--rps", "20..0/1s", "-n", "100"];
    let run = load_json(&addresses[0], &words);
    assert_eq!((&run["kind"], &run["schedule"]), (&"bidi-stream".into(), &"20..0/1s".into()));
    assert_eq!((&run["ok"], &run["messages_sent"]), (&11.into(), &33.into()), "{run}");
    assert_eq!((&run["dropped"], &run["stopped_early"]), (&0.into(), &true.into()), "{run}");
}

/// 11 messages at 10/s take a second, longer than a deadline of 500 ms.
#[test]
fn explicit_deadline_applies_and_zero_disables_it() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let answer = r#"{"response_parameters": [{"size": 1}]}"#;
    let words = ["--call", DUPLEX, "-d", answer, "--messages", "11", "--message-rate", "10", "-n", "1"];
    let base = ["-c", "1", "--max-errors", "1"];
    let run = |more: &[&str]| load_json(&addresses[0], &[&words[..], &base, more].concat());
    assert_eq!(run(&["--timeout", "500ms"])["errors"]["DEADLINE_EXCEEDED"], 1);
    // `--stream-for` is added to the deadline.
    assert_eq!(run(&["--timeout", "500ms", "--stream-for", "30s"])["ok"], 1);
    for none in ["0", "0s"] {
        assert_eq!(run(&["--timeout", none])["ok"], 1);
    }
}

/// Streams longer than an interval count in each interval, not only at their end.
#[test]
fn stream_messages_are_counted_on_arrival() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let answer = r#"{"response_parameters": [{"size": 1}]}"#;
    let stream = ["--call", DUPLEX, "-d", answer, "--message-rate", "50", "--interval", "200ms", "-c", "2"];
    let check = |words: &[&str]| {
        let run = load_json(&addresses[0], &[&stream[..], words].concat());
        let intervals = run["intervals"].as_array().unwrap();
        let all = |name: &str| intervals.iter().map(|it| it[name].as_u64().unwrap()).collect::<Vec<_>>();
        for name in ["messages_sent", "messages_received", "bytes_sent", "bytes_received"] {
            assert_eq!(Some(all(name).iter().sum::<u64>()), run[name].as_u64(), "{name}");
            assert!(all(name).iter().filter(|count| **count > 0).count() >= 3, "{name}: {:?}", all(name));
        }
        assert!(intervals.iter().filter(|it| !it["reply_ns"].is_null()).count() >= 3, "{intervals:?}");
        run
    };
    let run = check(&["--stream-for", "2s", "-n", "2"]);
    assert_eq!((&run["ok"], &run["messages_sent"]), (&2.into(), &200.into()), "{run}");
    assert_eq!((&run["messages_received"], &run["reply"]["count"]), (&200.into(), &200.into()), "{run}");
    // For streams in flight at the end, counts what has arrived by then.
    let run = check(&["--stream-for", "700ms", "-z", "2s", "--warmup", "300ms"]);
    assert!((1..=220).contains(&run["messages_sent"].as_u64().unwrap()), "{run}");
}

/// Latency of delayed messages counts from their scheduled time.
#[test]
fn stalled_stream_delays_all_messages_due_during_it() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    // Large messages fill the window quickly.
    let data = format!(
        r#"{{"response_parameters": [{{"size": 1}}], "payload": {{"body": "{}"}}}}"#,
        "A".repeat(80_000)
    );
    let words = [
        "load",
        &addresses[0],
        "--call",
        DUPLEX,
        "-d",
        &data,
        "--message-rate",
        "500",
        "--stream-for",
        "3s",
        "-n",
        "1",
        "-c",
        "1",
        "-O",
        "json",
    ];
    let client = thalweg(&words).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(800));
    server.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(1500));
    server.signal(Signal::SIGCONT);
    let (code, stdout, stderr) = outcome(client.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    let p90 = run["reply"]["p90"].as_u64().unwrap();
    assert!(p90 >= 500_000_000, "a half of all were to be sent meanwhile, and p90 is {p90} ns");
}

#[test]
fn outage_in_a_closed_loop_is_noted() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words =
        ["load", &addresses[0], "--call", UNARY, "-c", "4", "-z", "3s", "--warmup", "0s", "-O", "json"];
    let client = thalweg(&words).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    server.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(1500));
    server.signal(Signal::SIGCONT);
    let (code, stdout, stderr) = outcome(client.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let said = serde_json::from_str::<Value>(&stdout).unwrap()["notes"].to_string();
    assert!(said.contains("no call finished for 1."), "{said}");
    assert!(said.contains("the percentiles of a closed loop hide this, use --rps"), "{said}");
}

#[test]
fn streams_end_by_time_or_by_responses_and_count_as_ok() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let endless = ["--call", "grpc.testing.BenchmarkService/StreamingFromServer", "-n", "4", "-c", "2"];
    let run = load_json(&addresses[0], &[&endless[..], &["--responses", "7"]].concat());
    assert_eq!((&run["ok"], &run["messages_received"]), (&4.into(), &28.into()), "{run}");
    let run = load_json(&addresses[0], &[&endless[..], &["--stream-for", "200ms"]].concat());
    assert_eq!(run["ok"], 4, "{run}");
    assert!(run["latency"]["min"].as_u64().unwrap() >= 200_000_000);
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "--stream-for", "1s"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--stream-for needs a method that is a stream"), "{stderr}");
}

#[test]
fn bursts_start_together_and_repeat() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--call", UNARY, "--rps", "30@500ms", "-z", "1500ms", "--interval", "250ms"];
    let run = load_json(&addresses[0], &words);
    assert_eq!(
        (&run["ok"], &run["schedule"], &run["loop"]),
        (&90.into(), &"30@500ms".into(), &"open".into())
    );
    assert_eq!((&run["duration_ns"], &run["scheduled_per_s"]), (&1_500_000_000.into(), &60.0.into()));
    let intervals = run["intervals"].as_array().unwrap();
    let scheduled: Vec<f64> =
        intervals.iter().map(|interval| interval["scheduled"].as_f64().unwrap()).collect();
    let bursts: Vec<u64> =
        scheduled.iter().map(|calls| calls.round() as u64).filter(|calls| *calls > 0).collect();
    assert_eq!(bursts, [30, 30, 30], "{scheduled:?}");
    let (code, stdout, stderr) = load(&addresses[0], &["--call", UNARY, "--rps", "5@1s", "-n", "5"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(", schedule 5@1s, at most"), "{stdout}");
    // Bursts of messages in a stream: 3 each at 0, 200 and 400 ms.
    let answer = r#"{"response_parameters": [{"size": 1}]}"#;
    let words = ["--call", DUPLEX, "-d", answer, "--message-rate", "3@200ms", "--stream-for", "500ms"];
    let run = load_json(&addresses[0], &[&words[..], &["-n", "1", "-c", "1"]].concat());
    assert_eq!(run["messages_sent"], 9, "{run}");
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "--workers", "3@1s"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("bursts are not supported"), "{stderr}");
}

#[test]
fn number_of_workers_follows_schedule() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let slow = r#"{"response_parameters": [{"size": 1, "interval_us": 100000}]}"#;
    let words = [
        "--call",
        "grpc.testing.TestService/StreamingOutputCall",
        "-d",
        slow,
        "--workers",
        "1/1s,8",
        "-z",
        "2s",
        "--warmup",
        "0s",
    ];
    let run = load_json(&addresses[0], &words);
    assert_eq!((&run["workers"], &run["in_flight"]), (&"1/1s,8".into(), &8.into()));
    let intervals = run["intervals"].as_array().unwrap();
    let of = |index: usize| intervals[index]["ok"].as_u64().unwrap();
    assert!(of(0) <= 10 && of(1) > 2 * of(0), "{} and {}", of(0), of(1));
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "--workers", "1..8/1s", "-c", "4"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--workers 1..8/1s exceeds -c 4"), "{stderr}");
}

/// Short tries with a service that uses CPU time.
const SHORT_TRIES: [&str; 6] =
    ["--call", "grpc.testing.BenchmarkService/UnaryCall", "-z", "500ms", "--warmup", "0s"];

/// A server that uses 20 ms of CPU per call handles at most 50 calls per second.
#[test]
fn search_finds_highest_rate_that_meets_condition() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--work", "20ms", "--threads", "1"]);
    let call = [&SHORT_TRIES[..], &["--rps", "20"]].concat();
    let (code, stdout, stderr) =
        load(&addresses[0], &[&call[..], &["--find-max", "p50<500ms,errors<=0", "-O", "json"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    let found = run["search"]["found_per_s"].as_f64().unwrap();
    assert!((2.0..=120.0).contains(&found), "{found}");
    let tries = run["search"]["tries"].as_array().unwrap();
    assert_eq!(tries[0]["rate_per_s"], 20.0);
    assert!(tries.iter().any(|tried| tried["is_kept"] == false), "{tries:?}");
    assert!(
        (run["scheduled_per_s"].as_f64().unwrap() / found - 1.0).abs() < 1e-6,
        "the result is of that rate"
    );
    let (code, stdout, stderr) = load(&addresses[0], &[&call[..], &["--find-max", "p50<1ns"]].concat());
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("no rate meets p50<1ns"), "{stderr}");
    assert!(stdout.contains("highest rate  none"), "{stdout}");
}

/// All calls succeed even at twice the server's capacity. Other programs may disturb lower rates.
#[test]
fn rate_with_growing_queue_is_not_reached() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--work", "20ms", "--threads", "1"]);
    let search = ["--rps", "100", "-O", "json", "--find-max", "errors<=0"];
    let (_, stdout, stderr) = load(&addresses[0], &[&SHORT_TRIES[..], &search].concat());
    let run: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    let found = run["search"]["found_per_s"].as_f64().unwrap_or_default();
    assert!(found < 90.0, "{found}: {}", run["search"]);
    let tries = run["search"]["tries"].to_string();
    assert!(tries.contains("calls waited or were in flight at half the time"), "{tries}");
}

#[test]
fn interrupted_rate_is_not_listed_as_try() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--call", UNARY, "--rps", "2000", "-z", "1h", "--find-max", "p99<1h", "-O", "json"];
    let search = Running::start(&[&["load", &addresses[0]], &words[..]].concat());
    search.until_at_work();
    search.signal(Signal::SIGINT);
    let (code, stdout, stderr) = search.end();
    assert_eq!(code, Some(130), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(run["search"]["tries"], serde_json::json!([]));
    assert_eq!(run["search"]["found_per_s"], Value::Null);
}

/// The second server takes 100 ms per call.
#[test]
fn calls_are_distributed_evenly_between_servers() {
    let (_quick, quick) = Running::serve(&["127.0.0.1:0"]);
    let (_slow, slow) = Running::serve_with(&["127.0.0.1:0"], &["--work", "100ms", "--threads", "1"]);
    let call = ["--call", "grpc.testing.BenchmarkService/UnaryCall", "--also"];
    let check = |first: &str, other: &str, words: &[&str], calls: u64| {
        let run = load_json(first, &[&call[..], &[other], words].concat());
        assert_eq!(run["ok"], calls, "{words:?}");
        let latency = &run["latency"];
        let mean = latency["mean"].as_f64().unwrap();
        assert!(mean >= 50e6, "{words:?}: half of the calls are the slow server's: {latency}");
        assert!(latency["min"].as_u64().unwrap() < 100_000_000, "{words:?}: and not all: {latency}");
    };
    for (first, other) in [(&quick[0], &slow[0]), (&slow[0], &quick[0])] {
        check(first, other, &["-n", "8", "-c", "1"], 8);
        check(first, other, &["-n", "8", "-c", "3"], 8);
        check(first, other, &["-n", "8", "-c", "1", "--rps", "5"], 8);
        // This part of the load has only even starts.
        check(first, other, &["-n", "16", "-c", "1", "--share", "0/2"], 8);
    }
}

#[test]
fn killed_run_leaves_checkpoint() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let file = path.display().to_string();
    let words =
        ["load", &addresses[0], "--call", UNARY, "--rps", "200", "-z", "60s", "-O", "json", "-o", &file];
    let mut client = thalweg(&words).spawn().unwrap();
    let began = Instant::now();
    let is_written = || fs::metadata(&path).is_ok_and(|file| file.len() > 0);
    while !is_written() && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    client.kill().unwrap();
    client.wait().unwrap();
    let run: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(run["ok"].as_u64().unwrap() >= 600, "{}", run["ok"]);
    assert_eq!(
        run["intervals"].as_array().unwrap().len() as u64,
        run["duration_ns"].as_u64().unwrap() / 1_000_000_000
    );
    let notes = run["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["text"].as_str().unwrap().contains("is not complete")), "{notes:?}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no part of a file is left: {left:?}");
}

#[test]
fn stderr_has_progress_lines_and_stdout_only_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--call", UNARY, "--rps", "100", "-z", "1s", "-O", "json"];
    let run = |more: &[&str]| {
        let (code, stdout, stderr) = load(&addresses[0], &[&words[..], more].concat());
        assert_eq!(code, Some(0), "{stderr}");
        let run: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(run["ok"], 100, "{run}");
        stderr
    };
    for flags in [&["--interval", "200ms"][..], &["--interval", "200ms", "--no-tui"]] {
        let lines = run(flags);
        let ok = lines.lines().map(|line| {
            assert!(
                line.contains(" ok of ") && line.contains("  p99 ") && line.ends_with(" in flight"),
                "{line}"
            );
            line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap()
        });
        assert_eq!(ok.sum::<u64>(), 100, "{lines}");
        assert!(lines.lines().count() > 1, "{lines}");
    }
    assert_eq!(run(&["--interval", "200ms", "--quiet"]), "");
    // A line covers ten seconds, so none is printed.
    assert_eq!(run(&[]), "");
}

#[test]
fn csv_output_has_row_per_interval() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--call", UNARY, "--rps", "100", "-z", "1s", "--interval", "250ms", "-O", "csv"];
    let (code, stdout, stderr) = load(&addresses[0], &words);
    assert_eq!(code, Some(0), "{stderr}");
    let mut lines = stdout.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let ok = names.iter().position(|name| *name == "ok").unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == names.len()), "{stdout}");
    assert!((4..=5).contains(&rows.len()), "{stdout}");
    assert_eq!(rows.iter().map(|row| row[ok].parse::<u64>().unwrap()).sum::<u64>(), 100);
}

#[test]
fn html_output_is_a_page() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--call", UNARY, "--rps", "100", "-z", "1s", "--expect", "calls>=100", "-O", "html"];
    let (code, stdout, stderr) = load(&addresses[0], &words);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("<!DOCTYPE html>") && stdout.ends_with("</html>"), "{stdout}");
    for words in [UNARY, "calls&gt;=100", "✓ passed", &addresses[0]] {
        assert!(stdout.contains(words), "the page does not say: {words}");
    }
}
