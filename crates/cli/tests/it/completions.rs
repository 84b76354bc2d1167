//! `thalweg completions`: scripts as shells read them.

use std::process::Command;

use crate::support::{outcome, thalweg};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

fn script(shell: &str) -> String {
    let (code, stdout, stderr) = outcome(thalweg(&["completions", shell]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{shell}");
    stdout
}

/// What bash proposes for the last of the words.
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
fn every_shell_has_a_script_with_all_commands_and_no_hidden_option() {
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
fn bash_reads_its_script_and_proposes() {
    let parsed = Command::new("bash").args(["-n", "-c", &script("bash")]).output().unwrap();
    assert_eq!(outcome(parsed), (Some(0), String::new(), String::new()));
    assert_eq!(proposed(&["thalweg", "lo"]), ["load"]);
    assert_eq!(proposed(&["thalweg", "completions", "f"]), ["fish"]);
    assert_eq!(proposed(&["thalweg", "load", "-O", "js"]), ["json"]);
    assert_eq!(proposed(&["thalweg", "load", "--warm"]), ["--warmup"]);
    assert_eq!(proposed(&["thalweg", "load", "--rp"]), ["--rps"]);
    assert_eq!(proposed(&["thalweg", "lab", "chan"]), ["channels"]);
}

#[test]
fn the_help_says_how_to_install() {
    let (code, stdout, _) = outcome(thalweg(&["completions", "--help"]).output().unwrap());
    assert_eq!(code, Some(0));
    for part in ["bash-completion/completions/thalweg", "completions zsh > ~/.zfunc/_thalweg"] {
        assert!(stdout.contains(part), "{part:?} is not in {stdout}");
    }
}
