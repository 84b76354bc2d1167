//! Tests `thalweg load` with any method: closed and open loops, stalls, conditions and errors.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Running, load, load_json, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";

#[test]
fn closed_loop_makes_requested_number_of_calls() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let run = load_json(
        &addresses[0],
        &["--call", UNARY, "-d", r#"{"response_size": 10}"#, "-n", "500", "-c", "4"],
    );
    assert_eq!(run["schema"], "thalweg.load-run/2");
    assert_eq!(
        (&run["loop"], &run["kind"], &run["method"]),
        (&"closed".into(), &"unary".into(), &UNARY.into())
    );
    assert_eq!((&run["ok"], &run["failed"], &run["dropped"]), (&500.into(), &0.into(), &0.into()));
    assert_eq!(run["latency"]["count"], 500);
    // Two bytes per request and 14 per response: a payload of 10 in two nested messages.
    assert_eq!((&run["bytes_sent"], &run["bytes_received"]), (&1000.into(), &7000.into()));
    assert_eq!(run["connections_established"], 1);
}

#[test]
fn requests_in_text_format_are_sent_in_turn() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let texts = "response_size: 10\u{1e}response_size: 20 # {{.RequestNumber}}";
    for templates in [&[][..], &["--no-templates"]] {
        let flags = ["--call", UNARY, "-I", "text", "-d", texts, "-n", "100"];
        let run = load_json(&addresses[0], &[&flags, templates].concat());
        assert_eq!(run["ok"], 100, "{run}");
        // Responses of 14 and 24 bytes.
        assert_eq!(run["bytes_received"], 50 * 14 + 50 * 24, "{run}");
    }
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "-I", "text", "-d", "size: 1"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("request 1 is not a valid grpc.testing.SimpleRequest: line 1, column 1"),
        "{stderr}"
    );
}

/// Like ghz, sends elements in turn to unary methods, and all of them in each stream.
#[test]
fn json_array_elements_are_messages() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let array = r#"[{"response_size": 10}, {"response_size": {{.RequestNumber}}}]"#;
    for (data, received) in
        [(r#"[{"response_size": 10}, {"response_size": 20}]"#, 5 * 14 + 5 * 24), (array, 0)]
    {
        let run = load_json(&addresses[0], &["-call", UNARY, "-data", data, "-n", "10", "-concurrency", "1"]);
        assert_eq!(run["ok"], 10, "{run}");
        if received > 0 {
            assert_eq!(run["bytes_received"], received, "{run}");
        }
    }
    let stream = "grpc.testing.TestService/StreamingInputCall";
    let payloads = r#"[{"payload": {"body": "YWJj"}}, {"payload": {"body": "YWJj"}}]"#;
    let run = load_json(&addresses[0], &["--call", stream, "-d", payloads, "-n", "4", "-c", "1"]);
    assert_eq!(run["bytes_sent"], 4 * 2 * 7, "{run}");
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "-d", "[]"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("-d has no message"), "{stderr}");
}

