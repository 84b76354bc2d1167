//! Tests bytes that `thalweg load` and `thalweg call` send: headers, order of requests and compression.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::recorded::{Asked, Recorded, record, requests};
use crate::support::{Running, load, load_json, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";

/// Starts a server with a recorder in front of it.
fn recorded() -> (Running, String, Recorded) {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let (address, recorded) = record(addresses[0].clone());
    (server, address, recorded)
}

/// Reads the prefix of the first message: whether it is compressed, and its length on the wire.
fn prefix(asked: &Asked) -> (bool, usize) {
    let (prefix, message) = asked.body.split_first_chunk::<5>().unwrap();
    let len = u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
    assert_eq!(message.len(), len, "one message");
    (prefix[0] == 1, len)
}

#[test]
fn requests_of_a_kibibyte_or_more_are_compressed() {
    // A request with a payload of zeros. Fields of payload and body add six bytes.
    let request = |bytes: usize| format!(r#"{{"payload": {{"body": "{}"}}}}"#, "AAAA".repeat(bytes / 3));
    let (under, over) = (request(1017), request(1020));
    let check = |flags: &[&str], encoding: Option<&str>, is_compressed: [bool; 2]| {
        let (_server, address, recorded) = recorded();
        let words = ["--call", UNARY, "-d", &under, "-d", &over, "-n", "2", "-c", "1"];
        let run = load_json(&address, &[&words[..], flags].concat());
        // Uncompressed sizes.
        assert_eq!((&run["ok"], &run["bytes_sent"]), (&2.into(), &(1023 + 1026).into()), "{run}");
        let requests = requests(&recorded, "/UnaryCall");
        assert_eq!(requests.len(), 2);
        for ((asked, is_compressed), len) in requests.iter().zip(is_compressed).zip([1023, 1026]) {
            assert_eq!(asked.field("grpc-encoding"), encoding, "{flags:?}");
            let (found, on_the_wire) = prefix(asked);
            assert_eq!(found, is_compressed, "{flags:?}");
            assert!(
                if found { on_the_wire < 100 } else { on_the_wire == len },
                "{flags:?}: {on_the_wire} bytes"
            );
        }
    };
    check(&[], None, [false, false]);
    check(&["--compress", "gzip"], Some("gzip"), [false, true]);
    check(&["--compress", "deflate"], Some("deflate"), [false, true]);
}

#[test]
fn calls_have_requested_authority() {
    let check = |words: &[&str], flags: &[&str]| {
        let (_server, address, recorded) = recorded();
        let (code, _, stderr) =
            outcome(thalweg(&[&[words[0], &address], &words[1..], flags].concat()).output().unwrap());
        assert_eq!(code, Some(0), "{stderr}");
        let requests = requests(&recorded, "/UnaryCall");
        let expected = flags.last().map_or(address.as_str(), |name| *name);
        assert!(!requests.is_empty());
        assert!(
            requests.iter().all(|asked| asked.field(":authority") == Some(expected)),
            "{words:?} {flags:?}"
        );
    };
    let load = ["load", "--call", UNARY, "-n", "3", "-c", "1"];
    for words in [&load[..], &["call", UNARY]] {
        check(words, &[]);
        check(words, &["--authority", "shop.example:7"]);
    }
}

/// Payloads of one, two and three bytes, in requests of 5, 6 and 7.
fn three() -> String {
    ["YQ==", "YWE=", "YWFh"].map(|body| format!(r#"{{"payload": {{"body": "{body}"}}}}"#)).concat()
}

#[test]
fn random_requests_depend_on_seed() {
    let data = three();
    let sent = |order: &[&str]| -> Vec<usize> {
        let (_server, address, recorded) = recorded();
        let words = ["--call", UNARY, "-d", &data, "-n", "60", "-c", "1"];
        let run = load_json(&address, &[&words[..], order].concat());
        assert_eq!(run["ok"], 60, "{run}");
        requests(&recorded, "/UnaryCall").iter().map(|asked| prefix(asked).1).collect()
    };
    let in_turn = sent(&[]);
    assert_eq!(in_turn, [5, 6, 7].repeat(20));
    let drawn = sent(&["--order", "random:7"]);
    assert_eq!(drawn.len(), 60);
    assert!([5, 6, 7].iter().all(|len| drawn.contains(len)), "{drawn:?}");
    assert_ne!(drawn, in_turn);
    assert_eq!(sent(&["--order", "random:7"]), drawn, "the same seed");
    assert_ne!(sent(&["--order", "random:8"]), drawn, "another one");
    let any = sent(&["--order", "random"]);
    assert!(any.len() == 60 && any != in_turn, "{any:?}");
}

#[test]
fn requests_are_read_from_stdin() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["load", &addresses[0], "--call", UNARY, "-d", "@-", "-n", "6", "-c", "1", "-O", "json"];
    let mut child = thalweg(&words).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(three().as_bytes()).unwrap();
    let (code, stdout, stderr) = outcome(child.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&run["ok"], &run["bytes_sent"]), (&6.into(), &(2 * (5 + 6 + 7)).into()), "{run}");
}

#[test]
fn descriptor_set_replaces_reflection() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set").display().to_string();
    let (server, address, recorded) = recorded();
    let (code, _, stderr) =
        outcome(thalweg(&["call", &address, UNARY, "--protoset-out", &set]).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(requests(&recorded, "/ServerReflectionInfo").len(), 1);
    recorded.lock().unwrap().clear();
    drop(server);

    let (_server, address, recorded) = self::recorded();
    let data = r#"{"response_size": 10}"#;
    let run = load_json(&address, &["--call", UNARY, "--protoset", &set, "-d", data, "-n", "5", "-c", "1"]);
    assert_eq!((&run["ok"], &run["bytes_received"]), (&5.into(), &(5 * 14).into()), "{run}");
    assert_eq!(requests(&recorded, "/UnaryCall").len(), 5);
    assert_eq!(requests(&recorded, "/ServerReflectionInfo").len(), 0);
    let (code, _, stderr) =
        load(&address, &["--call", "grpc.health.v1.Health/Check", "--protoset", &set, "-n", "1"]);
    assert_eq!(code, Some(2), "the set has no such service: {stderr}");
}

#[test]
fn schedule_is_read_from_file() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rates");
    fs::write(&file, "# at first\n50/500ms\n\n100/500ms # then\n20\n").unwrap();
    let file = format!("@{}", file.display());
    let run = load_json(&addresses[0], &["--call", UNARY, "--rps", &file, "-z", "1500ms"]);
    assert_eq!(run["schedule"], "50/500ms,100/500ms,20");
    assert_eq!((&run["ok"], &run["dropped"]), (&(25 + 50 + 10).into(), &0.into()), "{run}");
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "--rps", "@/nonexistent"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("failed to read /nonexistent"), "{stderr}");
    fs::write(&file[1..], "50/500ms\nfast\n").unwrap();
    let (code, _, stderr) = load(&addresses[0], &["--call", UNARY, "--rps", &file]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("`fast`"), "{stderr}");
}

/// The server accepts one call at a time on each connection.
#[test]
fn adaptive_channel_opens_needed_connections() {
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--max-concurrent-streams", "1"]);
    let data = r#"{"response_parameters": [{"size": 1, "interval_us": 200000}]}"#;
    let words = ["--call", "grpc.testing.TestService/StreamingOutputCall", "-d", data, "-n", "24", "-c", "8"];
    let established = |lanes: &[&str]| {
        let run = load_json(&addresses[0], &[&words[..], lanes].concat());
        assert_eq!((&run["ok"], &run["connections"]), (&24.into(), &1.into()), "{run}");
        run["connections_established"].as_u64().unwrap()
    };
    assert_eq!(established(&[]), 1);
    assert_eq!(established(&["--lanes", "fixed"]), 1);
    let adaptive = established(&["--lanes", "adaptive"]);
    assert!(adaptive > 1, "{adaptive} connections");
}
