//! Flags as in grpcurl, ghz, oha and hey: `-plaintext`, `-max-time 1`, `--skipFirst`.
//!
//! Runs before clap, which reads `-insecure` as a cluster of short flags. Long flags with one dash get a second one.
//! Flags of other tools without an equivalent get a hint.

mod foreign_flags;

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// Minimum similarity of a suggested flag.
const SIMILARITY_MIN: f64 = 0.85;

/// Returns the words in clap's spelling. The first word is the program.
///
/// # Errors
///
/// Returns an error with a hint for unknown flags.
pub(crate) fn normalize(command: &Command, words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut root = command.clone();
    // Adds --help and subcommand names.
    root.build();
    let mut current = &root;
    let mut path = Vec::new();
    let mut normalized = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    normalized.extend(words.next());
    while let Some(word) = words.next() {
        if word == "--" {
            normalized.push(word);
            break;
        }
        let Some(text) = word.to_str().filter(|text| text.len() > 1 && text.starts_with('-')) else {
            if let Some(subcommand) = current.find_subcommand(&word) {
                current = subcommand;
                path.push(subcommand.get_name());
            }
            normalized.push(word);
            continue;
        };
        let read = read(current, &path, text)?;
        normalized.push(read.word.into());
        // Keeps a value that looks like a flag only if clap accepts it.
        if let Some(arg) = read.needs_value
            && words.peek().is_some_and(|next| may_be_value(arg, next))
        {
            normalized.extend(words.next());
        }
    }
    normalized.extend(words);
    Ok(normalized)
}

/// A flag in clap's spelling.
struct Read<'c> {
    word: String,
    /// The flag, if its value is the next word.
    needs_value: Option<&'c Arg>,
}

fn read<'c>(command: &'c Command, path: &[&str], word: &str) -> Result<Read<'c>, String> {
    let (flag, value) = match word.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (word, None),
    };
    let name = flag.trim_start_matches('-');
    let is_long = word.starts_with("--");
    let read = |word: String, arg: &'c Arg| Read {
        word,
        needs_value: (value.is_none() && takes_value(arg)).then_some(arg),
    };
    // One dash and one letter is always a short flag.
    if (is_long || name.chars().count() > 1)
        && let Some(arg) = long(command, name)
    {
        let rest = value.map(|value| format!("={value}")).unwrap_or_default();
        return Ok(read(format!("--{name}{rest}"), arg));
    }
    let hint = |name: &str| foreign_flags::hint(path, name);
    if let Some(hint) = hint(name) {
        return Err(format!("unknown flag `{flag}` of {}: {hint}", named(path)));
    }
    if is_long {
        // clap reports the flag with similar ones.
        return Ok(Read { word: word.to_owned(), needs_value: None });
    }
    match cluster(command, word) {
        Ok(needs_value) => Ok(Read { word: word.to_owned(), needs_value }),
        Err(letter) => {
            let what = match hint(&letter.to_string()) {
                Some(hint) => hint.to_owned(),
                None => suggestion(command, path, name),
            };
            Err(format!("unknown flag `{flag}` of {}: {what}", named(path)))
        }
    }
}

/// Reads a cluster such as `-vd@FILE`. Returns the flag whose value is the next word, if any, or the first letter that
/// is not a flag.
fn cluster<'c>(command: &'c Command, word: &str) -> Result<Option<&'c Arg>, char> {
    let mut letters = word.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        let is_it = |arg: &&Arg| arg.get_short_and_visible_aliases().unwrap_or_default().contains(&letter);
        let is_alias = |arg: &&Arg| arg.get_all_short_aliases().unwrap_or_default().contains(&letter);
        let Some(arg) = command.get_arguments().find(|arg| is_it(arg) || is_alias(arg)) else {
            return Err(letter);
        };
        if takes_value(arg) {
            return Ok(letters.peek().is_none().then_some(arg));
        }
    }
    Ok(None)
}

fn long<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name) || arg.get_all_aliases().unwrap_or_default().contains(&name))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn may_be_value(arg: &Arg, next: &OsStr) -> bool {
    let looks_like_flag = next.len() > 1 && next.as_encoded_bytes().starts_with(b"-");
    !looks_like_flag || arg.is_allow_hyphen_values_set() || arg.is_allow_negative_numbers_set()
}

fn named(path: &[&str]) -> String {
    ["thalweg"].iter().chain(path).copied().collect::<Vec<_>>().join(" ")
}