#[test]
fn several_binary_messages_are_sent() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        format!("@{}", path.display())
    };
    // Requests for payloads of 10 and 20 bytes, in responses of 14 and 24.
    let (one, other) = (file("one", b"\x10\x0a"), file("other", b"\x10\x14"));
    let both = file("both", b"\x02\x10\x0a\x02\x10\x14");
    let unary = ["--call", UNARY, "-n", "10", "-c", "1"];
    let check = |words: &[&str], sent: u64, received: u64| {
        let run = load_json(&addresses[0], words);
        assert_eq!(
            (&run["bytes_sent"], &run["bytes_received"]),
            (&sent.into(), &received.into()),
            "{words:?}"
        );
    };
    check(&[&unary[..], &["-I", "binary", "-d", &one]].concat(), 20, 10 * 14);
    check(&[&unary[..], &["-I", "binary", "-d", &one, "-d", &other]].concat(), 20, 5 * 14 + 5 * 24);
    check(&[&unary[..], &["-I", "delimited", "-d", &both]].concat(), 20, 5 * 14 + 5 * 24);
    check(
        &[&unary[..], &["-d", r#"{"response_size": 10}"#, "-d", r#"{"response_size": 20}"#]].concat(),
        20,
        190,
    );
    // A stream sends all messages in each call, as in `thalweg call`. A payload of 3 bytes makes a request of 7: 5 plus
    // tag and length.
    let stream = ["--call", "grpc.testing.TestService/StreamingInputCall", "-n", "4", "-c", "1"];
    let payloads = file("payloads", b"\x07\x0a\x05\x12\x03abc\x07\x0a\x05\x12\x03abc");
    for input in ["binary", "delimited"] {
        let run = load_json(&addresses[0], &[&stream[..], &["-I", input, "-d", &payloads]].concat());
        assert_eq!((&run["messages_sent"], &run["bytes_sent"]), (&8.into(), &56.into()), "{run}");
    }
    let check = |bytes: &[u8], expected: &str| {
        let data = file("wrong", bytes);
        let (code, _, stderr) =
            load(&addresses[0], &[&unary[..], &["-I", "delimited", "-d", &data]].concat());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(
        b"\x02\x10\x0a\x02\x10",
        "wrong: message 2 is truncated; expected each message after its length as a varint",
    );
    check(b"", "wrong has no message");
}

#[test]
fn generated_messages_have_order_of_constant_messages() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    // Payloads of one, two and three bytes, in requests of 5, 6 and 7.
    let data = |kind: &str| {
        let request = |body: &str| format!(r#"{{"payload": {{"type": {kind}, "body": "{body}"}}}}"#);
        ["YQ==", "YWE=", "YWFh"].map(request).concat()
    };
    let (constant, made) = (data("0"), data("{{randomInt 0 0}}"));
    for data in [&constant, &made] {
        // Two calls with two messages each: the first and second, then the third and first.
        let stream = ["--call", "grpc.testing.TestService/StreamingInputCall", "--messages", "2"];
        let run = load_json(&addresses[0], &[&stream[..], &["-d", data, "-n", "2", "-c", "1"]].concat());
        assert_eq!(run["bytes_sent"], 5 + 6 + 7 + 5, "{data}");
        // Calls with one request take the next message, even if the response is a stream.
        for method in ["UnaryCall", "StreamingOutputCall"] {
            let method = format!("grpc.testing.TestService/{method}");
            let run = load_json(&addresses[0], &["--call", &method, "-d", data, "-n", "4", "-c", "1"]);
            assert_eq!(run["bytes_sent"], 5 + 6 + 7 + 5, "{method}: {data}");
        }
    }
}

#[test]
fn load_runs_all_four_call_types() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let streaming = r#"{"response_parameters": [{"size": 1}, {"size": 2}]}"#;
    let check = |method: &str, data: &str, messages: &str, kind: &str, sent: u64, received: u64| {
        let method = format!("grpc.testing.TestService/{method}");
        let of_stream: &[&str] = if messages.is_empty() { &[] } else { &["--messages", messages] };
        let words = [&["--call", &method, "-d", data, "-n", "10", "-c", "2"], of_stream].concat();
        let run = load_json(&addresses[0], &words);
        assert_eq!(
            (&run["kind"], &run["ok"], &run["failed"]),
            (&kind.into(), &10.into(), &0.into()),
            "{run}"
        );
        let counted = (run["messages_sent"].as_u64(), run["messages_received"].as_u64());
        assert_eq!(counted, (Some(sent), Some(received)), "{kind}");
        assert_eq!(run["reply"].is_null(), kind != "bidi-stream", "{kind}");
    };
    check("UnaryCall", "{}", "", "unary", 10, 10);
    check("StreamingInputCall", "{}", "3", "client-stream", 30, 10);
    check("StreamingOutputCall", streaming, "", "server-stream", 10, 20);
    check("FullDuplexCall", r#"{"response_parameters": [{"size": 1}]}"#, "5", "bidi-stream", 50, 50);
}

#[test]
fn open_loop_starts_all_scheduled_calls() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let run = load_json(&addresses[0], &["--call", UNARY, "--rps", "100..500/2s", "-z", "3s"]);
    // 300 per second on average for two seconds, then 500.
    assert_eq!(
        (&run["ok"], &run["dropped"], &run["loop"]),
        (&1100.into(), &0.into(), &"open".into()),
        "{run}"
    );
    let intervals = run["intervals"].as_array().unwrap();
    let scheduled: f64 = intervals.iter().map(|interval| interval["scheduled"].as_f64().unwrap()).sum();
    assert!((scheduled - 1100.0).abs() < 1e-6, "{scheduled}");
    assert_eq!(intervals.iter().map(|interval| interval["ok"].as_u64().unwrap()).sum::<u64>(), 1100);
    assert_eq!(run["wait"]["count"], 1100);
    let poisson = load_json(
        &addresses[0],
        &["--call", UNARY, "--rps", "500", "--arrivals", "poisson", "--seed", "7", "-z", "1s"],
    );
    assert_eq!(poisson["spacing"], "poisson");
    // 500 with a standard deviation of 22; the seed makes it reproducible.
    assert!((420..580).contains(&poisson["ok"].as_u64().unwrap()), "{}", poisson["ok"]);
}

/// The server stops for two of four seconds, while half of all calls are scheduled.
#[test]
fn server_stall_delays_all_calls_scheduled_during_it() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut client =
        thalweg(&["load", &addresses[0], "--call", UNARY, "--rps", "1000", "-z", "4s", "-O", "json"])
            .spawn()
            .unwrap();
    std::thread::sleep(Duration::from_secs(1));
    server.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(2));
    server.signal(Signal::SIGCONT);
    let mut stdout = String::new();
    std::io::Read::read_to_string(client.stdout.as_mut().unwrap(), &mut stdout).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(0));
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&run["ok"], &run["failed"], &run["dropped"]), (&4000.into(), &0.into(), &0.into()));
    let p99 = run["latency"]["p99"].as_u64().unwrap();
    assert!(p99 >= 1_000_000_000, "p99 is {p99} ns");
    // More calls were due than may be in flight, so some started late.
    assert!(run["late"].as_u64().unwrap() >= 900, "{}", run["late"]);
    assert!(
        run["notes"][0]["text"].as_str().unwrap().contains("started more than 1 ms late"),
        "{}",
        run["notes"]
    );
    // A note names that limit. Of the 2,000 calls due during the stop, 1,000 could start.
    assert!(run["held_back"].as_u64().unwrap() >= 900, "{}", run["held_back"]);
    let bound = run["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap());
    let bound: Vec<&str> = bound.filter(|text| text.contains("1000 calls were in flight")).collect();
    assert_eq!(
        bound,
        [format!("{} starts waited because 1000 calls were in flight, the limit of -c", run["held_back"])]
    );
}

