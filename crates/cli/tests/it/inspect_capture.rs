//! Tests `thalweg inspect` with packet captures: from grpcurl and of connections recorded here.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;

use etherparse::PacketBuilder;
use serde_json::Value;

use crate::recorded::{Recorded, record};
use crate::support::{Running, outcome, thalweg};

const GRPCURL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/grpcurl.pcap");
const GRPCIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/grpcio.pcap.gz");
const ALL_PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/all.proto");
const PROTOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/proto");

fn inspect(arguments: &[&str]) -> (Option<i32>, String, String) {
    outcome(thalweg(&[&["inspect"], arguments].concat()).output().unwrap())
}

/// Inspects with the schema of the called services.
fn inspect_known(arguments: &[&str]) -> String {
    let proto = format!("{PROTOS}/grpc/testing/test.proto");
    let schema = ["--proto", &proto, "--import-path", PROTOS];
    let (code, stdout, stderr) = inspect(&[arguments, &schema].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    stdout
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn calls_of_grpcurl_are_listed() {
    let (code, listed, stderr) = inspect(&[GRPCURL]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with(" call  began (UTC)          took  status"), "{listed}");
    let parts = [
        "    1  03:04:47.298735    696 µs  OK  ",
        "  1, 2 B  ",
        "  1, 7 B  ",
        "grpc.testing.TestService/UnaryCall, 127.0.0.1:47476 > 127.0.0.1:13020",
    ];
    assert_has(lines[1], &parts);
    assert_has(lines[2], &["  FAILED_PRECONDITION  ", "  0, 0 B  "]);
    assert_has(lines[3], &["  OK  ", "  2, 8 B  ", "  2, 11 B  ", "/FullDuplexCall, "]);
    assert_eq!(lines[4..], ["", "3 calls on 3 HTTP/2 connections, 54 packets"]);
    let (_, some, _) = inspect(&[GRPCURL, "--call", "Duplex"]);
    assert_has(&some, &["    3  ", "1 of 3 calls on 3 HTTP/2 connections"]);
    assert!(!some.contains("UnaryCall"), "{some}");
}

/// C-core peers send binary metadata raw, after a NUL.
#[test]
fn binary_metadata_and_details_of_c_core_are_decoded() {
    let test_proto = format!("{PROTOS}/grpc/testing/test.proto");
    let schemas = ["--proto", ALL_PROTO, "--proto", &test_proto, "--import-path", PROTOS];
    let (code, text, stderr) = inspect(&[&[GRPCIO, "--call", "5"], &schemas[..]].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{text}");
    assert_has(
        &text,
        &[
            "each message is a tb.All\n",
            "< trailer grpc-status-details-bin: CAMSEMO8bsOvOiBiYWQKdGhpbmc",
            "\nINVALID_ARGUMENT (3): ",
            "  detail: tb.Sub {\"s\":\"detail\"}\n",
            "  detail: google.rpc.BadRequest {",
        ],
    );
}

#[test]
fn capture_is_read_from_pipe() {
    let mut child = thalweg(&["inspect", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = fs::read(GRPCURL).unwrap();
    thread::spawn(move || {
        // In pieces with arbitrary boundaries.
        for piece in bytes.chunks(7) {
            stdin.write_all(piece).unwrap();
        }
    });
    let (code, stdout, stderr) = outcome(child.wait_with_output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout, inspect(&[GRPCURL]).1);
}

#[test]
fn captured_messages_are_decoded_by_method_types() {
    let text = inspect_known(&[GRPCURL, "--call", "1-2"]);
    assert_has(
        &text,
        &[
            "call 1: grpc.testing.TestService/UnaryCall at 127.0.0.1:13020, from 127.0.0.1:47476, stream 1, 2026-",
            "> trace-id: 7\n",
            "> content-type: application/grpc\n",
            "< content-type: application/grpc\n",
            "call 1, requests: 7 bytes, read as messages with gRPC framing",
            "each message is a grpc.testing.SimpleRequest\n",
            "int32 response_size = 2",
            "each message is a grpc.testing.SimpleResponse\n",
            "\nOK (0)\n* ",
            "\ncall 2: grpc.testing.TestService/UnaryCall",
            "< trailer grpc-message: not yet\n",
            "\nFAILED_PRECONDITION (9): not yet\n",
            "2 of 3 calls",
        ],
    );
    // Without a schema only the wire format is shown.
    let (_, text, _) = inspect(&[GRPCURL, "--call", "Unary", "-v"]);
    assert_has(&text, &["field 2  tag 16 = (2 << 3) | 0, VARINT", "2 of 3 calls"]);
}

#[test]
fn json_output_has_document_per_call_and_summary() {
    let text = inspect_known(&[GRPCURL, "-O", "json"]);
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<_, _>>().unwrap();
    let [unary, failed, duplex, capture] = &documents[..] else { panic!("{text}") };
    assert_eq!((&unary["schema"], &unary["call"]), (&"thalweg.inspect-call/1".into(), &1.into()));
    assert_eq!(unary["requests"]["messages"][0]["fields"][0]["value"], 3);
    assert_eq!((&unary["status"]["name"], &unary["ended"]), (&"OK".into(), &"OK".into()));
    assert_eq!((&failed["status"]["code"], &failed["status"]["message"]), (&9.into(), &"not yet".into()));
    assert!(failed["responses"].is_null());
    assert_eq!((&duplex["sent"]["messages"], &duplex["received"]["bytes"]), (&2.into(), &11.into()));
    assert_eq!(duplex["responses"]["messages"].as_array().unwrap().len(), 2);
    assert_eq!((&capture["schema"], &capture["calls"]), (&"thalweg.inspect-capture/1".into(), &3.into()));
    assert_eq!((&capture["connections"]["http2"], &capture["gaps"]), (&3.into(), &0.into()));
}

#[test]
fn incomplete_and_invalid_captures_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.pcap");
    let file = file.to_str().unwrap();
    let bytes = fs::read(GRPCURL).unwrap();
    fs::write(file, &bytes[..bytes.len() - 10]).unwrap();
    let (code, stdout, stderr) = inspect(&[file]);
    assert_eq!(code, Some(1));
    assert_has(&stdout, &["3 calls on 3 HTTP/2 connections"]);
    assert_eq!(stderr, format!("error: {file}: truncated in the middle of a packet\n"));

    let check = |arguments: &[&str], expected: &str| {
        let (code, _, stderr) = inspect(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert_has(&stderr, &[expected]);
    };
    check(&["--hex", "08 01", "-v"], "--hex is neither pcap nor pcapng");
    check(&["--hex", "08 01", "--call", "1"], "-v, --call and --keylog need a capture");
    check(&[GRPCURL, "--framing", "grpc"], "methods define the types; leave out --type and --framing");
    check(&[GRPCURL, "--call", "1-x"], "invalid call number `x`");
}

/// Returns a raw IP capture of the connection without its handshake, in segments of up to 100 bytes. Omits segment
/// `lost` of the server.
pub(crate) fn capture(recorded: &Recorded, lost: Option<usize>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    let mut sequences = [1_u32, 1];
    let mut of_server = 0;
    let pieces = recorded.lock().unwrap().clone();
    let segments =
        pieces.iter().flat_map(|piece| piece.bytes.chunks(100).map(|part| (piece.is_client, part)));
    for (at, (is_client, bytes)) in (1_u32..).zip(segments) {
        let (source, destination) =
            if is_client { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        let (from, to) = if is_client { (40_000, 50_051) } else { (50_051, 40_000) };
        let [client, server] = sequences;
        let (sequence, acknowledged) = if is_client { (client, server) } else { (server, client) };
        sequences[usize::from(!is_client)] += bytes.len() as u32;
        of_server += usize::from(!is_client);
        if !is_client && lost == Some(of_server) {
            continue;
        }
        let packet =
            PacketBuilder::ipv4(source, destination, 64).tcp(from, to, sequence, 1000).ack(acknowledged);
        let mut built = Vec::new();
        packet.write(&mut built, bytes).unwrap();
        let len = built.len() as u32;
        for word in [1_700_000_000, at, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(built);
    }
    file
}

#[test]
fn recorded_connection_has_all_calls() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let (address, recorded) = record(addresses[0].clone());
    let method = "grpc.testing.TestService/FullDuplexCall";
    let requests = r#"{"response_parameters": [{"size": 3000}]} {"response_parameters": [{"size": 1}]}"#;
    let words = ["call", &address, method, "-d", requests, "--compress", "gzip", "--compact"];
    let (code, stdout, stderr) = outcome(thalweg(&words).output().unwrap());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recorded.pcap");
    fs::write(&file, capture(&recorded, None)).unwrap();
    let file = file.to_str().unwrap();
    let text = inspect_known(&[file, "-v", "--call", method]);
    assert_has(
        &text,
        &[
            "> grpc-encoding: gzip\n",
            "flags 1: compressed",
            "gzip: ",
            "each message is a grpc.testing.StreamingOutputCallRequest\n",
            "message 2 of 2\n",
            "each message is a grpc.testing.StreamingOutputCallResponse\n",
            "\nOK (0)\n",
        ],
    );
    assert!(!text.contains("note: "), "{text}");
    let listed = inspect_known(&[file]);
    assert_has(
        &listed,
        &["grpc.reflection.v1.ServerReflection/ServerReflectionInfo, ", "2 calls on 1 HTTP/2 connection,"],
    );

    // With a lost segment, the data after it is not decoded.
    fs::write(file, capture(&recorded, Some(20))).unwrap();
    let listed = inspect_known(&[file]);
    assert_has(
        &listed,
        &["note: 100 bytes missing from the capture, in 1 place\n", "2 calls on 1 HTTP/2 connection,"],
    );
    assert_has(&listed, &["data of the server was not decoded further: 100 bytes are not in the capture"]);
}

#[test]
fn tls_is_decrypted_with_key_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &["--tls", "--threads", "1"]);
    let (address, recorded) = record(addresses[0].clone());
    let (target, keys, file) = (format!("https://{address}"), path("keys"), path("recorded.pcap"));
    let method = "grpc.testing.TestService/UnaryCall";
    let words = ["call", &target, method, "-d", r#"{"response_size": 3}"#, "-insecure", "-m", "trace: 7"];
    let (code, _, stderr) = outcome(thalweg(&words).env("SSLKEYLOGFILE", &keys).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    fs::write(&file, capture(&recorded, None)).unwrap();
    let (_, closed, _) = inspect(&[&file]);
    assert_has(&closed, &["no gRPC calls on ", "note: 1 TLS connection not decrypted: use --keylog"]);
    let text = inspect_known(&[&file, "--keylog", &keys, "-v", "--call", "Unary"]);
    assert_has(&text, &["> trace: 7\n", "int32 response_size = 2", "\nOK (0)\n"]);
    assert!(!text.contains("note: "), "{text}");

    fs::write(path("other"), "# no secrets\n").unwrap();
    let (_, closed, _) = inspect(&[&file, "--keylog", &path("other")]);
    assert_has(&closed, &["secrets missing from the key log"]);
    fs::write(path("other"), "no key log\n").unwrap();
    let (code, _, stderr) = inspect(&[&file, "--keylog", &path("other")]);
    assert_eq!(code, Some(1), "{stderr}");
    assert_has(&stderr, &["line 1: the secret is not hex"]);
    let (code, _, stderr) = inspect(&["--hex", "08 01", "--keylog", &keys]);
    assert_eq!(code, Some(2), "{stderr}");
}
