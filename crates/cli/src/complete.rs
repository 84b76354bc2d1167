//! `thalweg complete`: completes a command line for the scripts of `thalweg completions`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thalweg_protobuf::printable;

use crate::failure::Failure;
use crate::runtime;
use crate::terminal::{self, Syntax};

/// Maximum wait for a server. Short, because it follows a key press.
const PATIENCE: Duration = Duration::from_secs(1);

/// Placeholder for the word being typed. It parses as a method name, which all completed flags accept.
const HERE: &str = "thalweg.completion.Here/Now";

/// Print the names that may come next on a command line, a line each: of services and methods
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// How the words came about: bash divides them at colons and equals signs
    #[arg(long, value_enum)]
    shell: Shell,

    /// The words up to the cursor, the command first, the last one as far as it has been typed
    #[arg(last = true, required = true)]
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the candidates that `of` returns. `of` gets the words with [`HERE`] in place of the last, [`HERE`], and the
/// typed part of the last word. Errors print nothing.
pub(crate) fn run(
    args: &CompleteArgs,
    of: &impl AsyncFn(&[String], &str, &str) -> Option<Vec<String>>,
) -> Result<ExitCode, Failure> {
    let mut words = if args.shell == Shell::Bash { joined(&args.words) } else { args.words.clone() };
    let Some(last) = words.pop() else { return Ok(ExitCode::SUCCESS) };
    // With `--call=NAME` fish replaces the whole word; other shells only the part after the sign.
    let (flag, typed) = match last.split_once('=') {
        Some((flag, typed)) if flag.starts_with("--") => (format!("{flag}="), typed),
        _ => (String::new(), last.as_str()),
    };
    words.push(format!("{flag}{HERE}"));
    let before = if args.shell == Shell::Fish { &flag } else { "" };
    let runtime = runtime::runtime(1)?;
    let found = runtime.block_on(async { tokio::time::timeout(PATIENCE, of(&words, HERE, typed)).await });
    let names = found.ok().flatten().unwrap_or_default();
    let lines: Vec<String> =
        names.iter().map(|name| format!("{before}{}\n", printable::line(name))).collect();
    terminal::print(Syntax::Text, &lines.concat())?;
    // Does not wait for name resolution that is still running.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Restores the words that bash divided. A separator piece joins the pieces before and after it.
fn joined(pieces: &[String]) -> Vec<String> {
    let is_separator = |piece: &str| !piece.is_empty() && piece.chars().all(|c| matches!(c, ':' | '='));
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for piece in pieces {
        let piece = unquoted(piece);
        let continues = is_open || is_separator(&piece);
        is_open = is_separator(&piece);
        match words.last_mut() {
            Some(word) if continues => word.push_str(&piece),
            _ => words.push(piece),
        }
    }
    words
}

/// Removes quotes and backslashes, which bash leaves in words.
fn unquoted(word: &str) -> String {
    let mut text = String::new();
    let mut quote = None;
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_by_bash_are_joined() {
        let check = |pieces: &[&str], expected: &[&str]| {
            let pieces: Vec<String> = pieces.iter().map(|&piece| piece.to_owned()).collect();
            assert_eq!(joined(&pieces), expected, "{pieces:?}");
        };
        check(
            &["thalweg", "call", "localhost", ":", "50051", ""],
            &["thalweg", "call", "localhost:50051", ""],
        );
        check(&["thalweg", "[", "::", "1]", ":", "80", "a"], &["thalweg", "[::1]:80", "a"]);
        check(&["t", "--call", "=", "a.B"], &["t", "--call=a.B"]);
        check(&["t", "--call", "="], &["t", "--call="]);
        check(&["t", "https", ":", "//a", ":", "80", ""], &["t", "https://a:80", ""]);
        check(&["t", "-m", "'a: b'", "\"c\\\"d\"", "e\\ f", "'g"], &["t", "-m", "a: b", "c\"d", "e f", "g"]);
    }
}
