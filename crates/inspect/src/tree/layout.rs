//! Columns: offsets, bytes, and wrapped text.

use std::io::{self, Write};

use thalweg_protobuf_text::dissect::Span;

use crate::paint::{Paint, Role};

/// Text with one role.
pub(super) type Piece = (Role, String);

/// A space that does not break lines. Quoted text has it escaped.
pub(super) const UNBROKEN_SPACE: &str = "\u{a0}";
/// Minimum width for 16 instead of 8 bytes per line.
const WIDE_WIDTH_MIN: usize = 110;
/// Maximum lines of bytes shown.
const BYTE_LINES_SHOWN: usize = 4;
/// Minimum width of offsets.
const OFFSET_DIGITS_MIN: usize = 6;

pub(super) struct Layout<'w> {
    output: &'w mut dyn Write,
    paint: Paint,
    width: usize,
    offset_digits: usize,
    line_bytes: usize,
    is_full: bool,
}

impl<'w> Layout<'w> {
    pub(super) fn new(
        output: &'w mut dyn Write,
        paint: Paint,
        width: usize,
        input_len: usize,
        is_full: bool,
    ) -> Self {
        let line_bytes = if width >= WIDE_WIDTH_MIN { 16 } else { 8 };
        Self { output, paint, width, offset_digits: digits(input_len), line_bytes, is_full }
    }

    /// Returns the same columns for another input.
    pub(super) fn for_input(&mut self, input_len: usize) -> Layout<'_> {
        Layout { output: &mut *self.output, offset_digits: digits(input_len), ..*self }
    }

    fn text_column(&self) -> usize {
        self.offset_digits + 2 + 3 * self.line_bytes + 1
    }

    /// Writes text across all columns.
    pub(super) fn line(&mut self, pieces: &[Piece]) -> io::Result<()> {
        let lines = wrapped(pieces, self.width, 2);
        if lines.is_empty() {
            return writeln!(self.output);
        }
        for line in lines {
            writeln!(self.output, "{}", self.painted(&line))?;
        }
        Ok(())
    }

    /// Writes text without bytes.
    pub(super) fn note(&mut self, depth: usize, pieces: &[Piece]) -> io::Result<()> {
        self.row(&[], Span { start: 0, end: 0 }, Role::Plain, depth, pieces)
    }

    /// Writes bytes with text next to them.
    pub(super) fn row(
        &mut self,
        input: &[u8],
        span: Span,
        role: Role,
        depth: usize,
        pieces: &[Piece],
    ) -> io::Result<()> {
        let text_width = self.width.saturating_sub(self.text_column()).max(10);
        // Deep messages must leave room for text.
        let indent = (2 * depth).min(text_width / 3);
        let texts = wrapped(pieces, text_width - indent, 2);
        let bytes = self.byte_lines(span.of(input), span.start);
        let (indent, column) = (" ".repeat(indent), self.text_column());
        for index in 0..texts.len().max(bytes.len()) {
            let (offset, bytes) = bytes.get(index).cloned().unwrap_or_default();
            let text = texts.get(index).map(|text| self.painted(text)).unwrap_or_default();
            let offset = self.paint.paint(Role::Aside, &format!("{offset:>0$}", self.offset_digits));
            if text.is_empty() {
                writeln!(self.output, "{offset}  {}", self.paint.paint(role, &bytes))?;
            } else {
                let bytes_width = column - self.offset_digits - 2;
                let padding = " ".repeat(bytes_width.saturating_sub(bytes.chars().count()));
                let bytes = self.paint.paint(role, &bytes);
                writeln!(self.output, "{offset}  {bytes}{padding}{indent}{text}")?;
            }
        }
        Ok(())
    }

    /// Returns lines of hex with their offsets. Long values are shortened.
    fn byte_lines(&self, bytes: &[u8], start: usize) -> Vec<(String, String)> {
        let lines = bytes.len().div_ceil(self.line_bytes);
        let shown = if self.is_full || lines <= BYTE_LINES_SHOWN { lines } else { BYTE_LINES_SHOWN - 1 };
        let mut byte_lines: Vec<(String, String)> = bytes
            .chunks(self.line_bytes)
            .take(shown)
            .enumerate()
            .map(|(index, line)| {
                let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02X}")).collect();
                ((start + index * self.line_bytes).to_string(), hex.join(" "))
            })
            .collect();
        if shown < lines {
            let left = bytes.len() - shown * self.line_bytes;
            byte_lines.push((String::new(), format!("… {left} more")));
        }
        byte_lines
    }

    fn painted(&self, pieces: &[Piece]) -> String {
        pieces
            .iter()
            .map(|(role, text)| self.paint.paint(*role, &text.replace(UNBROKEN_SPACE, " ")))
            .collect()
    }
}

fn digits(number: usize) -> usize {
    number.to_string().len().max(OFFSET_DIGITS_MIN)
}

/// Wraps text at spaces, or within a word that is longer than a line. All lines but the first are indented by `hang`.
fn wrapped(pieces: &[Piece], width: usize, hang: usize) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    let mut line: Vec<Piece> = Vec::new();
    let mut used = 0;
    for (role, text) in pieces {
        for word in text.split_inclusive(' ') {
            let mut word = word;
            // A trailing space may exceed the width.
            while used + word.trim_end().chars().count() > width {
                let free = if used > hang { 0 } else { width.saturating_sub(used).max(1) };
                let cut = word.char_indices().nth(free).map_or(word.len(), |(at, _)| at);
                let (begin, rest) = word.split_at(cut);
                if !begin.is_empty() {
                    append(&mut line, *role, begin);
                }
                lines.push(std::mem::take(&mut line));
                append(&mut line, Role::Plain, &" ".repeat(hang));
                used = hang;
                word = rest;
            }
            append(&mut line, *role, word);
            used += word.chars().count();
        }
    }
    if line.iter().any(|(_, text)| !text.trim().is_empty()) {
        lines.push(line);
    }
    for line in &mut lines {
        trim(line);
    }
    lines
}

fn append(line: &mut Vec<Piece>, role: Role, text: &str) {
    match line.last_mut() {
        Some((last, so_far)) if *last == role => so_far.push_str(text),
        _ => line.push((role, text.to_owned())),
    }
}

fn trim(line: &mut Vec<Piece>) {
    while let Some((_, text)) = line.last_mut() {
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            return;
        }
        line.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_spaces() {
        let check = |text: &str, width: usize, expected: &[&str]| {
            let lines = wrapped(&[(Role::Plain, text.to_owned())], width, 2);
            let lines: Vec<String> =
                lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect();
            assert_eq!(lines, expected);
        };
        check("", 10, &[]);
        check("one two", 10, &["one two"]);
        check("one two three", 8, &["one two", "  three"]);
        check("one two three", 7, &["one two", "  three"]);
        check("abcdefghij", 4, &["abcd", "  ef", "  gh", "  ij"]);
        check("one abcdefghij", 6, &["one", "  abcd", "  efgh", "  ij"]);
    }
}
