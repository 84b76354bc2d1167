//! Tests what ends a run, how calls in flight are handled, and what the result reports.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Running, load, load_json, outcome, thalweg};

const SECOND: u64 = 1_000_000_000;
const UNARY: &str = "grpc.testing.TestService/UnaryCall";
/// A call of this method with these requests takes 400 ms.
const SLOW: &str = "grpc.testing.TestService/StreamingOutputCall";
const SLOW_DATA: &str = r#"{"response_parameters": [{"size": 1, "interval_us": 400000}]}"#;

fn has_note(run: &Value, words: &str) -> bool {
    run["notes"].as_array().unwrap().iter().any(|note| note["text"].as_str().unwrap().contains(words))
}

#[test]
fn max_duration_ends_run_by_number() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let closed = ["--call", SLOW, "-d", SLOW_DATA, "-c", "2"];
    let open = ["--call", UNARY, "--rps", "20"];
    let check = |words: &[&str], calls: u64| {
        let run = load_json(&addresses[0], &[words, &["-n", "1000", "-x", "1s"]].concat());
        assert_eq!((&run["ok"], &run["stopped_early"]), (&calls.into(), &true.into()), "{run}");
        assert!(
            has_note(&run, "the time limit of 1s (-x) ended the run before all 1000 calls started"),
            "{}",
            run["notes"]
        );
        assert!(run["duration_ns"].as_u64().unwrap() >= 1_000_000_000, "{}", run["duration_ns"]);
    };
    // Each of the two workers starts calls at about 0, 400 and 800 ms, and started calls are awaited.
    check(&closed, 6);
    check(&open, 20);
    for words in [&closed[..], &open] {
        let run = load_json(&addresses[0], &[words, &["-n", "3", "--max-duration", "1h"]].concat());
        assert_eq!((&run["ok"], &run["stopped_early"]), (&3.into(), &false.into()), "{run}");
        assert!(!has_note(&run, "time limit"), "{}", run["notes"]);
    }
    let check = |words: &[&str], expected: &str| {
        let (code, _, stderr) = load(&addresses[0], words);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(&["--call", UNARY, "-x", "1s"], "--total <N>");
    check(&["--call", UNARY, "-n", "1", "-x", "soon"], "invalid value 'soon'");
    check(
        &["--call", UNARY, "-n", "1", "-x", "0s"],
        "the duration and the number of calls must be greater than 0",
    );
}

/// A closed loop of calls of 400 ms; at 1 s calls are in flight.
#[test]
fn duration_stop_closes_waits_for_or_ignores_calls_in_flight() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let closed =
        ["--call", SLOW, "-d", SLOW_DATA, "-c", "2", "--warmup", "0s", "-z", "1s", "--max-errors", "1"];
    let run = |more: &[&str]| load_json(&addresses[0], &[&closed[..], more].concat());
    let counts = |run: &Value| (run["ok"].as_u64().unwrap(), run["failed"].as_u64().unwrap());
    let duration = |run: &Value| run["duration_ns"].as_u64().unwrap();

    let by_loop = run(&[]);
    assert_eq!((counts(&by_loop), duration(&by_loop)), ((4, 0), SECOND));
    assert!(by_loop["drain_ns"].as_u64().unwrap() >= 100_000_000, "{}", by_loop["drain_ns"]);

    let wait = run(&["--duration-stop", "wait"]);
    assert_eq!((counts(&wait), &wait["drain_ns"]), ((6, 0), &0.into()));
    assert!(duration(&wait) >= 1_200_000_000, "{}", wait["duration_ns"]);

    let close = run(&["--duration-stop", "close"]);
    assert_eq!((counts(&close), duration(&close)), ((4, 2), SECOND));
    assert_eq!(close["errors"]["CANCELLED"], 2);
    assert!(has_note(&close, "still running when the measurement ended"), "{}", close["notes"]);
    let longest = close["failed_latency"]["max"].as_u64().unwrap();
    assert!(longest < 390_000_000, "they were not waited for: {longest} ns");

    let ignore = run(&["--duration-stop", "ignore"]);
    assert_eq!((counts(&ignore), duration(&ignore)), ((4, 0), SECOND));
    assert!(ignore["drain_ns"].as_u64().unwrap() < 190_000_000, "{}", ignore["drain_ns"]);
}