#[test]
fn in_flight_limit_is_noted_only_if_reached() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let bounds = |run: &Value| {
        let notes = run["notes"].as_array().unwrap().iter();
        notes.filter(|note| note["text"].as_str().unwrap().contains("in flight")).count()
    };
    // A burst of ten, four of which may be in flight.
    let words = ["--call", UNARY, "--rps", "10@500ms", "-n", "10"];
    let run = load_json(&addresses[0], &[&words[..], &["-c", "4"]].concat());
    assert_eq!((&run["ok"], &run["held_back"], bounds(&run)), (&10.into(), &6.into(), 1), "{run}");
    let run = load_json(&addresses[0], &[&words[..], &["-c", "10"]].concat());
    assert_eq!((&run["ok"], &run["held_back"], bounds(&run)), (&10.into(), &0.into(), 0), "{run}");
    let run = load_json(&addresses[0], &["--call", UNARY, "-n", "10", "-c", "4"]);
    assert_eq!((&run["held_back"], bounds(&run)), (&Value::Null, 0), "a closed loop has no starts: {run}");
}

#[test]
fn failed_conditions_exit_with_3() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let arguments = ["--call", UNARY, "-n", "100", "--expect", "errors<=0, p99<1h", "--expect", "calls>100"];
    let (code, stdout, stderr) = load(&addresses[0], &arguments);
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stderr.contains("condition failed: calls>100 is 100"), "{stderr}");
    assert!(stdout.contains("passed        errors<=0: 0.0000 %"), "{stdout}");
    let (code, ..) = load(&addresses[0], &arguments[..6]);
    assert_eq!(code, Some(0));
}

