//! Tests outputs: replaced files, pipes, and closed readers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Running, outcome, thalweg};

const UNARY: &str = "grpc.testing.TestService/UnaryCall";

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn output_file_keeps_old_contents_until_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("result.json"), folder.path().join("latest.json"));
    fs::write(&real, "old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("result.json", &link).unwrap();
    let words = ["load", &addresses[0], "--call", UNARY, "-z", "60s", "--announce", "-O", "json", "-o"];
    let words = [&words[..], &[link.to_str().unwrap()]].concat();
    let mut killed = Running::start(&words);
    assert_eq!(killed.line(), "measuring");
    assert_eq!(fs::read_to_string(&real).unwrap(), "old");
    killed.signal(Signal::SIGKILL);
    killed.end();
    assert_eq!(fs::read_to_string(&real).unwrap(), "old");
    assert_eq!(names(folder.path()), ["latest.json", "result.json"]);

    let mut ended = Running::start(&words);
    assert_eq!(ended.line(), "measuring");
    ended.signal(Signal::SIGINT);
    let (code, _, stderr) = ended.end();
    assert_eq!(code, Some(130), "{stderr}");
    let run: Value = serde_json::from_str(&fs::read_to_string(&real).unwrap()).unwrap();
    assert_eq!((&run["stopped_early"], &run["so_far"]), (&true.into(), &false.into()));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(folder.path()), ["latest.json", "result.json"]);
}

#[test]
fn failing_command_keeps_existing_output_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result");
    fs::write(&file, "old").unwrap();
    let (file, missing) = (file.to_str().unwrap(), folder.path().join("missing").display().to_string());
    let missing = missing.as_str();
    for words in [
        &["merge", missing, "-o", file][..],
        &["compare", missing, missing, "-o", file],
        &["inspect", missing, "-o", file],
        &["inspect", "--assemble", missing, "-o", file],
        &["load", "127.0.0.1:1", "-o", file],
    ] {
        let (code, ..) = outcome(thalweg(words).output().unwrap());
        assert!(matches!(code, Some(1 | 2)), "{words:?}: {code:?}");
        assert_eq!(fs::read_to_string(file).unwrap(), "old", "{words:?}");
        assert_eq!(names(folder.path()), ["result"], "{words:?}");
    }
}

#[test]
fn pipes_and_stdout_are_valid_output_files() {
    let folder = tempfile::tempdir().unwrap();
    let expected = outcome(thalweg(&["inspect", "--hex", "08 01"]).output().unwrap()).1;
    for path in ["/dev/stdout", "/dev/fd/1", "-"] {
        let (code, stdout, stderr) =
            outcome(thalweg(&["inspect", "--hex", "08 01", "-o", path]).output().unwrap());
        assert_eq!((code, stdout.as_str()), (Some(0), expected.as_str()), "{path}: {stderr}");
    }
    // Existing content of stdout is kept.
    let log = folder.path().join("log");
    let script = "echo before; \"$0\" inspect --hex '08 01' -o /dev/stdout; echo behind";
    let status = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_thalweg")])
        .stdout(File::create(&log).unwrap())
        .status();
    assert!(status.unwrap().success());
    assert_eq!(fs::read_to_string(&log).unwrap(), format!("before\n{expected}behind\n"));

    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = thalweg(&["inspect", "--hex", "08 01", "-o", pipe.to_str().unwrap()]).spawn().unwrap();
    let mut read = String::new();
    File::open(&pipe).unwrap().read_to_string(&mut read).unwrap();
    assert_eq!(read, expected);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

/// Returns a pipe without a reader.
fn closed() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn closed_stdout_is_no_failure() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let address = addresses[0].as_str();
    // This stream does not end on its own.
    let endless = ["call", address, "grpc.health.v1.Health/Watch", "-d", "{}"];
    for words in [
        &["--help"][..],
        &["load", "--help"],
        &["--version"],
        &["settings"],
        &["completions", "bash"],
        &["complete", "--shell", "zsh", "--", "thalweg", "call", address, ""],
        &["call", address, "list"],
        &["call", address, "describe"],
        &["call", address, UNARY],
        &endless,
        &["inspect", "--hex", "08 01"],
        &["inspect", "--hex", "08 01", "-O", "json"],
        &["inspect", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/grpcurl.pcap")],
        &["load", address, "--call", UNARY, "-n", "10", "--announce"],
        &["load", address, "-n", "10", "-O", "json"],
    ] {
        let mut command = thalweg(words);
        let (code, _, stderr) = outcome(command.stdout(closed()).output().unwrap());
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words:?}");
    }
    // The verdict is kept.
    let gated = ["load", address, "--call", UNARY, "-n", "10", "--expect", "p99<1ns"];
    assert_eq!(thalweg(&gated).stdout(closed()).output().unwrap().status.code(), Some(3));
}

#[test]
fn closed_stderr_is_ignored() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let address = addresses[0].as_str();
    let failing = r#"{"response_status": {"code": 5, "message": "not here"}}"#;
    let loaded = ["load", address, "--call", UNARY, "-n", "10", "--interval", "100ms", "--expect", "p99<1ns"];
    for (words, code) in [
        (&["call", address, UNARY, "-v"][..], 0),
        (&["call", address, UNARY, "-d", failing], 69),
        (&["call", address, UNARY, "-d", failing, "--format-error"], 69),
        (&["call", "--nonsense"], 2),
        (&["merge", "/nonexistent"], 1),
        (&loaded, 3),
        (&["lab", "--against", "nothing"], 2),
    ] {
        let output = thalweg(words).stderr(closed()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn descriptor_shortage_is_reported() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let address = addresses[0].as_str();
    let limited = |limit: u32, words: &[&str]| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("ulimit -n {limit}; exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_thalweg"),
        ]);
        outcome(command.args(words).stdin(Stdio::null()).output().unwrap())
    };
    for words in [&["call", address, UNARY][..], &["load", address, "--call", UNARY, "-n", "10", "--quiet"]] {
        let mut has_worked = false;
        for limit in 5..32 {
            let (code, _, stderr) = limited(limit, words);
            has_worked |= code == Some(0);
            let is_said = stderr.starts_with("error: ") && stderr.contains("open files");
            assert!(code == Some(0) || is_said, "{limit}, {words:?}: {code:?} {stderr}");
        }
        assert!(has_worked, "{words:?}");
    }
    for words in
        [&["serve", "--listen", "127.0.0.1:0"][..], &["link", "--listen", "127.0.0.1:0", "--to", address]]
    {
        let (code, _, stderr) = limited(6, words);
        assert_eq!(code, Some(1), "{words:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains("ulimit -n"), "{words:?}: {stderr}");
    }
}
