//! Tests server and load generator as processes.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;
use thalweg::{Channel, Code};
use thalweg_services::health::pb::HealthCheckRequest;
use thalweg_services::health::pb::health_check_response::ServingStatus;
use thalweg_services::health::pb::health_client::HealthClient;

use crate::support::{Running, outcome, thalweg};

/// Loads `target` with additional arguments. Returns the JSON of the run, which must succeed.
fn check(target: &str, args: &[&str]) -> Value {
    let mut all = vec!["peer", "load", target, "-O", "json"];
    all.extend(args);
    let (code, stdout, stderr) = outcome(thalweg(&all).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "thalweg {all:?}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(result["schema"], "thalweg.load/3");
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
    assert_eq!(result["connections"]["asked"], result["connections"]["established"], "{result}");
    result
}

#[test]
fn every_call_type_works_over_every_transport() {
    let directory = tempfile::tempdir().unwrap();
    let uds = format!("unix:{}", directory.path().join("socket").display());
    let r#abstract = format!("unix-abstract:thalweg-test-{}", std::process::id());
    let (server, addresses) = Running::serve(&["127.0.0.1:0", &uds, &r#abstract]);
    assert_eq!(addresses[1..], [uds, r#abstract]);
    assert!(!addresses[0].ends_with(":0"), "the real port is wanted: {}", addresses[0]);

    for target in &addresses {
        for call in ["unary", "client-stream", "server-stream", "bidi-stream"] {
            // Below and above a frame, a window, and the size from which each message is timed.
            for (size, total) in [("0", 1000), ("1", 1001), ("16385", 100), ("64KiB", 50), ("1.5MB", 5)] {
                let total_text = total.to_string();
                let result = check(target, &["--call", call, "--size", size, "-n", &total_text, "-c", "3"]);
                assert_eq!(result["messages"], total, "{call} {size} {target}: {result}");
                let is_one_way = ["client-stream", "server-stream"].contains(&call);
                let (has, lacks) =
                    if is_one_way { ("pace_ns", "latency_ns") } else { ("latency_ns", "pace_ns") };
                let longest = &result[has][if is_one_way { "gap_max" } else { "max" }];
                assert!(longest.as_u64() > Some(0) && result[lacks].is_null(), "{result}");
            }
        }
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
}

/// Uses the standard health service, as load balancers do.
#[tokio::test]
async fn server_announces_start_and_stop() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let client = HealthClient::new(Channel::builder(&addresses[0]).connect().await.unwrap());
    let asked = |service: &str| HealthCheckRequest { service: service.to_owned() };
    for service in ["", "grpc.testing.BenchmarkService", "grpc.testing.TestService"] {
        let status = client.check(asked(service)).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service}");
    }
    assert_eq!(client.check(asked("a.B")).await.unwrap_err().code(), Code::NotFound);

    let mut watched = client.watch(asked("")).await.unwrap().into_inner();
    let mut unknown = client.watch(asked("a.B")).await.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    assert_eq!(unknown.message().await.unwrap().unwrap().status(), ServingStatus::ServiceUnknown);
    server.signal(Signal::SIGTERM);
    assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    // Open watches do not delay the shutdown.
    for mut stream in [watched, unknown] {
        assert_eq!(stream.message().await.unwrap_err().code(), Code::Unavailable);
    }
    drop(client);
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn bytes_and_connections_are_counted() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let bytes = |call: &str| {
        let result = check(
            &addresses[0],
            &["--call", call, "--size", "1KiB", "-n", "40", "-c", "4", "--connections", "4"],
        );
        assert_eq!(result["connections"]["established"], 4);
        (result["bytes_sent"].as_u64().unwrap(), result["bytes_received"].as_u64().unwrap())
    };
    assert_eq!(bytes("unary"), (40 * 1024, 40 * 1024));
    assert_eq!(bytes("client-stream"), (40 * 1024, 0));
    assert_eq!(bytes("server-stream"), (0, 40 * 1024));
    assert_eq!(bytes("bidi-stream"), (40 * 1024, 40 * 1024));
}

#[test]
fn warm_up_is_not_counted() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    for call in ["unary", "client-stream", "server-stream", "bidi-stream"] {
        let result = check(&addresses[0], &["--call", call, "-c", "2", "-n", "32", "--warmup", "100ms"]);
        assert_eq!(
            (&result["messages"], &result["settings"]["warmup_ns"]),
            (&32.into(), &100_000_000.into())
        );
    }
}

#[test]
fn several_threads_count_as_one() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    for call in ["unary", "client-stream", "server-stream", "bidi-stream"] {
        let result = check(&addresses[0], &["--call", call, "-c", "16", "--threads", "2", "-n", "20000"]);
        assert_eq!(result["messages"], 20_000);
    }
}

#[test]
fn result_is_written_to_output_file() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.txt");
    let args = ["peer", "load", &addresses[0], "-n", "10", "-o", path.to_str().unwrap()];
    assert_eq!(outcome(thalweg(&args).output().unwrap()), (Some(0), String::new(), String::new()));
    let text = fs::read_to_string(path).unwrap();
    for part in
        ["unary, 0 B, 64 in flight", "calls/s", "p99.9", "1 requested, 1 established", "errors        none"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn interrupted_run_reports_partial_result() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    for call in ["unary", "client-stream", "server-stream", "bidi-stream"] {
        let args =
            ["peer", "load", &addresses[0], "--call", call, "-z", "1h", "--warmup", "0s", "-O", "json"];
        let load = Running::start(&args);
        load.until_at_work();
        load.signal(Signal::SIGINT);
        let (code, stdout, stderr) = load.end();
        assert_eq!((code, stderr.as_str()), (Some(130), ""), "{call}");
        let result: Value = serde_json::from_str(&stdout).unwrap();
        assert!(result["messages"].as_u64() > Some(0), "{call}: {result}");
        assert!(result["notes"].to_string().contains("interrupted"), "{call}: {result}");
    }
    drop(server);
}

#[test]
fn run_interrupted_during_warm_up_has_no_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let load = Running::start(&["peer", "load", &addresses[0], "-z", "1s", "--warmup", "1h"]);
    load.until_at_work();
    load.signal(Signal::SIGINT);
    let (code, stdout, stderr) = load.end();
    assert_eq!((code, stdout.as_str()), (Some(130), ""), "{stderr}");
    assert!(stderr.contains("interrupted before measuring began"), "{stderr}");
}

#[test]
fn calls_over_server_stream_limit_wait() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--max-concurrent-streams", "3"]);
    let target = &addresses[0];
    for call in ["unary", "client-stream", "server-stream", "bidi-stream"] {
        // Calls wait for others, which is slow on a busy machine.
        let result = check(target, &["--call", call, "-c", "20", "-n", "20000", "--timeout", "2m"]);
        assert_eq!(result["messages"], 20_000, "{call}");
    }
}

