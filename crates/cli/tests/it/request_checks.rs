//! Tests that errors in requests, files and flags are reported before anything is sent.

use std::fs;

use serde_json::Value;

use crate::support::{Running, load_json, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
const SHOP: &str = "
    syntax = 'proto2';
    package shop;
    message Item { required string name = 1; }
    message Order { required int64 id = 1; repeated Item items = 2; }
    service Orders { rpc Place(Order) returns (Order); }";
/// Redefines a client-streaming method of the server, which waits for all requests, with a required field.
const COUNTED: &str = "
    syntax = 'proto2';
    package grpc.testing;
    message Counted { required int64 count = 100; }
    service TestService { rpc StreamingInputCall(stream Counted) returns (Counted); }";

fn run(words: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(words).output().unwrap())
}

#[test]
fn request_without_required_field_is_rejected() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let proto = folder.path().join("shop.proto").display().to_string();
    fs::write(&proto, SHOP).unwrap();
    let refused = |words: &[&str], parts: &[&str]| {
        let (code, _, stderr) = run(&[words, &["--proto", &proto]].concat());
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        assert!(parts.iter().all(|part| stderr.contains(part)), "{words:?}: {parts:?} in {stderr}");
    };
    let call = ["call", &addresses[0], "shop.Orders/Place"];
    let load = ["load", &addresses[0], "--call", "shop.Orders/Place", "-n", "1"];
    for words in [&call[..], &load] {
        let with = |data: &[&str], parts: &[&str]| {
            let is_missing = ["not a valid shop.Order: ", "required field"];
            refused(&[words, data].concat(), &[&is_missing, parts].concat());
        };
        with(&[], &["id"]);
        with(&["-d", "{}"], &["id"]);
        with(&["-d", r#"{"id": 1, "items": [{"name": "a"}, {}]}"#], &["items[1]", "name"]);
        with(&["-I", "text", "-d", "id: 1 items { name: 'a' } items {}"], &["items[1].name"]);
    }
    let counted = folder.path().join("counted.proto").display().to_string();
    fs::write(&counted, COUNTED).unwrap();
    let stream = ["call", &addresses[0], "grpc.testing.TestService/StreamingInputCall"];
    let (code, _, stderr) = run(&[&stream[..], &["-d", "{\"count\": 1} {}", "--proto", &counted]].concat());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("request 2") && stderr.contains("count"), "{stderr}");
    // Bytes are sent unchecked, and the server does not have the method.
    let (code, _, stderr) = run(&[&call[..], &["-I", "binary", "-d", "", "--proto", &proto]].concat());
    assert_eq!(code, Some(64 + 12), "{stderr}");
}

#[test]
fn load_limits_response_size() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words =
        ["--call", UNARY, "-n", "3", "-c", "1", "--max-errors", "1", "-d", r#"{"response_size": 2000000}"#];
    let run = load_json(&addresses[0], &words);
    assert_eq!((&run["ok"], &run["failed"]), (&3.into(), &0.into()));
    let run = load_json(&addresses[0], &[&words[..], &["--max-message-size", "1MiB"]].concat());
    assert_eq!(run["errors"], serde_json::json!({ "RESOURCE_EXHAUSTED": 3 }), "{run}");
    let (_, help, _) = self::run(&["load", "--help"]);
    assert!(help.contains("--max-message-size <SIZE>") && help.contains("[default: 64MiB]"), "{help}");
}

#[test]
fn descriptor_set_is_distinguished_from_proto_source() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set.pb").display().to_string();
    let (code, _, stderr) = run(&["call", &addresses[0], "list", "--protoset-out", &set]);
    assert_eq!(code, Some(0), "{stderr}");
    for words in [
        &["call", "list", "--proto", &set][..],
        &["load", "127.0.0.1:1", "--call", UNARY, "--proto", &set],
        &["inspect", "--hex", "08 01", "--proto", &set],
    ] {
        let (code, _, stderr) = run(words);
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        let expected = format!("{set} is a descriptor set, not a .proto file; use --protoset {set}");
        assert!(stderr.contains(&expected), "{words:?}: {stderr}");
    }
    assert_eq!(run(&["call", "list", "--protoset", &set]).0, Some(0));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        fs::write(&path, format!("\u{feff}{text}")).unwrap();
        path
    };
    let json = file("request.json", r#"{"response_size": 1}"#);
    let call = ["call", &addresses[0], UNARY, "--compact", "-d"];
    let (code, stdout, stderr) = run(&[&call[..], &[&format!("@{json}")]].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), "{\"payload\":{\"body\":\"AA==\"}}\n"), "{stderr}");
    let text = file("request.txt", "response_size: 1");
    let (code, stdout, stderr) = run(&[&call[..], &[&format!("@{text}"), "-I", "text"]].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), "{\"payload\":{\"body\":\"AA==\"}}\n"), "{stderr}");
    let proto = file("shop.proto", SHOP);
    let (code, stdout, stderr) = run(&["call", "list", "--proto", &proto]);
    assert_eq!((code, stdout.as_str()), (Some(0), "shop.Orders\n"), "{stderr}");

    let scenario = file("flow.toml", &format!("[[flow]]\n[[flow.step]]\ncall = \"{UNARY}\"\n"));
    let rates = file("rates", "100/100ms\n");
    let run: Value = load_json(
        &addresses[0],
        &["--scenario", &scenario, "--rps", &format!("@{rates}"), "-z", "100ms", "--max-errors", "1"],
    );
    let rows = file("rows.csv", "response_size\n1\n");
    load_json(&addresses[0], &["--call", UNARY, "-n", "1", "-c", "1", "-d", &format!("@{rows}")]);
    let result = file("result.json", &run.to_string());
    let (code, _, stderr) = self::run(&["merge", &result]);
    assert_eq!(code, Some(0), "{stderr}");
    let (code, _, stderr) = self::run(&["compare", &result, &result]);
    assert_eq!(code, Some(0), "{stderr}");
}