/// Returns the most similar flag, or where to find the list.
fn suggestion(command: &Command, path: &[&str], name: &str) -> String {
    let longs = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| {
        let long = arg.get_long()?;
        Some((strsim::jaro_winkler(long, name), long))
    });
    match longs.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((similarity, long)) if similarity >= SIMILARITY_MIN => format!("did you mean `--{long}`?"),
        _ => format!("`{} --help` lists them", named(path)),
    }
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, Args};

    use super::*;
    use crate::{call, complete, lab, link, load};

    /// The command, reduced to what these tests need.
    fn command() -> Command {
        Command::new("thalweg")
            .version("1")
            .subcommand(load::LoadArgs::augment_args(Command::new("load")))
            .subcommand(call::CallArgs::augment_args(Command::new("call")))
            .subcommand(lab::LabArgs::augment_args(Command::new("lab")))
            .subcommand(link::LinkArgs::augment_args(Command::new("link")))
            .subcommand(complete::CompleteArgs::augment_args(Command::new("complete")))
    }

    fn check(line: &str, expected: Result<&str, &str>) {
        let words = line.split(' ').map(OsString::from).collect();
        let found = normalize(&command(), words).map(|words| {
            words.iter().map(|word| word.to_str().expect("as it was")).collect::<Vec<_>>().join(" ")
        });
        match expected {
            Ok(expected) => assert_eq!(found.as_deref(), Ok(expected), "{line}"),
            Err(part) => {
                let error = found.expect_err(line);
                assert!(error.contains(part), "{line}: {error}");
            }
        }
    }

    #[test]
    fn single_dash_long_flag_is_accepted() {
        for (line, expected) in [
            ("thalweg call -plaintext h:1 list", "thalweg call --plaintext h:1 list"),
            ("thalweg call -insecure h:1 list", "thalweg call --insecure h:1 list"),
            ("thalweg call -max-time 1 h:1 list", "thalweg call --max-time 1 h:1 list"),
            (
                "thalweg call -import-path . -proto a.proto list",
                "thalweg call --import-path . --proto a.proto list",
            ),
            ("thalweg call -H a:b -d @ -vv h:1 a.B/C", "thalweg call -H a:b -d @ -vv h:1 a.B/C"),
            ("thalweg call -emit-defaults h:1 a.B/C", "thalweg call --emit-defaults h:1 a.B/C"),
            ("thalweg call -reflect-header a:b h:1 list", "thalweg call --reflect-header a:b h:1 list"),
            (
                "thalweg load h:1 -rps 5 -duration 1s -concurrency 3",
                "thalweg load h:1 --rps 5 --duration 1s --concurrency 3",
            ),
            ("thalweg load h:1 -rps=5 -d={}", "thalweg load h:1 --rps=5 -d={}"),
            ("thalweg load h:1 -skipTLS --cname a", "thalweg load h:1 --skipTLS --cname a"),
            ("thalweg lab sizes -connections 1", "thalweg lab sizes --connections 1"),
            ("thalweg -version", "thalweg --version"),
            ("thalweg load -help", "thalweg load --help"),
        ] {
            check(line, Ok(expected));
        }
    }

    #[test]
    fn short_flags_and_values_are_unchanged() {
        for line in [
            "thalweg load h:1 -z10s -c64 -n 5 -x 2s",
            "thalweg call h:1 a.B/C -vd @file -iprotos",
            "thalweg call h:1 a.B/C -d - -m -",
            "thalweg complete --shell bash -- thalweg call -insecure",
            "thalweg call --nonsense h:1 list",
            "thalweg call h:1 list --data",
        ] {
            check(line, Ok(line));
        }
        // Flags are neither values nor consumed as values.
        check("thalweg call h:1 list -d -plaintext", Ok("thalweg call h:1 list -d --plaintext"));
        check(
            "thalweg call h:1 a.B/C --data list -insecure",
            Ok("thalweg call h:1 a.B/C --data list --insecure"),
        );
        let bytes = vec!["thalweg".into(), "call".into(), OsString::from("ü")];
        assert_eq!(normalize(&command(), bytes.clone()), Ok(bytes));
    }

    #[test]
    fn unknown_flag_gets_hint() {
        for (line, part) in [
            (
                "thalweg call -plaintxt h:1 list",
                "unknown flag `-plaintxt` of thalweg call: did you mean `--plaintext`?",
            ),
            ("thalweg call -use-reflection h:1 list", "leave it out"),
            ("thalweg call -unix h:1 list", "unix:PATH"),
            ("thalweg load h:1 -skipFirst 5", "--warmup"),
            ("thalweg load h:1 --data-file x.json", "-d @FILE"),
            ("thalweg load h:1 -D x.json", "-d @FILE"),
            ("thalweg load h:1 -Dx.json", "-d @FILE"),
            ("thalweg load h:1 --load-schedule=step", "--rps 100..5000/60s"),
            ("thalweg link -frobnicate", "`thalweg link --help` lists them"),
        ] {
            check(line, Err(part));
        }
    }

    /// Otherwise a long flag with one dash would hide that cluster.
    #[test]
    fn no_long_flag_parses_as_switch_cluster() {
        fn each(command: &Command) {
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                let is_switch = |letter: char| {
                    command.get_arguments().any(|arg| {
                        arg.get_short() == Some(letter)
                            && !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
                    })
                };
                assert!(long.len() == 1 || !long.chars().all(is_switch), "{} --{long}", command.get_name());
            }
            command.get_subcommands().for_each(each);
        }
        let mut command = command();
        command.build();
        each(&command);
    }

    #[test]
    fn foreign_flags_do_not_collide_with_own_flags() {
        let mut command = command();
        command.build();
        for row in foreign_flags::FOREIGN_FLAGS {
            let command = command.find_subcommand(row.command).expect("a subcommand");
            for flag in row.flags {
                let is_short = |arg: &Arg| {
                    arg.get_short()
                        .iter()
                        .chain(&arg.get_all_short_aliases().unwrap_or_default())
                        .any(|short| short.to_string() == **flag)
                };
                let is_its = |arg: &Arg| is_short(arg) || long(command, flag).is_some();
                assert!(!command.get_arguments().any(is_its), "{} has {flag}", row.command);
            }
        }
    }
}
