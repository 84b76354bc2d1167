//! Tests `load` and `call` with several servers.

use std::fs;
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
    let target = list(&servers);
    let (code, text, stderr) = load(&target, &["-n", "10"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!text.contains("\nservers"), "{text}");
    let run = load_json(&servers[0].1, &["-n", "10"]);
    assert!(run["servers"][0]["latency"].is_null(), "{run}");
    let run = load_json(&servers[0].1, &["--also", &servers[1].1, "-n", "40", "-c", "1"]);
    assert_eq!(run["servers"][1]["latency"]["count"], 20, "{run}");
    assert_eq!(calls(&run, &servers[0].1), (20, Some(0)), "{run}");
}

/// The client cancels these streams, which a connection cannot distinguish from failures.
#[test]
fn streams_cancelled_as_planned_have_no_failures() {
    let servers = servers::<2>();
    let words =
        ["--lb", "round_robin", "--call", "server-stream", "-c", "4", "-z", "200ms", "--warmup", "0s"];
    let run = load_json(&list(&servers), &words);
    assert_eq!(servers.each_ref().map(|(_, address)| calls(&run, address)), [(2, None); 2], "{run}");
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
