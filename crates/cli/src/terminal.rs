//! The only module that writes to stdout and stderr.
//!
//! Escapes control and bidirectional characters, because texts come from servers and files. This applies to all
//! outputs: a file may be displayed later. Escaping where texts are composed is easy to forget: it was missing at some
//! forty places. Colours are added after escaping ([`Style`]).
#![expect(clippy::disallowed_methods, reason = "all other modules print through this one")]

use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};

use thalweg_protobuf::printable;

use crate::failure::Failure;

/// Format of a text, which decides how an unprintable character is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// For people, including CSV and Markdown: `\u{1b}`
    Text,
    /// `\u001b`
    Json,
    /// The replacement character
    Html,
}

impl Syntax {
    /// Escapes unprintable characters except line feeds and tabs.
    pub(crate) fn escaped(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Text => printable::text(text),
            Self::Json => printable::json(text),
            Self::Html => printable::html(text),
        }
    }
}

/// Prints to stdout and flushes. Ignores a closed stdout (`thalweg load … | head`).
pub(crate) fn print(syntax: Syntax, text: &str) -> Result<(), Failure> {
    print_bytes(syntax.escaped(text).as_bytes())
}

/// Prints a text with [styles](Style) to stdout, coloured if the terminal supports it.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    let is_coloured = are_colours_wanted(stdout_is_terminal(), |name| env::var_os(name));
    let mut bytes = Vec::new();
    written(Escaping::new(&mut bytes, Syntax::Text, is_coloured).write_all(text.as_bytes()))?;
    print_bytes(&bytes)
}

/// Prints raw bytes for programs. Flushes and ignores a closed stdout as [`print`] does.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    match print_or_end(bytes) {
        Err(failure) if failure.is_quiet() => Ok(()),
        printed => printed,
    }
}

/// Prints to stdout and flushes. Returns a quiet failure if stdout is closed.
pub(crate) fn print_or_end(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Converts an error of writing to stdout or a file.
pub(crate) fn written(written: io::Result<()>) -> Result<(), Failure> {
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::quiet(),
        _ => Failure::failed(format!("failed to write the result: {error}")),
    })
}

/// Returns buffered stdout.
pub(crate) fn stdout() -> impl Write {
    io::BufWriter::new(io::stdout().lock())
}

/// Prints a line to stderr.
pub(crate) fn say(text: &str) {
    let text = printable::text(text) + "\n";
    // A closed stderr is ignored.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a one-line note to stderr.
pub(crate) fn note(text: &str) {
    say(&format!("note: {}", printable::line(text)));
}

/// Prints an error to stderr. Further lines are indented so that they cannot imitate messages of the command.
pub(crate) fn error(message: &str) {
    let mut text = "error: ".to_owned();
    for (index, line) in message.lines().enumerate() {
        let is_indented = index == 0 || line.is_empty() || line.starts_with(' ');
        text.push_str(match index {
            0 => "",
            _ if is_indented => "\n",
            _ => "\n  ",
        });
        text.push_str(line);
    }
    say(&text);
}

/// Fails if stdout is a terminal, which would interpret binary data.
pub(crate) fn check_takes_bytes(instead: &str) -> Result<(), Failure> {
    if stdout_is_terminal() {
        return Err(Failure::bad_arguments(format!(
            "refusing to write binary data to the terminal; {instead}"
        )));
    }
    Ok(())
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns whether to use colours: on a terminal that is not dumb, unless `NO_COLOR` is set and not empty
/// (<https://no-color.org>).
pub(crate) fn are_colours_wanted(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_forbidden = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !is_forbidden && !is_dumb
}

/// Returns raw stderr for screen drawing, which does its own escaping.
pub(crate) fn screen() -> io::Stderr {
    io::stderr()
}

/// Style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Cyan,
    Yellow,
    Green,
    Bold,
    BoldRed,
    Magenta,
    Dim,
}

impl Style {
    const ALL: [Self; 7] =
        [Self::Cyan, Self::Yellow, Self::Green, Self::Bold, Self::BoldRed, Self::Magenta, Self::Dim];

    /// Returns the text between marks that [`Escaping`] turns into colours. Marks are noncharacters, which are removed
    /// from the text.
    pub(crate) fn marked(self, text: &str) -> String {
        let text = text.replace(is_mark, "\u{fffd}");
        format!("{}{text}{END}", self.mark())
    }

    fn mark(self) -> char {
        // All of U+FDD0 to U+FDEF are valid `char`s.
        char::from_u32(u32::from(FIRST) + self as u32).unwrap_or(FIRST)
    }

    /// Returns the SGR parameters (ECMA-48 §8.3.117).
    fn sgr(self) -> &'static str {
        match self {
            Self::Cyan => "36",
            Self::Yellow => "33",
            Self::Green => "32",
            Self::Bold => "1",
            Self::BoldRed => "1;31",
            Self::Magenta => "35",
            Self::Dim => "2",
        }
    }
}

