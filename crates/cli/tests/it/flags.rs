//! Tables of flags in the documents agree with `--help`.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{outcome, thalweg};

/// Pages with a table of a command's flags, the heading above it, and the command.
const OURS: &[(&str, &str, &[&str])] = &[
    ("call.md", "Flags of `serve`", &["serve"]),
    ("call.md", "Flags", &["call"]),
    ("load.md", "Flags", &["load"]),
    ("distributed.md", "Merging", &["merge"]),
    ("compare.md", "Flags", &["compare"]),
    ("inspect.md", "Flags", &["inspect"]),
    ("testing-your-service.md", "Flags of `link`", &["link"]),
    ("lab.md", "Published measurements, repeated", &["lab", "published"]),
];

/// Pages with a table of another tool's flags, the tool, and our command.
const THEIRS: &[(&str, &str, &str)] =
    &[("load.md", "ghz", "load"), ("call.md", "grpcurl", "call"), ("load.md", "oha", "load")];

/// The rows of the tables below a heading.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let (_, behind) =
        text.split_once(&format!("# {heading}\n")).unwrap_or_else(|| panic!("{page}: {heading}"));
    let lines = behind.lines().take_while(|line| !line.starts_with('#'));
    lines.filter(|line| line.starts_with("| `")).map(str::to_owned).collect()
}

/// The cells of a row. `\|` is not a border.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\u{0}");
    row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).replace('\u{0}', "|")).collect()
}

/// The long flags in a text.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !it.is_ascii_lowercase() && !it.is_ascii_digit() && it != '-');
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

/// The flags of a command, with the default that its help states.
fn helped(command: &[&str]) -> Vec<(String, Option<String>)> {
    let (_, help, _) = outcome(thalweg(&[command, &["-h"]].concat()).output().unwrap());
    let mut entries: Vec<String> = Vec::new();
    for line in help.lines().take_while(|line| !line.starts_with("Examples:")) {
        match entries.last_mut() {
            _ if line.starts_with("  -") || line.starts_with("      --") => {
                entries.push(line.trim().to_owned());
            }
            Some(entry) if line.starts_with("    ") => *entry = format!("{entry} {}", line.trim()),
            _ => {}
        }
    }
    let entry = |text: String| {
        let (_, behind) = text.split_once("--")?;
        let name = behind.split([' ', ',']).next()?;
        let default = text.split_once("[default: ").map(|(_, default)| {
            let end = default.find([';', ']', ',']).unwrap_or(default.len());
            default[..end].to_owned()
        });
        (name != "help").then(|| (format!("--{name}"), default))
    };
    entries.into_iter().filter_map(entry).collect()
}

#[test]
fn documented_flags_and_defaults_match_help() {
    for &(page, heading, command) in OURS {
        let rows: Vec<Vec<String>> = rows(page, heading).iter().map(|row| cells(row)).collect();
        let there: BTreeSet<String> = rows.iter().flat_map(|row| flags(&row[0])).collect();
        let helped = helped(command);
        assert!(helped.len() > 3, "{command:?}: {helped:?}");
        for (flag, default) in &helped {
            let row = rows.iter().find(|row| flags(&row[0]).contains(flag));
            let row = row.unwrap_or_else(|| panic!("docs/{page} lacks {flag} of thalweg {command:?}"));
            if let Some(default) = default {
                let said = row[1].replace('`', "");
                assert!(said.contains(default.as_str()), "docs/{page}: {flag}: {said:?} is not {default:?}");
            }
        }
        let (_, help, _) = outcome(thalweg(&[command, &["-h"]].concat()).output().unwrap());
        let known = flags(&help);
        let strange: Vec<&String> = there.difference(&known).collect();
        assert!(strange.is_empty(), "docs/{page}: thalweg {command:?} has no {strange:?}");
    }
}

#[test]
fn documented_equivalents_are_existing_flags() {
    for &(page, tool, command) in THEIRS {
        let (_, help, _) = outcome(thalweg(&[command, "--help"]).output().unwrap());
        let help = flags(&help);
        let mut count = 0;
        for row in rows(page, &format!("{tool}'s flags")) {
            theirs_are_understood(command, &row);
            for flag in flags(&cells(&row)[1]) {
                count += 1;
                assert!(
                    help.contains(&flag) || flag == "--version",
                    "{tool}: `{flag}` is not a flag of thalweg {command}: {row}"
                );
            }
        }
        assert!(count > 5, "{tool}: {count} flags of ours");
    }
}

/// Each flag in the first column either is supported or gives a hint.
fn theirs_are_understood(command: &str, row: &str) {
    let theirs = cells(row).swap_remove(0);
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