#[test]
fn open_loop_supports_close_and_ignore() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    // Calls start at 0, 250, 500 and 750 ms; the last is in flight at 1 s.
    let open = ["--call", SLOW, "-d", SLOW_DATA, "--rps", "4", "-z", "1s", "--max-errors", "1"];
    let counts = |stop: &[&str]| {
        let run = load_json(&addresses[0], &[&open[..], stop].concat());
        assert_eq!(run["duration_ns"], 1_000_000_000, "{run}");
        (run["ok"].as_u64().unwrap(), run["failed"].as_u64().unwrap())
    };
    assert_eq!(counts(&[]), (4, 0));
    assert_eq!(counts(&["--duration-stop", "wait"]), (4, 0));
    assert_eq!(counts(&["--duration-stop", "close"]), (3, 1));
    assert_eq!(counts(&["--duration-stop", "ignore"]), (3, 0));
    let check = |words: &[&str], expected: &str| {
        let (code, _, stderr) = load(&addresses[0], words);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(&["--call", UNARY, "--duration-stop", "kill"], "close, wait, ignore");
    check(&["--call", UNARY, "-n", "1", "--duration-stop", "close"], "needs a time limit");
}

#[test]
fn a_run_has_a_name_and_tags() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let files = ["a.json", "b.json"].map(path);
    let base =
        ["--call", UNARY, "-n", "5", "-c", "1", "--name", "nightly <1>", "--tags", r#"{"build": "7"}"#];
    for (file, part) in files.iter().zip(["part=0", "part=1"]) {
        let (code, _, stderr) =
            load(&addresses[0], &[&base[..], &["--tags", part, "-O", "json", "-o", file]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        let run: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(run["name"], "nightly <1>");
        assert_eq!(run["tags"], serde_json::json!({"build": "7", "part": &part[5..]}));
    }
    let merge = |format: &str| {
        let (code, stdout, stderr) =
            outcome(thalweg(&["merge", &files[0], &files[1], "-O", format]).output().unwrap());
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    };
    let merged: Value = serde_json::from_str(&merge("json")).unwrap();
    assert_eq!(
        (&merged["name"], &merged["tags"]),
        (&"nightly <1>".into(), &serde_json::json!({"build": "7"}))
    );
    let text = merge("text");
    assert!(text.starts_with(&format!("nightly <1>: {UNARY}, ")), "{text}");
    assert!(text.contains("\ntags          build=7\n"), "{text}");
    let page = merge("html");
    assert!(page.contains("<title>nightly &lt;1&gt;") && page.contains("build=7"), "{page}");
    assert!(!merge("csv").contains("nightly"));
    let check = |words: &[&str], expected: &str| {
        let (code, _, stderr) = load(&addresses[0], words);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(&["--call", UNARY, "--tags", "build"], "invalid tag");
    check(&["--call", UNARY, "--tags", r#"{"build": 7}"#], "tags must be an object of strings");
    check(&["--call", UNARY, "--tags", "a=1", "--tags", "a=2"], "--tags has `a` twice");
    check(&["--call", UNARY, "--name", ""], "a name must be one non-empty line");
}

#[test]
fn scheduled_workers_end_with_number_or_schedule() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    // One of the two workers never starts a call.
    let run = load_json(&addresses[0], &["--call", UNARY, "--workers", "1", "-c", "2", "-n", "5"]);
    assert_eq!((&run["ok"], &run["stopped_early"]), (&5.into(), &false.into()), "{run}");
    assert!(run["duration_ns"].as_u64().unwrap() < 5 * SECOND, "{}", run["duration_ns"]);

    let slow = ["--call", SLOW, "-d", SLOW_DATA, "--workers", "2..0/1s", "-c", "2", "-n", "1000"];
    let run = load_json(&addresses[0], &slow);
    assert_eq!(run["stopped_early"], true);
    let words = "the --workers schedule ended before all 1000 calls started";
    assert!(has_note(&run, words), "{}", run["notes"]);
}

/// The last of 20 calls at 100/s starts after 190 ms and takes 400 ms.
#[test]
fn scheduled_run_by_number_is_measured_until_last_start() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let run = load_json(&addresses[0], &["--call", SLOW, "-d", SLOW_DATA, "--rps", "100", "-n", "20"]);
    assert_eq!((&run["ok"], &run["dropped"]), (&20.into(), &0.into()), "{run}");
    assert_eq!((&run["duration_ns"], &run["rate_per_s"]), (&(SECOND / 5).into(), &100.0.into()), "{run}");
    assert_eq!(run["scheduled_per_s"], 100.0, "{run}");
    assert!(run["drain_ns"].as_u64().unwrap() >= SECOND / 3, "{}", run["drain_ns"]);
}

#[test]
fn think_time_ends_with_run() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let step = format!("[[flow]]\n[[flow.step]]\ncall = \"{UNARY}\"\nthink = \"1h\"\n");
    fs::write(&file, step).unwrap();
    let file = file.display().to_string();
    for end in [&["-z", "300ms"][..], &["-n", "2"], &["-z", "300ms", "--duration-stop", "wait"]] {
        let run =
            load_json(&addresses[0], &[&["--scenario", &file, "-c", "2", "--warmup", "0s"], end].concat());
        assert_eq!(run["ok"], 2, "{end:?}: {run}");
    }
}

/// Repeated ends of intervals do not postpone the end of an interrupted run.
#[test]
fn calls_in_flight_have_one_second_after_interrupt() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let data = r#"{"response_parameters": [{"size": 1, "interval_us": 60000000}]}"#;
    let words =
        ["--call", SLOW, "-d", data, "--timeout", "2m", "--interval", "100ms", "-z", "1h", "-O", "json"];
    let load = Running::start(&[&["load", &addresses[0]], &words[..]].concat());
    // The client is idle while it waits for responses.
    std::thread::sleep(Duration::from_secs(1));
    load.signal(Signal::SIGINT);
    let interrupted = Instant::now();
    let (code, stdout, stderr) = load.end();
    assert_eq!(code, Some(130), "{stderr}");
    let waited = interrupted.elapsed();
    assert!(waited < Duration::from_secs(20), "{waited:?}: as long as the calls take");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert!(has_note(&run, "interrupted"), "{}", run["notes"]);
}

/// A ramp from 50/s to 0 in a second has 25 calls, plus one at its end.
#[test]
fn early_end_of_schedule_is_noted() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["--call", UNARY, "--rps", "50..0/1s", "-n", "1000"];
    let note = "the schedule ended after 26 of 1000 calls";
    for more in [&[][..], &["-x", "1h"]] {
        let run = load_json(&addresses[0], &[&words[..], more].concat());
        assert_eq!((&run["ok"], &run["stopped_early"]), (&26.into(), &true.into()), "{run}");
        assert!(has_note(&run, note), "{}", run["notes"]);
    }
    for format in ["text", "html"] {
        let (code, stdout, stderr) = load(&addresses[0], &[&words[..], &["-O", format]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains(note), "{stdout}");
    }
    let enough = load_json(&addresses[0], &["--call", UNARY, "--rps", "50..0/1s", "-n", "26"]);
    assert_eq!((&enough["ok"], &enough["stopped_early"]), (&26.into(), &false.into()), "{enough}");
    let part = load_json(&addresses[0], &[&words[..], &["--share", "1/2"]].concat());
    assert!(has_note(&part, "the schedule ended after 13 of 500 calls"), "{part}");
}
