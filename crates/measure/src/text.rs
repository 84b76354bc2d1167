//! Terminal output: aligned tables and wrapped sentences.

use std::borrow::Cow;

use thalweg_protobuf::printable;

use crate::figures::{NO_BREAK_SPACE, bound};

/// Maximum line length of wrapped text, in characters.
const WIDTH: usize = 100;

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

/// Wraps text at 100 characters, with all lines but the first indented. A longer word is not broken.
pub fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in bound(&printable::line(text)).split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > WIDTH {
            lines += "\n  ";
            length = 2;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += word_length;
    }
    lines.replace(NO_BREAK_SPACE, " ") + "\n"
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
}
