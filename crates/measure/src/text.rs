//! Terminal output: aligned tables and wrapped sentences.

use std::borrow::Cow;

use thalweg_protobuf::printable;

use crate::figures::{NO_BREAK_SPACE, bound};

/// Maximum line length of wrapped text, in characters.
const WIDTH: usize = 100;
/// Maximum length of a figure's name with the spaces after it.
const NAME_MAX: usize = 16;
/// Minimum columns of text per line.
const TEXT_MIN: usize = 10;
/// Minimum width of lines, even on narrower terminals.
const WIDTH_MIN: usize = 24;

/// Formats rows as right-aligned columns, and escapes control characters.
///
/// # Panics
///
/// Panics if a row has fewer cells than the first one.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| printable::line(cell)).collect()).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    // `format!` panics on a width above `u16::MAX`.
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).min(u16::MAX.into())).collect();
    let line_of = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line_of).collect()
}

/// Wraps text at 100 characters, and indents all lines but the first. Does not break longer words.
pub fn wrapped(text: &str) -> String {
    fitted(&format!("{}\n", printable::line(text)), WIDTH)
}

/// Wraps lines at this many columns, between words. Continuation lines are indented, to the figure after a name if
/// there is one.
pub fn fitted(text: &str, columns: usize) -> String {
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
        // A word that is longer than a line is not broken.
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

/// Returns the indentation of continuation lines: at the figure after a name, or two more columns.
fn hanging(line: &str) -> usize {
    let own = line.len() - line.trim_start().len();
    let figure = line[own..].find("  ").map(|at| own + at).filter(|&at| at < NAME_MAX);
    let figure = figure.map(|at| at + line[at..].len() - line[at..].trim_start().len());
    figure.filter(|&at| at <= NAME_MAX).unwrap_or(own + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_and_line_breaks_keep_one_line_per_row() {
        let rows = [vec!["a\n\x1b".to_owned(), "b".to_owned()], vec!["c".repeat(100_000), "d".to_owned()]];
        let text = aligned(&rows);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("a\\n\\u{1b}  b\n"), "{:?}", &text[text.len() - 40..]);
    }

    #[test]
    fn wrapped_lines_fit_the_width_and_keep_all_words() {
        let text = "a bc ".repeat(100);
        let wrapped = wrapped(text.trim());
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
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
