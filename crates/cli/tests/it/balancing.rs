//! Tests `load` and `call` with several servers.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Running, load, load_json, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";

/// Starts `COUNT` servers. Returns them with their addresses.
fn servers<const COUNT: usize>() -> [(Running, String); COUNT] {
    std::array::from_fn(|_| {
        let (server, mut addresses) = Running::serve(&["127.0.0.1:0"]);
        (server, addresses.remove(0))
    })
}

fn list(servers: &[(Running, String)]) -> String {
    let addresses: Vec<&str> = servers.iter().map(|(_, address)| address.as_str()).collect();
    addresses.join(",")
}

/// Returns the calls to the server and the failed ones.
fn calls(run: &Value, address: &str) -> (u64, Option<u64>) {
    let rows = run["servers"].as_array().unwrap();
    let row = rows.iter().find(|row| row["server"] == address);
    row.map_or((0, Some(0)), |row| (row["calls"].as_u64().unwrap(), row["failed"].as_u64()))
}

#[test]
fn no_call_fails_when_one_of_three_servers_stops() {
    let mut servers = Vec::from(servers::<3>());
    let target = format!("ipv4:{}", list(&servers));
    let words = ["--lb", "round_robin", "--call", UNARY, "--rps", "300", "-z", "1h", "--announce"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json").display().to_string();
    let mut load = Running::start(&[&["load", &target], &words[..], &["-O", "json", "-o", &file]].concat());
    assert_eq!(load.line(), "measuring");
    std::thread::sleep(Duration::from_millis(500));
    let (stopped, stopped_address) = servers.remove(1);
    stopped.signal(Signal::SIGTERM);
    assert_eq!(stopped.end().0, Some(0));
    std::thread::sleep(Duration::from_millis(500));
    load.signal(Signal::SIGINT);
    let (code, _, stderr) = load.end();
    assert_eq!(code, Some(130), "{stderr}");
    let run: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(run["failed"], 0, "{run}");
    let [stopped, first, last] =
        [&stopped_address, &servers[0].1, &servers[1].1].map(|address| calls(&run, address));
    // An attempt that the stopped server has not processed is made again elsewhere.
    let ok = [stopped, first, last].map(|(calls, failed)| calls - failed.unwrap()).iter().sum::<u64>();
    assert_eq!(run["ok"], ok, "{run}");
    assert!(stopped.0 > 0 && stopped.0 < first.0.min(last.0), "{:?}", run["servers"]);
    assert!(first.0.abs_diff(last.0) <= ok / 10, "{:?}", run["servers"]);
}

#[test]
fn servers_of_a_list_take_turns_by_flag_or_service_config() {
    let servers = servers::<2>();
    // A list may have names, too.
    let target = list(&servers).replacen("127.0.0.1", "localhost", 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    fs::write(&file, "\u{feff}{\"loadBalancingConfig\": [{\"round_robin\": {}}]}").unwrap();
    let file = format!("@{}", file.display());
    for words in [["--lb", "round_robin"], ["--service-config", &file]] {
        let run = load_json(&target, &[&words[..], &["-n", "40", "-c", "1"]].concat());
        let all = servers.each_ref().map(|(_, address)| calls(&run, address));
        assert_eq!(all, [(20, Some(0)); 2], "{run}");
        for server in run["servers"].as_array().unwrap() {
            let latency = &server["latency"];
            assert_eq!(latency["count"], 20, "{run}");
            assert!(latency["p50"].as_u64() <= latency["max"].as_u64(), "{run}");
            assert!(latency["max"].as_u64() <= run["latency"]["max"].as_u64(), "{run}");
        }
    }
    let (code, text, stderr) = load(&target, &["--lb", "round_robin", "-n", "40", "-c", "1"]);
    assert_eq!(code, Some(0), "{stderr}");
    for (_, address) in &servers {
        let line = text.lines().find(|line| line.contains(&format!("{address}  20 calls (50 %), ")));
        assert!(line.is_some_and(|line| line.contains("/s, 0 failed, p50 ")), "{text}");
    }
    let (code, stdout, stderr) =
        outcome(thalweg(&["call", &target, "--lb", "round_robin", UNARY]).output().unwrap());
    assert_eq!((code, stdout.trim()), (Some(0), "{}"), "{stderr}");
    let server = stderr.trim().strip_prefix("server: ").expect("the server");
    assert!(servers.iter().any(|(_, address)| address == server), "{stderr}");
    let (code, _, stderr) = outcome(thalweg(&["call", &servers[0].1, UNARY]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "one server is no choice");
}

#[test]
fn one_server_has_no_lines_and_two_targets_have_two() {
    let servers = servers::<2>();
    let (code, text, stderr) = load(&servers[0].1, &["-n", "10"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!text.contains("\nservers"), "{text}");
    let run = load_json(&servers[0].1, &["-n", "10"]);
    assert!(run["servers"][0]["latency"].is_null(), "{run}");
    let run = load_json(&servers[0].1, &["--also", &servers[1].1, "-n", "40", "-c", "1"]);
    assert_eq!(run["servers"][1]["latency"]["count"], 20, "{run}");
    assert_eq!(calls(&run, &servers[0].1), (20, Some(0)), "{run}");
}

/// Without a policy, one of several addresses is used.
#[test]
fn pick_first_shows_the_server_of_its_calls() {
    let servers = servers::<2>();
    let target = format!("127.0.0.1:1,{}", list(&servers));
    let run = load_json(&target, &["-n", "10"]);
    assert_eq!(run["servers"].as_array().unwrap().len(), 1, "{run}");
    assert_eq!(calls(&run, &servers[0].1), (10, Some(0)), "{run}");
    assert_eq!(run["servers"][0]["latency"]["count"], 10, "{run}");
    let (code, text, stderr) = load(&target, &["-n", "10"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(text.contains(&format!("\nservers       {}  10 calls (100 %), ", servers[0].1)), "{text}");
    // A list that does not balance has its connections in total.
    assert!(text.contains("1 connection on ") && text.contains("1 requested, 1 established"), "{text}");
}

#[test]
fn pick_first_has_latencies_of_both_servers_after_a_failover() {
    let mut servers = Vec::from(servers::<2>());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json").display().to_string();
    let words = ["--rps", "200", "-z", "1h", "--announce", "-O", "json", "-o", &file];
    let mut load = Running::start(&[&["load", &list(&servers)], &words[..]].concat());
    assert_eq!(load.line(), "measuring");
    std::thread::sleep(Duration::from_millis(300));
    let (first, first_address) = servers.remove(0);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.end().0, Some(0));
    std::thread::sleep(Duration::from_millis(500));
    load.signal(Signal::SIGINT);
    assert_eq!(load.end().0, Some(130));
    let run: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for address in [&first_address, &servers[0].1] {
        let rows = run["servers"].as_array().unwrap();
        let row = rows.iter().find(|row| row["server"] == **address).expect("the server");
        assert!(row["latency"]["count"].as_u64().unwrap() > 0, "{run}");
    }
    adds_up(&run);
}

/// Checks that the rows of servers add up to the run's calls, latencies and intervals.
#[track_caller]
fn adds_up(run: &Value) {
    let rows = run["servers"].as_array().unwrap();
    let sum = |of: &dyn Fn(&Value) -> Option<u64>| rows.iter().filter_map(of).sum::<u64>();
    let (ok, failed) = (run["ok"].as_u64().unwrap(), run["failed"].as_u64().unwrap());
    assert_eq!(sum(&|row| row["calls"].as_u64()), ok + failed, "{rows:?}");
    assert_eq!(sum(&|row| row["failed"].as_u64()), failed, "{rows:?}");
    assert_eq!(sum(&|row| row["latency"]["count"].as_u64()), ok, "{rows:?}");
    for interval in run["intervals"].as_array().unwrap() {
        let servers = interval["servers"].as_array().into_iter().flatten();
        let calls: u64 = servers.filter_map(|server| server["calls"].as_u64()).sum();
        assert_eq!(
            calls,
            interval["ok"].as_u64().unwrap() + interval["failed"].as_u64().unwrap(),
            "{interval}"
        );
    }
}

/// Calls that end after the measured time, or started in the warm-up, count for a server as they do for the run.
#[test]
fn rows_of_servers_add_up_to_the_run() {
    let servers = servers::<3>();
    for warm_up in ["0s", "100ms"] {
        let words =
            ["--lb", "round_robin", "-z", "400ms", "--warmup", warm_up, "-c", "64", "--interval", "100ms"];
        let run = load_json(&list(&servers), &words);
        assert!(run["ok"].as_u64().unwrap() > 0, "{run}");
        adds_up(&run);
        // Beside a single target, whose calls are not noted one by one.
        adds_up(&load_json(&servers[0].1, &["--also", &servers[1].1, "-z", "200ms", "--warmup", warm_up]));
    }
}

#[test]
fn servers_that_never_connect_have_lines_with_the_reason() {
    let servers = servers::<1>();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let live = &servers[0].1;
    let target = format!("{live},127.0.0.1:1,localhost:2,{silent}");
    let words = ["--lb", "round_robin", "-n", "20"];
    let run = load_json(&target, &words);
    let rows = run["servers"].as_array().unwrap();
    assert_eq!((rows.len(), calls(&run, live)), (4, (20, Some(0))), "{run}");
    for (address, why) in [
        ("127.0.0.1:1", "Connection refused"),
        ("localhost:2", "Connection refused"),
        (&silent, "still connecting"),
    ] {
        let row = rows.iter().find(|row| row["server"] == address).unwrap_or_else(|| panic!("{rows:?}"));
        assert_eq!((&row["calls"], &row["failed"]), (&0.into(), &0.into()), "{row}");
        assert!(row["not_connected"].as_str().is_some_and(|it| it.contains(why)), "{row}");
    }
    let (code, text, stderr) = load(&target, &words);
    assert_eq!(code, Some(0), "{stderr}");
    let line = text.lines().find(|line| line.contains("127.0.0.1:1 ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("  not connected: failed to connect to 127.0.0.1:1: "), "{text}");
}

#[test]
fn connections_of_a_balanced_channel_are_to_each_server() {
    let servers = servers::<2>();
    let target = list(&servers);
    let check = |words: &[&str], title: &str, row: &str| {
        let (code, text, stderr) = load(&target, &[&["--lb", "round_robin", "-n", "20"], words].concat());
        assert_eq!(code, Some(0), "{stderr}");
        assert!(
            text.lines().next().unwrap().ends_with(&format!(", closed loop, {title} {target}")),
            "{text}"
        );
        assert!(text.contains(&format!("\nconnections   {row}")), "{text}");
    };
    check(&[], "1 connection to each server of", "1 requested to each server, 2 established\n");
    check(
        &["--connections", "2"],
        "2 connections to each server of",
        "2 requested to each server, 4 established\n",
    );
    check(&["--lanes", "adaptive"], "adaptive connections on", "adaptive, ");
}

/// Each attempt that fails with a retryable code counts, at the server where it failed.
#[test]
fn retries_and_hedges_are_counted() {
    let servers = servers::<2>();
    let config = |policy: &str| format!(r#"{{"methodConfig": [{{"name": [{{}}], {policy}}}]}}"#);
    let retry = config(
        r#""retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
            "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}"#,
    );
    let hedge = config(r#""hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0s"}"#);
    let fails = r#"{"response_status": {"code": 14}}"#;
    let words = ["--lb", "round_robin", "--call", UNARY, "-n", "10", "-c", "1", "--max-errors", "100%"];
    let sum = |run: &Value, name: &str| {
        let rows = run["servers"].as_array().unwrap();
        rows.iter().map(|row| row["attempts"][name].as_u64().unwrap()).sum::<u64>()
    };
    let target = list(&servers);
    let run = load_json(&target, &[&words[..], &["--service-config", &retry, "-d", fails]].concat());
    assert_eq!((&run["failed"], &run["attempts"]["retries"]), (&10.into(), &20.into()), "{run}");
    assert_eq!((sum(&run, "retries"), sum(&run, "hedges")), (20, 0), "{run}");
    adds_up(&run);
    let run = load_json(&target, &[&words[..], &["--service-config", &hedge]].concat());
    // A response may arrive before the hedge is sent.
    let hedges = run["attempts"]["hedges"].as_u64().unwrap();
    assert!(run["ok"] == 10 && (1..=10).contains(&hedges), "{run}");
    assert_eq!((sum(&run, "retries"), sum(&run, "hedges")), (0, hedges), "{run}");
    let words = [&words[..], &["--service-config", &retry, "-d", fails]].concat();
    let (_, text, stderr) = load(&servers[0].1, &words);
    assert!(text.contains("\nattempts      20 retries beyond the first ones\n"), "{text}{stderr}");
}

#[test]
fn streams_fewer_than_servers_have_a_note() {
    let servers = servers::<2>();
    let target = list(&servers);
    let words = ["--lb", "round_robin", "--call", "bidi-stream", "-z", "200ms", "--warmup", "0s"];
    let has_note = |run: &Value| {
        let notes = run["notes"].as_array().unwrap();
        notes.iter().any(|note| note["text"].as_str().unwrap().contains("use -c 2 or more"))
    };
    let one = load_json(&target, &words);
    assert!(has_note(&one), "{one}");
    assert_eq!(one["servers"].as_array().unwrap().len(), 2, "{one}");
    let both = load_json(&target, &[&words[..], &["-c", "2"]].concat());
    assert!(!has_note(&both), "{both}");
    assert_eq!(servers.each_ref().map(|(_, address)| calls(&both, address)), [(1, Some(0)); 2], "{both}");
}

#[test]
fn csv_has_columns_of_each_server() {
    let servers = servers::<2>();
    let (code, table, stderr) =
        load(&list(&servers), &["--lb", "round_robin", "-n", "20", "-c", "1", "-O", "csv"]);
    assert_eq!(code, Some(0), "{stderr}");
    let (names, rows) = table.split_once('\n').unwrap();
    for (_, address) in &servers {
        let at =
            |what: &str| names.split(',').position(|name| name == format!("{what}:{address}")).expect(what);
        let sum = |at: usize| -> u64 {
            rows.lines().map(|row| row.split(',').nth(at).unwrap().parse::<u64>().unwrap()).sum()
        };
        assert_eq!((sum(at("calls")), sum(at("failed"))), (10, 0), "{table}");
    }
}

/// Streams that the client cancels as planned are no failures.
#[test]
fn streams_cancelled_as_planned_have_no_failures() {
    let servers = servers::<2>();
    let words =
        ["--lb", "round_robin", "--call", "server-stream", "-c", "4", "-z", "200ms", "--warmup", "0s"];
    let run = load_json(&list(&servers), &words);
    assert_eq!(servers.each_ref().map(|(_, address)| calls(&run, address)), [(2, Some(0)); 2], "{run}");
}

#[test]
fn invalid_policies_configs_and_lists_are_bad_arguments() {
    let timeout = r#"{"methodConfig": [{"name": [{}], "timeout": "1"}]}"#;
    let policy = r#"{"loadBalancingConfig": [{"round_robin": {}}]}"#;
    let misspelt = r#"{"loadBalancingConfig": [{"round_robbin": {}}]}"#;
    let checks: &[(&[&str], &str)] = &[
        (&["--lb", "fastest"], "invalid value 'fastest' for '--lb <POLICY>'"),
        (&["--service-config", timeout], "methodConfig[0].timeout: expected a duration such as \"1.5s\""),
        (&["--service-config", "{"], "the service config is not JSON"),
        (&["--service-config", "nope.json"], "; to read a file, use --service-config @nope.json"),
        (&["--service-config", misspelt], "found round_robbin; did you mean `round_robin`?"),
        (&["--service-config", policy, "--lb", "round_robin"], "leave out --lb"),
    ];
    let check = |words: &[&str], expected: &str| {
        let (code, stdout, stderr) = outcome(thalweg(words).output().unwrap());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    for (words, expected) in checks {
        // Nothing listens there; the error comes before a connection.
        check(&[&["load", "127.0.0.1:1"], *words].concat(), expected);
        check(&[&["call", "127.0.0.1:1", "list"], *words].concat(), expected);
    }
    check(&["load", "a:1,unix:/b"], "may have only HOST:PORT, not `unix:/b`");
    check(&["call", "https://a:1,b:2", "list"], "lists several servers");
}

#[test]
fn unknown_fields_of_a_service_config_are_warnings() {
    let [(_server, address)] = servers();
    let config = r#"{"methodConfg": [], "methodConfig": [{"name": [{}], "timout": "1s"}]}"#;
    let words = ["call", &address, UNARY, "--service-config", config];
    let (code, stdout, stderr) = outcome(thalweg(&words).output().unwrap());
    assert_eq!((code, stdout.trim()), (Some(0), "{}"), "{stderr}");
    let expected = "warning: service config, methodConfg: unknown field, ignored; did you mean `methodConfig`?\n\
                    warning: service config, methodConfig[0].timout: unknown field, ignored; did you mean `timeout`?\n";
    assert_eq!(stderr, expected);
}

/// A channel over a list has one name for all servers: the error is about the one that was called.
#[test]
fn errors_name_the_list_and_the_server_of_the_call() {
    let servers = servers::<2>();
    let target = list(&servers);
    let words =
        ["call", &target, "grpc.testing.TestService/EmptyCall", "--lb", "round_robin", "--timeout", "1ns"];
    let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
    assert_ne!(code, Some(0));
    assert!(stderr.contains(&format!("EmptyCall to {target}")), "{stderr}");
}