#[test]
fn failed_calls_are_counted_by_status_and_exit_with_1() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let data = r#"{"response_status": {"code": 5, "message": "not here"}}"#;
    let arguments = ["--call", UNARY, "-n", "4", "-c", "1", "-d", data];
    let (code, stdout, stderr) = load(&addresses[0], &arguments);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stderr.contains("4 of 4 calls failed") && stderr.contains("NOT_FOUND: not here"), "{stderr}");
    assert!(stdout.contains("errors        4 NOT_FOUND"), "{stdout}");
    // One of two calls fails.
    let both = format!("{{}}{data}");
    let mixed = [&arguments[..7], &[&both, "--max-errors", "50%"]].concat();
    let (code, stdout, stderr) = load(&addresses[0], &mixed);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
}

#[test]
fn invalid_loads_are_explained() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |arguments: &[&str], expected_code: i32, expected: &str| {
        let (code, stdout, stderr) = load(&addresses[0], arguments);
        assert_eq!((code, stdout.as_str()), (Some(expected_code), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    check(&["--call", "grpc.testing.TestService/UnaryCal"], 2, "did you mean `UnaryCall`?");
    check(&["--call", UNARY, "--rps", "fast"], 2, "`fast` is not a number");
    check(&["--call", UNARY, "--expect", "p100<1s"], 2, "unknown figure `p100`");
    check(&["--call", UNARY, "-d", "{\"a\": 1}"], 2, "request 1 is not a valid grpc.testing.SimpleRequest");
    check(
        &["--call", UNARY, "--size", "1KiB"],
        2,
        "--size sets the payload of grpc.testing.BenchmarkService",
    );
    check(&["--call", UNARY, "-c", "1", "--connections", "2"], 2, "-c 1 is less than --connections 2");
    check(&["--call", "nothing"], 2, "invalid call type");
    let (code, _, stderr) = load("127.0.0.1:1", &["--call", UNARY]);
    assert_eq!(code, Some(1), "{stderr}");
}

#[test]
fn results_are_merged() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let files = ["a.json", "b.json"].map(path);
    let mut counts = Vec::new();
    for (file, calls) in files.iter().zip(["300", "200"]) {
        let (code, _, stderr) =
            load(&addresses[0], &["--call", UNARY, "-n", calls, "-c", "2", "-O", "json", "-o", file]);
        assert_eq!(code, Some(0), "{stderr}");
        let run: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        counts.push(run["latency"]["max"].as_u64().unwrap());
    }
    let merge = |arguments: &[&str]| outcome(thalweg(&[&["merge"], arguments].concat()).output().unwrap());
    let (code, stdout, stderr) = merge(&[&files[0], &files[1], "-O", "json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let merged: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&merged["ok"], &merged["latency"]["count"]), (&500.into(), &500.into()));
    assert_eq!(merged["latency"]["max"].as_u64(), counts.iter().max().copied());
    let (code, stdout, _) = merge(&[&files[0]]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains(UNARY), "{stdout}");
    std::fs::write(path("c.json"), "{}").unwrap();
    let (code, _, stderr) = merge(&[&files[0], &path("c.json")]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("c.json: not a result of"), "{stderr}");
}

#[test]
fn templates_are_filled_for_each_call() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    // Responses with payloads of 0, 1, 2 and 3 bytes. All but the first have two tags and two lengths.
    let data = r#"{"response_size": {{.RequestNumber}}}"#;
    let metadata = "x-grpc-test-echo-initial: {{.UUID}}";
    let run = load_json(&addresses[0], &["--call", UNARY, "-n", "4", "-c", "1", "-d", data, "-m", metadata]);
    assert_eq!((&run["ok"], &run["bytes_received"]), (&4.into(), &18.into()), "{run}");
    let check = |data: &str, expected: &str| {
        let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "-n", "1", "-d", data]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(r#"{"response_size": {{.Nothing}}}"#, "request 1: `{{.Nothing}}` is unknown");
    check(r#"{"response_size": "{{.UUID}}"}"#, "request 1 is not a valid grpc.testing.SimpleRequest");
    // Later requests are invalid. They are counted but not sent.
    let data =
        r#"{"response_status": {"message": "a"}, "response_size": "{{randomInt 0 1}}.{{.RequestNumber}}"}"#;
    let (code, stdout, stderr) = load(&addresses[0], &["--call", UNARY, "-n", "4", "-c", "1", "-d", data]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stderr.contains("failed to build the request"), "{stderr}");
}

/// Calls take 400 ms, so none ends within 100 ms.
#[test]
fn conditions_on_invalid_run_are_noted() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let slow = r#"{"response_parameters": [{"size": 1, "interval_us": 400000}]}"#;
    let method = "grpc.testing.TestService/StreamingOutputCall";
    let words = ["--call", method, "-d", slow, "-c", "2", "-z", "100ms", "--warmup", "0s", "--expect"];
    let why = "no call finished in the measured time";
    for (condition, expected, said) in [
        ("calls>=1", Some(3), format!("condition failed: calls>=1 is 0; invalid run: {why}")),
        ("dropped<=0", Some(1), format!("warning: all conditions passed, but the run is invalid: {why}")),
    ] {
        let (code, stdout, stderr) = load(&addresses[0], &[&words[..], &[condition]].concat());
        assert_eq!(code, expected, "{stdout}{stderr}");
        assert!(stderr.contains(&said), "{stderr}");
        let (_, behind) =
            stdout.split_once(&format!("NOT VALID     {why}\n")).unwrap_or_else(|| panic!("{stdout}"));
        assert!(behind.contains("may be due to the client, not the server"), "{stdout}");
    }
}

/// The run is judged anyway.
#[test]
fn baseline_with_other_settings_is_noted() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.json").display().to_string();
    let old = ["--call", UNARY, "--rps", "100", "-n", "20", "-c", "4"];
    let (code, ..) = load(&addresses[0], &[&old[..], &["-O", "json", "-o", &path]].concat());
    assert_eq!(code, Some(0));
    let mut before: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    // With this baseline no run is worse.
    for figure in ["mean", "p50", "p99"] {
        before["latency"][figure] = 3_600_000_000_000_u64.into();
    }
    // This machine may have been busy.
    before["not_valid"] = serde_json::json!([]);
    std::fs::write(&path, before.to_string()).unwrap();
    let note = |words: &[&str]| -> Vec<String> {
        let run = load_json(&addresses[0], &[words, &["--baseline", &path]].concat());
        assert_eq!(run["gates"].as_array().unwrap().len(), 4, "{run}");
        let notes =
            run["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap().to_owned());
        notes.filter(|note| note.contains("differ") || note.contains("had not finished")).collect()
    };
    assert_eq!(note(&old), Vec::<String>::new());
    let said = "compared although they differ in ";
    let other = ["--call", UNARY, "--rps", "200", "-n", "20", "-c", "8", "--connections", "2"];
    let differs = "in flight (4 and 8); connections (1 and 2); schedule (100 and 200)";
    assert_eq!(note(&other), [format!("{said}{differs}")]);
    before["machine"]["cpu"] = "Abacus".into();
    std::fs::write(&path, before.to_string()).unwrap();
    let notes = note(&old);
    assert!(notes.len() == 1 && notes[0].contains("the machine's processor (Abacus and "), "{notes:?}");
    // A partial result, as a killed run leaves.
    before["so_far"] = true.into();
    std::fs::write(&path, before.to_string()).unwrap();
    let notes = note(&old);
    assert!(notes.len() == 2 && notes[1].contains("the baseline: the run had not finished"), "{notes:?}");
}

#[test]
fn run_worse_than_baseline_exits_with_3() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.json").display().to_string();
    let base = ["--call", UNARY, "-n", "200", "-c", "1"];
    let (code, ..) = load(&addresses[0], &[&base[..], &["-O", "json", "-o", &path]].concat());
    assert_eq!(code, Some(0));
    let mut old: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    // A baseline with an hour per call.
    for figure in ["mean", "p50", "p99"] {
        old["latency"][figure] = 3_600_000_000_000_u64.into();
    }
    old["rate_per_s"] = 1e-3.into();
    std::fs::write(&path, old.to_string()).unwrap();
    let (code, stdout, stderr) = load(&addresses[0], &[&base[..], &["--baseline", &path]].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("passed        rate at most 10 % worse than the baseline ("), "{stdout}");
    // One of 200 calls fails and none in the baseline: less than 1 percentage point.
    let one = ["-d", &["{}".repeat(199).as_str(), r#"{"response_status": {"code": 5}}"#].concat()];
    let (code, stdout, stderr) = load(&addresses[0], &[&base[..], &one, &["--baseline", &path]].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let above = "failed calls at most 1 percentage point above the baseline (0 %): 0.50 %";
    assert!(stdout.contains(&format!("passed        {above}")), "{stdout}");
    // Half of the calls fail and fewer in the baseline: first within chance, then significantly.
    let failing = r#"{}{"response_status": {"code": 5}}"#;
    let (failing, mut before) = (["-d", failing, "--max-errors", "1", "--baseline", &path], old.clone());
    for (failed, expected, says) in [(95, Some(0), "passed"), (20, Some(3), "FAILED")] {
        (before["ok"], before["failed"]) = ((200 - failed).into(), failed.into());
        std::fs::write(&path, before.to_string()).unwrap();
        let (code, stdout, stderr) = load(&addresses[0], &[&base[..], &failing].concat());
        assert_eq!(code, expected, "half of the calls failed, and {failed} of 200 before: {stdout}{stderr}");
        assert!(stdout.contains(&format!("{says}        failed calls at most")), "{stdout}");
    }
    // A baseline whose calls took no time.
    (old["latency"]["p99"], old["rate_per_s"]) = (1.into(), 1e9.into());
    std::fs::write(&path, old.to_string()).unwrap();
    let (code, stdout, stderr) = load(&addresses[0], &[&base[..], &["--baseline", &path]].concat());
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stderr.contains("p99 at most 10 %") && stderr.contains("rate at most 10 %"), "{stderr}");
    let larger = ["--max-regression", "100%"];
    let (_, stdout, _) = load(&addresses[0], &[&base[..], &["--baseline", &path], &larger].concat());
    assert!(stdout.contains("p99 at most 100 % worse"), "{stdout}");
    let other =
        ["--call", "grpc.testing.TestService/EmptyCall", "-n", "1", "-O", "json", "--baseline", &path];
    let (code, stdout, stderr) = load(&addresses[0], &other);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("the baseline and this run are not comparable: they differ in method ("),
        "{stderr}"
    );
    // The run's result is still printed.
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["ok"], 1, "{told}");
}
