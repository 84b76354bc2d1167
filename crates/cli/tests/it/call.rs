//! Tests `thalweg call` with `thalweg serve`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::support::{Running, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";
const FULL_DUPLEX: &str = "grpc.testing.TestService/FullDuplexCall";

/// Runs `thalweg call` with a new server.
fn call(arguments: &[&str]) -> (Option<i32>, String, String) {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    call_at(&addresses[0], arguments)
}

fn call_at(address: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let words = [&["call", address], arguments].concat();
    outcome(thalweg(&words).output().unwrap())
}

#[test]
fn unary_call_sends_and_prints_json() {
    let (code, stdout, stderr) = call(&[UNARY, "-d", r#"{"response_size": 3}"#]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout, "{\n  \"payload\": {\n    \"body\": \"AAAA\"\n  }\n}\n");
}

#[test]
fn options_change_what_is_printed() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |flags: &[&str], expected: &str| {
        let (code, stdout, stderr) = call_at(&addresses[0], &[&[UNARY], flags].concat());
        assert_eq!(code, Some(0), "{flags:?}: {stderr}");
        assert_eq!(stdout, expected, "{flags:?}");
    };
    check(&["--compact"], "{}\n");
    check(&[], "{}\n");
    check(&["--compact", "-d", r#"{"responseSize": 1}"#], "{\"payload\":{\"body\":\"AA==\"}}\n");
    check(&["-O", "binary", "-d", r#"{"responseSize": 1}"#], "\n\u{3}\u{12}\u{1}\0");
    check(&["--compact", "--allow-unknown-fields", "-d", r#"{"nothing": 1}"#], "{}\n");
    let (_, stdout, _) = call_at(&addresses[0], &[UNARY, "--emit-defaults", "--schema-names", "--compact"]);
    assert!(stdout.contains("\"oauth_scope\":\"\""), "{stdout}");
}

#[test]
fn requests_are_read_from_files_and_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("request.json");
    fs::write(&file, r#"{"response_size": 2}"#).unwrap();
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let (code, stdout, _) =
        call_at(&addresses[0], &[UNARY, "--compact", "-d", &format!("@{}", file.display())]);
    assert_eq!((code, stdout.as_str()), (Some(0), "{\"payload\":{\"body\":\"AAA=\"}}\n"));

    // Two delimited requests, for one byte and for two.
    let binary = folder.path().join("requests.bin");
    fs::write(&binary, [4, 0x12, 2, 8, 1, 4, 0x12, 2, 8, 2]).unwrap();
    let (code, stdout, stderr) =
        call_at(&addresses[0], &[FULL_DUPLEX, "-I", "binary", "-d", &format!("@{}", binary.display())]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, "{\"payload\":{\"body\":\"AA==\"}}\n{\"payload\":{\"body\":\"AAA=\"}}\n");
}

#[test]
fn text_format_works_for_requests_and_responses() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) =
            call_at(&addresses[0], &[&["-I", "text", "-O", "text"], arguments].concat());
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert_eq!(stdout, expected, "{arguments:?}");
    };
    check(&[UNARY, "-d", "response_size: 2 # bytes"], "payload {\n  body: \"\\000\\000\"\n}\n");
    check(&[UNARY, "--compact", "-d", "response_size: 1"], "payload { body: \"\\000\" }\n");
    check(&[UNARY], "");
    check(&["grpc.health.v1.Health/Check"], "status: SERVING\n");
    // Messages of a stream are separated by the ASCII record separator.
    let sizes =
        "response_parameters { size: 1 }\u{1e}response_parameters: [{ size: 2 }, { size: 3 }]\n\u{1e}\n";
    check(
        &[FULL_DUPLEX, "-d", sizes],
        "payload { body: \"\\000\" }\n\u{1e}payload { body: \"\\000\\000\" }\n\u{1e}\
         payload { body: \"\\000\\000\\000\" }\n",
    );
    check(
        &[FULL_DUPLEX, "--pretty", "-d", "\u{1e}response_parameters { size: 1 }"],
        "payload {\n  body: \"\\000\"\n}\n",
    );
    let wrong = |text: &str| {
        let (code, _, stderr) = call_at(&addresses[0], &[UNARY, "-I", "text", "-d", text]);
        assert_eq!(code, Some(2), "{stderr}");
        stderr
    };
    let stderr = wrong("response_size: 1 response_size: 2");
    assert!(stderr.contains("line 1, column 18: response_size: duplicate field"), "{stderr}");
    let stderr = wrong("response_size: 1\u{1e}response_size: 2");
    assert!(stderr.contains("the method takes one request"), "{stderr}");
    let flags = [UNARY, "-I", "text", "--allow-unknown-fields", "-d", "nothing { a: 1 }"];
    let (code, stdout, stderr) = call_at(&addresses[0], &flags);
    assert_eq!((code, stdout.as_str()), (Some(0), "{}\n"), "{stderr}");
}

#[test]
fn bidi_requests_are_sent_line_by_line() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut client =
        thalweg(&["call", &addresses[0], FULL_DUPLEX, "-d", "@-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = client.stdin.take().unwrap();
    let mut stdout = BufReader::new(client.stdout.take().unwrap());
    // Each request is written after the previous response is read.
    for (size, body) in [(1, "AA=="), (2, "AAA="), (3, "AAAA")] {
        writeln!(stdin, "{{\"response_parameters\": [{{\"size\": {size}}}]}}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{{\"payload\":{{\"body\":\"{body}\"}}}}\n"));
    }
    drop(stdin);
    assert_eq!(client.wait().unwrap().code(), Some(0));
}

#[test]
fn status_is_printed_and_sets_exit_code() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |arguments: &[&str], expected_code: i32, expected: &str| {
        let (code, stdout, stderr) = call_at(&addresses[0], arguments);
        assert_eq!((code, stdout.as_str()), (Some(expected_code), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    check(
        &[UNARY, "-d", r#"{"response_status": {"code": 3, "message": "no"}}"#],
        67,
        "INVALID_ARGUMENT (3): no",
    );
    check(&["grpc.testing.TestService/UnimplementedCall"], 76, "UNIMPLEMENTED (12)");
    check(&["grpc.health.v1.Health/Check", "-d", r#"{"service": "a.B"}"#], 69, "NOT_FOUND (5)");
    // Messages before the error are printed.
    let (code, stdout, stderr) =
        call_at(&addresses[0], &["grpc.health.v1.Health/Watch", "--timeout", "200ms"]);
    assert_eq!((code, stdout.as_str()), (Some(68), "{\"status\":\"SERVING\"}\n"), "{stderr}");
    assert!(stderr.contains("DEADLINE_EXCEEDED (4)"), "{stderr}");
}

#[test]
fn invalid_arguments_are_explained() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) = call_at(&addresses[0], arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    check(&["grpc.testing.TestService/UnaryCal"], "has no method `UnaryCal`; did you mean `UnaryCall`?");
    check(&["grpc.testing.TestServic/UnaryCall"], "did you mean `grpc.testing.TestService`");
    check(
        &[UNARY, "-d", r#"{"size": 1}"#],
        "the request is not a valid grpc.testing.SimpleRequest: line 1, column 2",
    );
    check(&[UNARY, "-d", "{}{}"], "the method takes one request");
    check(&[UNARY, "-d", "{"], "the request is not a valid grpc.testing.SimpleRequest");
    check(
        &[FULL_DUPLEX, "-d", "{} {\"a\": 1}"],
        "request 2 is not a valid grpc.testing.StreamingOutputCallRequest",
    );
    check(
        &["describe", "nothing.Here"],
        "unknown symbol `nothing.Here`; use the full name with the package; services are ",
    );
    check(&["list", "nothing.Here"], "unknown service `nothing.Here`");
    check(&[UNARY, "-m", "a b: c"], "invalid metadata key `a b`");
    let (code, _, stderr) = call_at("127.0.0.1:1", &["list"]);
    assert_eq!(code, Some(78), "{stderr}");
    assert!(
        stderr.contains("UNAVAILABLE (14)") && stderr.contains("check that the server is running"),
        "{stderr}"
    );
    let (code, _, stderr) = outcome(thalweg(&["call", "list"]).output().unwrap());
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn services_and_types_are_listed_and_described() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let check = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) = call_at(&addresses[0], arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
        assert!(stdout.contains(expected), "{arguments:?}: {stdout}");
    };
    check(&["list"], "grpc.reflection.v1alpha.ServerReflection\ngrpc.testing.BenchmarkService\n");
    check(&["list", "grpc.testing.TestService"], "grpc.testing.TestService/FullDuplexCall\n");
    check(&["describe"], "\nservice Health {\n");
    check(&["describe", "grpc.testing.EchoStatus"], "  int32 code = 1;\n  string message = 2;\n");
    check(&["describe", FULL_DUPLEX], "rpc FullDuplexCall(stream grpc.testing.StreamingOutputCallRequest)");
    check(&["describe", "grpc.testing.PayloadType"], "  COMPRESSABLE = 0;\n");
    check(&["describe", UNARY, "--template"], "\"responseSize\": 0,\n");
}

#[test]
fn descriptor_files_replace_reflection() {
    let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/proto");
    let proto = format!("{protos}/grpc/testing/test.proto");
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set").display().to_string();
    let files = ["--proto", &proto, "-i", protos];
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let arguments = [&[UNARY, "--compact", "--protoset-out", &set][..], &files].concat();
    let (code, stdout, stderr) = call_at(&addresses[0], &arguments);
    assert_eq!((code, stdout.as_str()), (Some(0), "{}\n"), "{stderr}");
    // Without a server, from the file written above.
    let (code, stdout, _) = outcome(thalweg(&["call", "list", "--protoset", &set]).output().unwrap());
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "grpc.testing.TestService\ngrpc.testing.UnimplementedService\n")
    );
    let (code, _, stderr) = call_at(&addresses[0], &[UNARY, "--proto", "/nonexistent.proto"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("/nonexistent.proto"), "{stderr}");
    // The error lists the searched folders and gives a hint.
    let source = folder.path().join("a.proto").display().to_string();
    fs::write(&source, "syntax = \"proto3\";\nimport \"gone.proto\";\n").unwrap();
    for words in [["list", "--proto", &source], ["describe", "--proto", &source]] {
        let words = [&["call"], &words[..], &["-i", protos]].concat();
        let (code, _, stderr) = outcome(thalweg(&words).output().unwrap());
        assert_eq!(code, Some(1), "{stderr}");
        for part in
            ["gone.proto", &format!("searched {protos}, the folder of each --proto"), "with -i", "--protoset"]
        {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    }
    let (_, _, stderr) = outcome(thalweg(&["call", "list", "a.B", "--protoset", &set]).output().unwrap());
    assert!(stderr.contains("unknown service `a.B`") && stderr.contains("another --proto"), "{stderr}");
}

#[test]
fn reflected_descriptors_are_saved_as_descriptor_set() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set").display().to_string();
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let listed_from_the_file = |arguments: &[&str]| {
        let (code, _, stderr) = call_at(&addresses[0], &[arguments, &["--protoset-out", &set]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!stderr.contains("has no descriptors"), "{stderr}");
        outcome(thalweg(&["call", "list", "--protoset", &set]).output().unwrap()).1
    };
    let all = listed_from_the_file(&["list"]);
    let services = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.testing.TestService",
        "thalweg.lab.v1.Echo",
    ];
    assert!(services.iter().all(|name| all.lines().any(|line| line == *name)), "{all}");
    assert_eq!(listed_from_the_file(&["describe", "grpc.health.v1.Health"]), "grpc.health.v1.Health\n");
}

#[test]
fn metadata_expands_environment_variables() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let call = |variable: Option<&str>, flags: &[&str]| {
        let words =
            ["call", &addresses[0], UNARY, "-v", "-m", "x-grpc-test-echo-initial: a ${THALWEG_TOKEN}"];
        let mut command = thalweg(&[&words, flags].concat());
        command.env_remove("THALWEG_TOKEN");
        command.envs(variable.map(|value| ("THALWEG_TOKEN", value)));
        outcome(command.output().unwrap())
    };
    let (code, _, stderr) = call(Some("b c"), &["--expand-metadata"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("< x-grpc-test-echo-initial: a b c\n"), "{stderr}");
    let (_, _, stderr) = call(Some("b c"), &[]);
    assert!(stderr.contains("< x-grpc-test-echo-initial: a ${THALWEG_TOKEN}\n"), "{stderr}");
    let (code, _, stderr) = call(None, &["--expand-headers"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("${THALWEG_TOKEN}: environment variable not found"), "{stderr}");
}

#[test]
fn json_output_has_status_as_json() {
    let request = r#"{"response_status": {"code": 3, "message": "no \"x\""}}"#;
    let (code, stdout, stderr) = call(&[UNARY, "--format-error", "-d", request]);
    assert_eq!((code, stdout.as_str()), (Some(67), ""));
    assert_eq!(stderr, "{\"code\":3,\"message\":\"no \\\"x\\\"\"}\n");
}

#[test]
fn keepalive_detects_silent_server() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["call", &addresses[0], "grpc.health.v1.Health/Watch", "--keepalive-time", "10s"];
    let mut client = thalweg(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "{\"status\":\"SERVING\"}\n");
    server.signal(Signal::SIGSTOP);
    let ended = outcome(client.wait_with_output().unwrap());
    server.signal(Signal::SIGCONT);
    assert_eq!(ended.0, Some(78), "{}", ended.2);
    assert!(ended.2.contains("keepalive"), "{}", ended.2);
}

#[test]
fn verbose_call_prints_messages_and_timeline() {
    let arguments = [
        UNARY,
        "-v",
        "-m",
        "x-grpc-test-echo-initial: hello",
        "-m",
        "x-grpc-test-echo-trailing-bin: aGk=",
        "--compress",
        "gzip",
    ];
    let (code, stdout, stderr) = call(&arguments);
    assert_eq!((code, stdout.as_str()), (Some(0), "{}\n"), "{stderr}");
    for expected in [
        "> grpc.testing.TestService/UnaryCall(grpc.testing.SimpleRequest) returns (grpc.testing.SimpleResponse)",
        "> x-grpc-test-echo-initial: hello\n",
        "< x-grpc-test-echo-initial: hello\n",
        "< trailer x-grpc-test-echo-trailing-bin: aGk\n",
        "* connect ",
        "* settings ",
        "* reflection ",
        "* send ",
        "* head ",
        "* last message ",
    ] {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
}

#[test]
fn name_resolution_time_is_a_phase() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let verbose = |target: &str| {
        let (code, _, stderr) = call_at(target, &[UNARY, "-v"]);
        assert_eq!(code, Some(0), "{stderr}");
        stderr
    };
    let by_name = verbose(&addresses[0].replace("127.0.0.1", "localhost"));
    let phases: Vec<&str> =
        by_name.lines().filter_map(|line| line.strip_prefix("* ")?.split(' ').next()).collect();
    assert_eq!(phases[..3], ["resolve", "connect", "settings"], "{by_name}");
    // An address needs no lookup.
    let by_address = verbose(&addresses[0]);
    assert!(!by_address.contains("* resolve"), "{by_address}");
}

#[test]
fn saved_exchange_can_be_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exchange.json").display().to_string();
    let arguments =
        [FULL_DUPLEX, "-d", r#"{"response_parameters": [{"size": 3}]}"#, "-m", "a: b", "--save", &path];
    let (code, _, stderr) = call(&arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let saved: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&saved["schema"], &saved["method"]), (&"thalweg.exchange/1".into(), &FULL_DUPLEX.into()));
    assert_eq!(saved["responses"][0]["wire"], "CgUSAwAAAA==");

    let (code, stdout, stderr) = outcome(thalweg(&["inspect", &path]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for expected in [
        "grpc.testing.TestService/FullDuplexCall at 127.0.0.1:",
        "> a: b\n",
        "grpc.testing.StreamingOutputCallRequest\n",
        "int32 size = 1",
        "grpc.testing.StreamingOutputCallResponse\n",
        "OK (0)\n",
        "* last message ",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    let (code, stdout, _) = outcome(thalweg(&["inspect", &path, "-O", "json"]).output().unwrap());
    assert_eq!(code, Some(0));
    let inspected: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(inspected["schema"], "thalweg.inspect-exchange/1");
    assert!(inspected["responses"].is_object() && inspected["requests"].is_object(), "{stdout}");

    fs::write(&path, r#"{"schema": "thalweg.exchange/9"}"#).unwrap();
    let (code, _, stderr) = outcome(thalweg(&["inspect", &path]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("unsupported schema version 9"), "{stderr}");
}
