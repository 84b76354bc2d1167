//! Tests `thalweg link` as a process with gRPC calls through it.

use crate::support::{Running, outcome, thalweg};
use nix::sys::signal::Signal;
use serde_json::Value;

const SECOND_NS: u64 = 1_000_000_000;

/// Starts a link to `to` with these options. Returns it and its address.
fn link(to: &str, options: &[&str]) -> (Running, String) {
    let mut args = vec!["link", "--listen", "127.0.0.1:0", "--to", to, "-O", "json"];
    args.extend(options);
    let mut link = Running::start_told(&args);
    let line = link.line();
    let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("it says {line:?}"));
    assert!(!address.ends_with(":0"), "the real port is wanted: {address}");
    let address = address.to_owned();
    (link, address)
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

/// Runs `thalweg peer load` with these arguments, which must succeed.
fn load(target: &str, args: &[&str]) -> Value {
    let mut all = vec!["peer", "load", target, "-O", "json"];
    all.extend(args);
    let (code, stdout, stderr) = outcome(thalweg(&all).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "thalweg {all:?}");
    let result = json(&stdout);
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
    result
}

#[test]
fn every_call_type_works_through_link() {
    let directory = tempfile::tempdir().unwrap();
    let uds = format!("unix:{}", directory.path().join("socket").display());
    let (_server, addresses) = Running::serve(&["127.0.0.1:0", &uds]);
    for to in &addresses {
        let (mut link, address) = link(to, &["--delay", "2ms", "--jitter", "0.5ms", "--rate", "1gbit"]);
        for call in ["unary", "client-stream", "server-stream", "bidi-stream"] {
            let result = load(&address, &["--call", call, "--size", "64KiB", "-n", "50", "-c", "3"]);
            assert_eq!(result["messages"], 50, "{call} {to}: {result}");
        }
        // A round trip, less the jitter.
        let result = load(&address, &["-n", "20", "-c", "1"]);
        assert!(result["latency_ns"]["min"].as_u64() >= Some(3_000_000), "{result}");

        let stats = json(&link.tell("stats"));
        assert_eq!((&stats["schema"], &stats["to"]), (&"thalweg.link/1".into(), &to.as_str().into()));
        assert_eq!(stats["connections"]["accepted"], 5, "{stats}");
        assert!(stats["up"]["bytes"].as_u64() > Some(50 * 65_536), "{stats}");
        assert!(stats["lateness_ns"]["count"].as_u64() > Some(0), "{stats}");
        assert!(stats["wire"]["gaps_ns"]["buckets"].is_array(), "{stats}");
    }
}

#[test]
fn link_obeys_commands_on_stdin() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let (mut link, address) = link(&addresses[0], &[]);
    let mut check = |line: &str, answer: &str| assert_eq!(link.tell(line), answer, "{line}");
    check("delay 20ms", "delay 20ms");
    check("jitter normal:1ms", "jitter normal:1ms");
    check("rate 12.5MB/s", "rate 100mbit");
    check("stall 1h", "stalled for 1h");
    check("resume", "resumed");
    check("cut silent", "cut 0, silently");
    check("refuse", "refusing");
    check("accept", "accepting");
    check("jitter 0s", "jitter 0s");
    check("rate unlimited", "rate unlimited");
    check("reset", "reset");
    let error = link.tell("dance");
    assert!(error.starts_with("error: unknown command `dance`; use stall"), "{error}");
    let result = load(&address, &["-n", "3", "-c", "1"]);
    assert!(result["latency_ns"]["min"].as_u64() >= Some(40_000_000), "{result}");
    let stats = json(&link.tell("stats"));
    assert_eq!((&stats["delay_ns"], &stats["stalled"]), (&20_000_000.into(), &false.into()), "{stats}");
    // Statistics are also printed at the end.
    let last = json(&link.tell("quit"));
    assert_eq!(last["connections"]["accepted"], 1, "{last}");
    assert_eq!(link.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn stalled_link_delays_and_cut_link_fails_calls() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let (mut link, address) = link(&addresses[0], &[]);
    let args = ["peer", "load", &address, "-n", "1", "-c", "1", "-O", "json", "--timeout", "60s"];
    assert_eq!(link.tell("stall 1s"), "stalled for 1s");
    let began = std::time::Instant::now();
    assert_eq!(outcome(thalweg(&args).output().unwrap()).0, Some(0));
    // The first call precedes the measurement, and the stall started before the load.
    assert!(began.elapsed().as_nanos() as u64 > SECOND_NS / 2, "{:?}", began.elapsed());

    let load = Running::start(&["peer", "load", &address, "-z", "1h", "--warmup", "0s", "-O", "json"]);
    load.until_at_work();
    let cut = link.tell("cut");
    assert_eq!(cut, "cut 1");
    load.until_at_work();
    load.signal(Signal::SIGINT);
    let result = json(&load.end().1);
    assert!(result["errors"]["UNAVAILABLE"].as_u64() > Some(0), "{result}");
    assert!(result["messages"].as_u64() > Some(0), "{result}");
}

#[test]
fn signals_stall_cut_and_stop_link() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let (mut link, address) = link(&addresses[0], &[]);
    link.signal(Signal::SIGUSR1);
    assert_eq!(link.line(), "stalled");
    link.signal(Signal::SIGUSR1);
    assert_eq!(link.line(), "resumed");
    load(&address, &["-n", "1", "-c", "1"]);
    link.signal(Signal::SIGUSR2);
    assert!(link.line().starts_with("cut "));
    link.signal(Signal::SIGTERM);
    let (code, stdout, stderr) = link.end();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(json(&stdout)["connections"]["accepted"], 1, "{stdout}");
}

#[test]
fn statistics_are_printed_as_text() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let args =
        ["link", "--listen", "127.0.0.1:0", "--to", &addresses[0], "--delay", "1ms", "--rate", "1gbit"];
    let mut link = Running::start_told(&args);
    let line = link.line();
    load(line.strip_prefix("listening on ").unwrap(), &["-n", "10", "-c", "1"]);
    let first = link.tell("quit");
    assert!(first.ends_with(&format!(" -> {}, 1 ms one way, 125 MB/s", addresses[0])), "{first}");
    let (code, stdout, stderr) = link.end();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for part in
        ["connections   1 accepted", "up ", "down ", "lateness      p50 ", "wire idle ", "its thread "]
    {
        assert!(stdout.contains(part), "{part:?} is not in {stdout}");
    }
}
