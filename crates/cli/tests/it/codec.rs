//! Tests `thalweg lab codec` with minimal measuring time.

use std::fs;
use std::path::Path;

use crate::support::{has_answer, outcome, peers_with_codecs, thalweg};
use serde_json::Value;

const PROTO: &str = "syntax = 'proto3'; package shop;
    message Order { string item = 1; int32 count = 2; repeated double prices = 3; }";
const JSON_LINES: &str =
    "{\"item\": \"boot\", \"count\": 2}\n\n{\"item\": \"hat\",\n \"prices\": [9.5, 10]}\n";
/// The same two messages, delimited.
const BINARY: &[u8] =
    b"\x08\x0a\x04boot\x10\x02\x17\x0a\x03hat\x1a\x10\0\0\0\0\0\0\x23\x40\0\0\0\0\0\0\x24\x40";

/// One step, two rounds and no slow parts.
const LEAST: &[&str] =
    &["--steps", "10", "--rounds", "2", "--budget", "1s", "--no-instructions", "--no-calls"];

/// Creates a folder with a schema and `data`. Returns the arguments that name them.
fn own(name: &str, data: &[u8], type_name: &str) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("shop.proto"), PROTO).unwrap();
    fs::write(at(name), data).unwrap();
    let arguments =
        ["--proto", &at("shop.proto"), "--type", type_name, "--data", &at(name)].map(str::to_owned).to_vec();
    (folder, arguments)
}

/// Runs the study. Returns stdout, stderr and the results.
fn study(arguments: &[&str]) -> (String, String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (out_argument, peers) = (out.to_str().unwrap(), peers_with_codecs().to_str().unwrap());
    let arguments = [&["lab", "codec", "--out", out_argument, "--peers", peers], arguments].concat();
    let (code, stdout, stderr) = outcome(thalweg(&arguments).output().unwrap());
    has_answer(code, &stderr);
    for file in ["results.csv", "report.html"] {
        assert!(fs::metadata(out.join(file)).unwrap().len() > 100, "{file}");
    }
    let mut kept = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    assert!(kept.all(|path| path.is_file()), "what can be made again is not kept");
    (stdout, stderr, results(&out))
}

fn results(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap()
}

fn names(results: &Value, of: &str) -> Vec<String> {
    let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
    results[of].as_array().unwrap().iter().map(name).collect()
}

/// Asserts that each line has a window in both rounds.
fn assert_measured(results: &Value) {
    let codecs = names(results, "codecs");
    for codec in &codecs {
        for operation in ["encode", "decode", "round_trip"] {
            let is_it = |step: &&Value| {
                step["codec"] == codec.as_str() && step["operation"] == operation && step["again"] != true
            };
            let step = results["steps"].as_array().unwrap().iter().find(is_it);
            let step = step.unwrap_or_else(|| panic!("{codec} has no {operation}"));
            // Other programs, such as parallel tests, may invalidate a window.
            let windows = ["elapsed_ns", "not_valid"].map(|of| step[of].as_array().map_or(0, Vec::len));
            assert_eq!(windows.iter().sum::<usize>(), 2, "{codec}, {operation}");
        }
    }
    assert_eq!(results["allocations"].as_array().unwrap().len(), codecs.len() * 3);
}

#[test]
fn user_messages_are_converted_by_dynamic_codecs() {
    for (name, data) in [("orders.jsonl", JSON_LINES.as_bytes()), ("orders.bin", BINARY)] {
        let (_folder, arguments) = own(name, data, "shop.Order");
        let arguments: Vec<&str> =
            arguments.iter().map(String::as_str).chain(LEAST.iter().copied()).collect();
        let (stdout, _, results) = study(&arguments);
        assert_eq!(
            names(&results, "codecs"),
            [
                "thalweg",
                "prost-reflect",
                "serde_json-value",
                "prost-reflect-json",
                "thalweg-json",
                "rmp-serde-value",
                "thalweg-msgpack"
            ]
        );
        assert_measured(&results);
        assert_eq!(
            (&results["data"][0]["name"], &results["data"][0]["messages"]),
            (&"shop.Order".into(), &2.into())
        );
        assert_eq!(results["sizes"][0]["raw"], 15.5, "{name}: 8 and 23 bytes");
        assert!(stdout.contains("known at run time only, so codecs with generated code"), "{stdout}");
    }
}