#[test]
fn handlers_work_for_each_message() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--work", "2ms"]);
    let target = &addresses[0];
    // Server streams are excluded: they make many messages before sending the first.
    for call in ["unary", "client-stream", "bidi-stream", "ping-pong"] {
        let result = check(target, &["--call", call, "-c", "1", "-n", "20"]);
        // One worker on one thread takes 2 ms for each of 20 messages, except those that arrive with the first.
        let took_ns = result["duration_ns"].as_u64().unwrap();
        assert!(took_ns >= 18 * 2_000_000, "{call}: {result}");
    }
}

#[test]
fn message_over_server_limit_is_reported() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--max-message-size", "1KiB"]);
    let target = &addresses[0];
    let (code, _, stderr) = outcome(thalweg(&["peer", "load", target, "--size", "2KiB"]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("RESOURCE_EXHAUSTED") && stderr.contains("1024"), "{stderr}");
}

#[test]
fn server_exit_makes_run_not_valid() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let load = Running::start(&["peer", "load", &addresses[0], "-z", "4s", "--warmup", "0s", "-O", "json"]);
    load.until_at_work();
    drop(server);
    let (code, stdout, stderr) = load.end();
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, Some(1), "though some calls succeeded: {result}");
    assert!(stderr.contains("invalid run: the server was not reachable at the end"), "{stderr}");
    assert!(result["errors"]["UNAVAILABLE"].as_u64() > Some(0), "{result}");
}

#[test]
fn stopped_server_finishes_calls_in_flight() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let load = Running::start(&["peer", "load", &addresses[0], "-z", "1h", "--warmup", "0s"]);
    load.until_at_work();
    server.signal(Signal::SIGINT);
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
    load.signal(Signal::SIGTERM);
    assert_eq!(load.end().0, Some(130));
}

#[test]
fn measuring_is_announced_before_the_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let args = ["peer", "load", &addresses[0], "-O", "json", "--announce", "--warmup", "10ms", "-z", "20ms"];
    let (code, stdout, stderr) = outcome(thalweg(&args).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let json = stdout.strip_prefix("measuring\nmeasured\n").unwrap_or_else(|| panic!("it says {stdout:?}"));
    assert_eq!(serde_json::from_str::<Value>(json).unwrap()["schema"], "thalweg.load/3");
}

/// A type without generated code, over gRPC and JSON.
#[test]
fn user_messages_are_echoed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let proto = "syntax = 'proto3'; package shop; message Order { string item = 1; int64 count = 2; }";
    let proto = at("shop.proto", proto);
    let orders = at("orders.jsonl", "{\"item\": \"boot\", \"count\": \"2\"}\n{\"item\": \"hat\"}\n");
    let of_type = ["--proto", &proto, "--type", "shop.Order"];
    let mut flags = of_type.to_vec();
    flags.extend(["--json", "127.0.0.1:0", "--threads", "1"]);
    let (mut server, addresses) = Running::serve_with(&["127.0.0.1:0"], &flags);
    let json = server.line().strip_prefix("json on ").unwrap().to_owned();
    for (target, protocol) in [(&addresses[0], "grpc"), (&json, "json-http1"), (&json, "msgpack-h2")] {
        let own = ["--echo", "own", "--echo-messages", &orders, "--protocol", protocol, "--times"];
        let of_type = ["--echo-proto", &proto, "--echo-type", "shop.Order"];
        let result = check(target, &[&of_type[..], &own, &["-n", "20", "-c", "1"]].concat());
        assert_eq!(result["messages"], 20, "{result}");
        assert_eq!(result["settings"]["echo"]["shape"], "own");
    }
    let stderr = |args: &[&str]| outcome(thalweg(args).output().unwrap());
    let (code, _, error) = stderr(&["peer", "load", &json, "--echo", "own"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--echo own needs the messages to send"), "{error}");
    let (code, _, error) = stderr(&["serve", "--proto", &proto, "--type", "shop.Nothing"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("unknown message `shop.Nothing` in "), "{error}");
}
