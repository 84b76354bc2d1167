//! Reports for people, as a terminal shows them: warnings in colour, lines no wider than the terminal.

use std::env;

use thalweg_measure::figures::{NO_BREAK_SPACE, bound};

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::terminal::{self, Style, Syntax};

/// A figure's name and the spaces behind it are no longer than this.
const NAME_MAX: usize = 16;
/// Lines have at least this many columns of text.
const TEXT_MIN: usize = 10;
/// Narrower terminals get lines of this width.
const WIDTH_MIN: usize = 24;

/// Writes a report: to a terminal with colours and wrapped lines, and verbatim to anything else.
pub(crate) fn write(output: &OutputFile<'_>, text: &str) -> Result<(), Failure> {
    if !output.is_stdout() || !terminal::stdout_is_terminal() {
        return output.write(Syntax::Text, text);
    }
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let fitted = columns.map_or_else(|| text.to_owned(), |columns| fitted(text, columns));
    if terminal::are_colours_wanted(true, |name| env::var_os(name)) {
        return terminal::print_styled(&coloured(&fitted));
    }
    terminal::print(Syntax::Text, &fitted)
}

/// Lines of at most this many columns, broken between words. Further lines are indented, below a name's figure.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    text.split_inclusive('\n').map(|line| fitted_line(line, columns.max(WIDTH_MIN))).collect()
}

fn fitted_line(line: &str, columns: usize) -> String {
    if line.trim_end_matches('\n').chars().count() <= columns {
        return line.to_owned();
    }
    let bound = bound(line.strip_suffix('\n').unwrap_or(line));
    let own = bound.len() - bound.trim_start_matches(' ').len();
    let mut rest = &bound[own.saturating_sub(columns - TEXT_MIN)..];
    let indent = hanging(rest).min(columns - TEXT_MIN);
    let mut lines = String::new();
    let mut room = columns;
    while rest.chars().count() > room {
        let limit = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        // A word that is longer than a line stays whole.
        let text_from = rest.len() - rest.trim_start().len();
        let is_end = rest[limit..].starts_with(' ');
        let before = if is_end { Some(limit) } else { rest[..limit].rfind(' ').filter(|&at| at > text_from) };
        let Some(at) = before.or_else(|| rest[limit..].find(' ').map(|at| limit + at)) else { break };
        lines.push_str(rest[..at].trim_end());
        lines.push('\n');
        lines.extend(std::iter::repeat_n(' ', indent));
        rest = rest[at..].trim_start();
        room = columns - indent;
    }
    (lines + rest).replace(NO_BREAK_SPACE, " ") + if line.ends_with('\n') { "\n" } else { "" }
}

/// How far lines that continue this one are indented: to the figure behind a name, or by two columns more.
fn hanging(line: &str) -> usize {
    let own = line.len() - line.trim_start().len();
    let figure = line[own..].find("  ").map(|at| own + at).filter(|&at| at < NAME_MAX);
    let figure = figure.map(|at| at + line[at..].len() - line[at..].trim_start().len());
    figure.filter(|&at| at <= NAME_MAX).unwrap_or(own + 2)
}

/// Warnings in yellow, what failed or is not valid in red, each with the lines that continue it.
fn coloured(text: &str) -> String {
    let mut style = None;
    let coloured = text.split_inclusive('\n').map(|line| {
        style = match line {
            _ if line.starts_with("NOT VALID") || line.starts_with("FAILED") => Some(Style::BoldRed),
            _ if line.starts_with("! ") || line.starts_with("note  ") => Some(Style::Yellow),
            _ => style.filter(|_| line.starts_with("  ")),
        };
        match (style, line.strip_suffix('\n')) {
            (Some(style), Some(text)) => style.marked(text) + "\n",
            _ => line.to_owned(),
        }
    });
    coloured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_coloured_with_the_lines_that_continue_them() {
        let yellow = |text: &str| Style::Yellow.marked(text) + "\n";
        let red = |text: &str| Style::BoldRed.marked(text) + "\n";
        let text =
            "B against A\n  rate\n! one\n  two\nend\n  other\nNOT VALID     why\nnote          so\nx\n";
        let expected = [
            "B against A\n  rate\n",
            &yellow("! one"),
            &yellow("  two"),
            "end\n  other\n",
            &red("NOT VALID     why"),
            &yellow("note          so"),
            "x\n",
        ];
        assert_eq!(coloured(text), expected.concat());
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        for (text, expected) in [
            ("short\n", "short\n"),
            (
                "latency       p50 1.2 ms, p99 3.4 ms\n",
                "latency       p50\n              1.2 ms,\n              p99 3.4 ms\n",
            ),
            ("! Other programs were running at that time", "! Other programs were\n  running at that time"),
            ("  a 1 2 3 4 5 6 7 8 9 10 11 12", "  a 1 2 3 4 5 6 7 8 9 10\n    11 12"),
            ("                              far right of it", "              far right\n              of it"),
            ("averyveryverylongwordthatislong b", "averyveryverylongwordthatislong\n  b"),
            ("µµµµµµµµµµ µµµµµµµµµµ µµ µµ", "µµµµµµµµµµ µµµµµµµµµµ µµ\n  µµ"),
            ("µµµµµµµµµµ µµµµµµµµµµ µµµµ µ", "µµµµµµµµµµ µµµµµµµµµµ\n  µµµµ µ"),
        ] {
            assert_eq!(fitted(text, 24), expected, "{text}");
        }
    }
}
