//! What reports in a terminal have in common: tables, sentences in lines, and the doubts.

use std::borrow::Cow;

use thalweg_protobuf::printable;

use crate::figures::{NO_BREAK_SPACE, bound};
use crate::findings::Doubt;

/// Doubts beyond this many are left to the page.
const DOUBTS_MAX: usize = 8;
/// Sentences are broken before they grow longer than this.
const WIDTH: usize = 100;

/// A line for each of the first doubts, and how many more there are.
pub(crate) fn doubts(doubts: &[Doubt]) -> String {
    let mut text: String =
        doubts.iter().take(DOUBTS_MAX).map(|doubt| wrapped(&format!("! {doubt}"))).collect();
    if doubts.len() > DOUBTS_MAX {
        text += &wrapped(&format!("! … and {} more in the report.", doubts.len() - DOUBTS_MAX));
    }
    text
}

/// Rows of equally many cells, set flush right in columns.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| printable::line(cell)).collect()).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    // A longer one cannot be formatted.
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).min(u16::MAX.into())).collect();
    let line_of = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line_of).collect()
}

/// Lines of at most `WIDTH` characters, the second and later ones set in.
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
    fn cells_stay_on_their_lines_however_long_they_are() {
        let rows = [vec!["a\n\x1b".to_owned(), "b".to_owned()], vec!["c".repeat(100_000), "d".to_owned()]];
        let text = aligned(&rows);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("a\\n\\u{1b}  b\n"), "{:?}", &text[text.len() - 40..]);
    }

    #[test]
    fn no_line_is_longer_than_the_width_and_no_word_is_lost() {
        let text = "a bc ".repeat(100);
        let wrapped = wrapped(text.trim());
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
    }
}
