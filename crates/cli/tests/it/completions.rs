//! Tests `thalweg completions` by running the scripts in shells.

use std::process::Command;

use crate::support::{Running, outcome, thalweg};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

pub(crate) fn script(shell: &str) -> String {
    let (code, stdout, stderr) = outcome(thalweg(&["completions", shell]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{shell}");
    stdout
}

/// Returns bash's completions of the last word.
fn proposed(words: &[&str]) -> Vec<String> {
    let ask = "eval \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
               _thalweg thalweg \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
               printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ask, &script("bash")]).args(words);
    let (code, stdout, stderr) = outcome(bash.output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words:?}");
    stdout.lines().map(str::to_owned).collect()
}

#[test]
fn every_shell_script_has_all_commands_and_no_hidden_option() {
    for shell in SHELLS {
        let script = script(shell);
        for command in [
            "serve",
            "load",
            "call",
            "lab",
            "link",
            "inspect",
            "completions",
            "man",
            "sizes",
            "channels",
            "connections",
            "codec",
        ] {
            assert!(script.contains(command), "{shell}: {command} is not in it");
        }
        assert!(script.contains("busy-poll"), "{shell}: options are in it");
        assert!(!script.contains("For the lab"), "{shell}: what is for the lab alone is hidden");
    }
}

#[test]
fn bash_loads_script_and_completes() {
    let parsed = Command::new("bash").args(["-n", "-c", &script("bash")]).output().unwrap();
    assert_eq!(outcome(parsed), (Some(0), String::new(), String::new()));
    assert_eq!(proposed(&["thalweg", "lo"]), ["load"]);
    assert_eq!(proposed(&["thalweg", "completions", "f"]), ["fish"]);
    assert_eq!(proposed(&["thalweg", "load", "-O", "js"]), ["json"]);
    assert_eq!(proposed(&["thalweg", "load", "--warm"]), ["--warmup"]);
    assert_eq!(proposed(&["thalweg", "load", "--rp"]), ["--rps"]);
    assert_eq!(proposed(&["thalweg", "lab", "chan"]), ["channels"]);
}

/// Returns completions of the last word by bash's registered function. Words are divided as by bash.
fn proposed_with_names(words: &[&str]) -> Vec<String> {
    let ask = "eval \"$0\"; program=$1; shift; COMP_WORDS=(\"$program\" \"$@\"); COMP_CWORD=$#; \
               completer=$(complete -p thalweg); completer=${completer##*-F }; \
               \"${completer%% *}\" \"$program\" \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
               printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ask, &script("bash"), env!("CARGO_BIN_EXE_thalweg")]).args(words);
    let (code, stdout, stderr) = outcome(bash.output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words:?}");
    stdout.lines().map(str::to_owned).collect()
}

#[test]
fn services_and_methods_of_server_are_completed() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let port = addresses[0].rsplit_once(':').unwrap().1;
    let at = |words: &[&str]| proposed_with_names(&[&["call", "127.0.0.1", ":", port], words].concat());
    let all = at(&[""]);
    assert_eq!(all[..3], ["list", "describe", "grpc.health.v1.Health/Check"]);
    assert!(all.contains(&"grpc.testing.TestService/UnaryCall".to_owned()), "{all:?}");
    let streaming =
        ["grpc.testing.TestService/StreamingInputCall", "grpc.testing.TestService/StreamingOutputCall"];
    assert_eq!(at(&["grpc.testing.TestService/St"]), streaming);
    assert_eq!(at(&["-m", "'a: b'", "grpc.testing.TestService/St"]), streaming);
    assert_eq!(at(&["de"]), ["describe"]);
    assert_eq!(at(&["list", "grpc.testing.T"]), ["grpc.testing.TestService"]);
    assert_eq!(at(&["describe", "grpc.testing.E"]), ["grpc.testing.EchoStatus", "grpc.testing.Empty"]);
    let load = |words: &[&str]| proposed_with_names(&[&["load", "127.0.0.1", ":", port], words].concat());
    assert_eq!(load(&["--call", "grpc.testing.TestService/St"]), streaming);
    assert_eq!(load(&["--call", "=", "grpc.testing.TestService/St"]), streaming);
    // Other words are completed by clap.
    assert_eq!(load(&["--warm"]), ["--warmup"]);
    assert_eq!(at(&["-O", "t"]), ["text"]);
    assert_eq!(proposed_with_names(&["lo"]), ["load"]);
}

#[test]
fn names_are_completed_from_files_and_failures_are_silent() {
    let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/proto");
    let proto = format!("{protos}/grpc/testing/test.proto");
    let from_files = ["call", "--proto", &proto, "-i", protos, "list", "grpc.testing.T"];
    assert_eq!(proposed_with_names(&from_files), ["grpc.testing.TestService"]);
    // Without a server, verbs are still completed.
    assert_eq!(proposed_with_names(&["call", "127.0.0.1", ":", "1", ""]), ["list", "describe"]);
    let answer =
        thalweg(&["complete", "--shell", "fish", "--", "thalweg", "load", "127.0.0.1:1", "--call=a"]);
    let (code, stdout, stderr) = outcome({ answer }.output().unwrap());
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "", ""));
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let words = ["complete", "--shell", "fish", "--", "thalweg", "load", &addresses[0], "--call=grpc.health"];
    let (_, stdout, _) = outcome(thalweg(&words).output().unwrap());
    assert!(stdout.starts_with("--call=grpc.health.v1.Health/Check\n"), "{stdout}");
}

#[test]
fn help_has_installation_instructions() {
    let (code, stdout, _) = outcome(thalweg(&["completions", "--help"]).output().unwrap());
    assert_eq!(code, Some(0));
    for part in [
        "bash-completion/completions/thalweg",
        "completions zsh > ~/.zfunc/_thalweg",
        "completions fish > ~/.config/fish/completions/thalweg.fish",
    ] {
        assert!(stdout.contains(part), "{part:?} is not in {stdout}");
    }
}
