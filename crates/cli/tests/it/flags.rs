//! `docs/flags.md` names flags of ours that there are.

use std::fs;

use crate::support::{outcome, thalweg};

#[test]
fn the_page_names_flags_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");
    let page = fs::read_to_string(path).unwrap();
    for (section, command) in [("ghz", "load"), ("grpcurl", "call"), ("oha", "load")] {
        let (_, help, _) = outcome(thalweg(&[command, "--help"]).output().unwrap());
        let (_, behind) = page.split_once(&format!("\n## {section}\n")).unwrap();
        let rows =
            behind.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
        let mut flags = 0;
        for row in rows {
            let ours = row.rsplit(" | ").next().unwrap();
            theirs_are_understood(command, row);
            for flag in
                ours.split(|it: char| !it.is_ascii_lowercase() && it != '-').filter(|it| it.starts_with("--"))
            {
                flags += 1;
                let is_there = help
                    .split([' ', '\n', ']', ','])
                    .any(|word| word == flag || word.trim_end_matches(']') == flag);
                assert!(
                    is_there || flag == "--version",
                    "{section}: `{flag}` is none of thalweg {command}: {row}"
                );
            }
        }
        assert!(flags > 10, "{section}: {flags} flags of ours");
    }
}

/// Each flag in the first column is one of ours, or the answer to it says what to write.
fn theirs_are_understood(command: &str, row: &str) {
    let theirs = row.trim_start_matches("| ").split(" | ").next().unwrap();
    let flags = theirs.split('`').skip(1).step_by(2).filter_map(|code| code.split(' ').next());
    for flag in flags.filter(|flag| flag.starts_with('-')) {
        let (code, _, stderr) = outcome(thalweg(&[command, flag]).output().unwrap());
        if matches!(flag, "-h" | "--help" | "-help") {
            assert_eq!(code, Some(0), "thalweg {command} {flag}: {stderr}");
            continue;
        }
        assert_eq!(code, Some(2), "thalweg {command} {flag}: {stderr}");
        for nothing_said in ["unexpected argument", "--help` lists them"] {
            assert!(!stderr.contains(nothing_said), "thalweg {command} {flag}: {stderr}");
        }
    }
}