/// Mark of the first style; the others follow.
const FIRST: char = '\u{fdd0}';
/// End of styled text.
const END: char = '\u{fdef}';

fn is_mark(c: char) -> bool {
    (FIRST..=END).contains(&c)
}

/// Writer that escapes text and turns marks into colours, if enabled.
pub(crate) struct Escaping<W> {
    inner: W,
    syntax: Syntax,
    is_coloured: bool,
    /// Start of a character whose other bytes are not written yet.
    pending: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub(crate) fn new(inner: W, syntax: Syntax, is_coloured: bool) -> Self {
        Self { inner, syntax, is_coloured, pending: Vec::new() }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let escaped = self.syntax.escaped(text);
        if !self.is_coloured || !escaped.contains(is_mark) {
            return self.inner.write_all(escaped.as_bytes());
        }
        let mut coloured = String::with_capacity(escaped.len() + 64);
        for c in escaped.chars() {
            match Style::ALL.into_iter().find(|style| style.mark() == c) {
                Some(style) => coloured.extend(["\x1b[", style.sgr(), "m"]),
                None if c == END => coloured.push_str("\x1b[0m"),
                None => coloured.push(c),
            }
        }
        self.inner.write_all(coloured.as_bytes())
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.write_text(text)?;
                    break;
                }
                Err(error) => {
                    let (valid, behind) = rest.split_at(error.valid_up_to());
                    self.write_text(&String::from_utf8_lossy(valid))?;
                    let Some(wrong) = error.error_len() else {
                        self.pending = behind.to_vec();
                        break;
                    };
                    self.write_text("\u{fffd}")?;
                    rest = &behind[wrong..];
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]], syntax: Syntax, is_coloured: bool) -> String {
        let mut bytes = Vec::new();
        let mut writer = Escaping::new(&mut bytes, syntax, is_coloured);
        for piece in pieces {
            writer.write_all(piece).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn output_is_escaped_across_chunk_boundaries() {
        let text = "a\x1b[2Jé\u{9b}\u{202e}\n";
        for at in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(at);
            assert_eq!(
                written(&[one, other], Syntax::Text, false),
                "a\\u{1b}[2Jé\\u{9b}\\u{202e}\n",
                "divided at {at}"
            );
        }
        assert_eq!(written(&[b"\"\xc2", b"\x9b\""], Syntax::Json, false), "\"\\u009b\"");
        assert_eq!(written(&[b"a\xffb"], Syntax::Text, false), "a\u{fffd}b");
    }

    #[test]
    fn only_styles_pass_if_colours_are_on() {
        let text = format!("a {} b", Style::BoldRed.marked("\x1b[0m\u{fdd1}!"));
        let bytes = text.as_bytes();
        assert_eq!(written(&[bytes], Syntax::Text, true), "a \x1b[1;31m\\u{1b}[0m\u{fffd}!\x1b[0m b");
        assert!(!written(&[bytes], Syntax::Text, false).contains('\x1b'));
    }
}