/// Both studies report the same errors before writing anything.
#[test]
fn invalid_user_messages_are_rejected() {
    let check = |name: &str, data: &[u8], type_name: &str, parts: &[&str]| {
        let (folder, own) = own(name, data, type_name);
        let out = folder.path().join("out");
        let refused = |study: &[&str]| {
            let own = own.iter().map(String::as_str);
            let arguments: Vec<&str> = ["lab"]
                .iter()
                .chain(study)
                .copied()
                .chain(["--out", out.to_str().unwrap()])
                .chain(own)
                .collect();
            let (code, stdout, stderr) = outcome(thalweg(&arguments).output().unwrap());
            assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(2), "", 1), "{stderr}");
            assert!(!out.exists());
            stderr
        };
        let peers = peers_with_codecs().to_str().unwrap();
        let stderr = refused(&[&["codec", "--peers", peers], LEAST].concat());
        for part in parts {
            assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
        }
        assert_eq!(refused(&["json", "--quick"]), stderr);
    };
    let lines = JSON_LINES.as_bytes();
    check(
        "a.jsonl",
        lines,
        "shop.Order2",
        &["unknown message `shop.Order2` in ", "shop.proto", "it has shop.Order"],
    );
    check("a.jsonl", b"{}\n\n{\"item\": 1}\n", "shop.Order", &["a.jsonl, line 3: ", "item", "string"]);
    check("a.jsonl", b"{}\n{\"size\": 1}\n", "shop.Order", &["a.jsonl, line 2: ", "size"]);
    check("a.jsonl", b"{}\n{}\n{]\n", "shop.Order", &["a.jsonl, line 3: ", "at column 2"]);
    check("a.jsonl", b"\n", "shop.Order", &["a.jsonl contains no messages"]);
    check("a.bin", b"", "shop.Order", &["a.bin contains no messages"]);
    check("a.bin", b"\x00\x05\x0a", "shop.Order", &["a.bin, message 2: ", "expected 5 bytes", "found 1"]);
    check("a.bin", b"\x02\x0a\x05", "shop.Order", &["a.bin, message 1: "]);
    check("a.bin", lines, "shop.Order", &["a.bin, message 1: "]);
}

#[test]
fn study_measures_calls_and_generated_messages() {
    let arguments = [
        "--messages",
        "person-sparse",
        "--steps",
        "10,100",
        "--rounds",
        "2",
        "--budget",
        "1s",
        "--no-instructions",
    ];
    let (stdout, stderr, results) = study(&arguments);
    assert_eq!(names(&results, "codecs").len(), 11, "{stderr}");
    assert_measured(&results);
    let left_out = results["left_out"].as_array().unwrap();
    let is_disturbed = |left_out: &Value| left_out["reason"].as_str().unwrap().contains("waited for a CPU");
    assert!(left_out.iter().all(is_disturbed), "{left_out:?}");
    if !left_out.is_empty() {
        return;
    }
    let calls = results["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 4, "Protobuf and JSON, alone and with 64 in flight");
    assert!(calls.iter().all(|calls| calls["rounds"].as_array().unwrap().len() == 3), "{calls:?}");
    for topic in
        ["Where Protobuf wins", "Where it does not", "Bytes", "Share of a whole call", "MessagePack", "Noise"]
    {
        assert!(stdout.contains(topic), "{topic} is not in {stdout}");
    }
}

/// Instruction counts are deterministic and grow with the work.
#[test]
#[ignore = "needs valgrind"]
fn instructions_are_counted() {
    let mut arguments = LEAST.to_vec();
    arguments.retain(|argument| *argument != "--no-instructions");
    arguments.extend(["--messages", "person-sparse,order", "--codecs", "prost,serde_json"]);
    let (_, _, results) = study(&arguments);
    assert_eq!(results["left_out"], Value::Array(Vec::new()));
    let counted = results["instructions"].as_array().unwrap();
    assert_eq!(counted.len(), 2 * 2 * 3);
    let of = |data: &str, codec: &str, operation: &str| {
        let is_it =
            |line: &&Value| line["data"] == data && line["codec"] == codec && line["operation"] == operation;
        counted.iter().find(is_it).unwrap()["instructions"].as_f64().unwrap()
    };
    for data in ["person-sparse", "order"] {
        for codec in ["prost", "serde_json"] {
            let [encode, decode, both] = ["encode", "decode", "round_trip"].map(|it| of(data, codec, it));
            assert!(encode >= 20.0, "{data}, {codec}: {encode}");
            let sum = encode + decode;
            assert!((both / sum - 1.0).abs() < 0.2, "{data}, {codec}: {encode} + {decode} = {both}?");
        }
    }
    assert!(of("order", "prost", "encode") > of("person-sparse", "prost", "encode"));
    assert!(of("order", "serde_json", "decode") > of("order", "prost", "decode"));
}

/// The error says how to get missing codecs.
#[test]
fn missing_codec_program_gets_hint() {
    let folder = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str], code: i32, parts: &[&str]| {
        let arguments = [&["lab", "codec", "--out", "out"], arguments].concat();
        let output = thalweg(&arguments).current_dir(folder.path()).output().unwrap();
        let (found, stdout, stderr) = outcome(output);
        assert_eq!((found, stdout.as_str(), stderr.lines().count()), (Some(code), "", 1), "{stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
        }
        assert!(!folder.path().join("out").exists());
    };
    check(&["--peers", "none"], 1, &["none/codec/peer is not there", "`cargo xtask peers codec`", "--peers"]);
    let peers = peers_with_codecs().to_str().unwrap();
    let unknown = ["unknown codec `xml`; use one of prost, buffa, ", "thalweg-msgpack"];
    check(&["--peers", peers, "--codecs", "prost,xml"], 2, &unknown);
    check(
        &["--peers", peers, "--messages", "letter"],
        2,
        &["unknown message `letter`; use one of person-full"],
    );
}
