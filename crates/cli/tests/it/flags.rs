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
