//! Errors in `.proto` files, with positions.

use std::fmt;

/// Maximum number of errors, and of warnings, per compilation.
pub(super) const ERRORS_MAX: usize = 100;

/// Start of a token, counted from 0. [`Token`](super::lex::Token) defines how columns are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Position {
    /// The position of an error that concerns the whole file.
    pub(super) const WHOLE_FILE: Position = Position { line: u32::MAX, column: 0 };
}

impl Default for Position {
    fn default() -> Self {
        Position::WHOLE_FILE
    }
}

/// Errors of `.proto` files that do not compile: at least one [`Diagnostic`].
///
/// `Display` prints each with its position, the line, and a mark below it:
///
/// ```text
/// shop.proto:4:5: "Cart" is not defined
///   |
/// 4 |     Cart cart = 1;
///   |     ^
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceError {
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl SourceError {
    /// Returns the errors, sorted by file and position.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SourceError {}

/// An error or a warning in a `.proto` file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub(super) file: String,
    pub(super) path: Option<String>,
    pub(super) excerpt: Option<SourceExcerpt>,
    pub(super) message: String,
}

/// The line of a diagnostic, with the part to mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SourceExcerpt {
    line: usize,
    column: usize,
    text: String,
    /// Number of characters before the mark.
    indent: usize,
    /// Number of characters to mark.
    width: usize,
}

impl Diagnostic {
    /// Creates an error for a file that could not be read.
    pub(super) fn of_file(file: &str, message: &str) -> Self {
        Diagnostic { file: file.to_owned(), path: None, excerpt: None, message: message.to_owned() }
    }

    /// Creates an error at a line and column of `source`, both from 0, as in source info.
    #[must_use]
    pub fn at(file: String, source: &str, start: Option<(usize, usize)>, message: String) -> Self {
        let excerpt = start.and_then(|(line, column)| {
            let position = Position { line: line as u32, column: column as u32 };
            SourceExcerpt::find(source, &Lines::new(source), position)
                .map(|excerpt| SourceExcerpt { width: 1, ..excerpt })
        });
        Diagnostic { file, path: None, excerpt, message }
    }

    /// Returns the file, as imports name it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the file's path, if the [`SourceTree`](super::SourceTree) provided it.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns the line, from 1. `None` if the error concerns the whole file.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.line)
    }

    /// Returns the column, from 1. It counts bytes, and a tab advances to the next multiple of eight, as in protoc's
    /// errors.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.column)
    }

    /// Returns the error message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path.as_deref().unwrap_or(&self.file))?;
        let Some(SourceExcerpt { line, column, text, indent, width }) = &self.excerpt else {
            return write!(f, ": {}", self.message);
        };
        let gutter = " ".repeat(line.to_string().len());
        // Keep tabs, so that the mark stays aligned.
        let indent: String = text.chars().take(*indent).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let mark = "^".repeat(*width);
        write!(f, ":{line}:{column}: {}", self.message)?;
        write!(f, "\n{gutter} |\n{line} | {text}\n{gutter} | {indent}{mark}")
    }
}

/// Maximum number of characters of a line that are shown.
const LINE_CHARS_MAX: usize = 200;
/// Lines are not shown for errors beyond this column: such a line is not human-readable.
const COLUMN_MAX: u32 = 100_000;

/// Offsets of the starts of a text's lines.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn new(text: &str) -> Self {
        Lines([0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn line<'s>(&self, source: &'s str, line: u32) -> &'s str {
        let Some(&start) = self.0.get(line as usize) else { return "" };
        let end = self.0.get(line as usize + 1).map_or(source.len(), |&next| next - 1);
        source[start..end].trim_end_matches('\r')
    }
}

impl SourceExcerpt {
    /// Returns the excerpt at `position` in `source`, marking the word that starts there.
    pub(super) fn find(source: &str, lines: &Lines, position: Position) -> Option<SourceExcerpt> {
        if position == Position::WHOLE_FILE {
            return None;
        }
        let (line, column) = (position.line as usize, position.column as usize);
        let is_shown = position.column <= COLUMN_MAX;
        let text = if is_shown { lines.line(source, position.line) } else { "" };
        let mut at = 0;
        let mut indent = 0;
        for c in text.chars() {
            if at >= column {
                break;
            }
            at += if c == '\t' { 8 - at % 8 } else { c.len_utf8() };
            indent += 1;
        }
        let rest = || text.chars().skip(indent);
        let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let width = match rest().next() {
            Some(quote @ ('"' | '\'')) => rest().skip(1).position(|c| c == quote).map_or(1, |end| end + 2),
            _ => rest().take_while(is_word).count().max(1),
        };
        // Lines of generated files may be very long.
        let (text, indent) = match indent.checked_sub(LINE_CHARS_MAX / 2) {
            Some(skipped) if text.len() > LINE_CHARS_MAX => {
                (text.chars().skip(skipped).take(LINE_CHARS_MAX).collect(), LINE_CHARS_MAX / 2)
            }
            _ => (text.chars().take(LINE_CHARS_MAX).collect(), indent),
        };
        let width = width.min(LINE_CHARS_MAX - indent.min(LINE_CHARS_MAX - 1));
        Some(SourceExcerpt { line: line + 1, column: column + 1, text, indent, width })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostic_marks_the_position_below_its_line() {
        let check = |source: &str, line: u32, column: u32, expected: &str| {
            let excerpt = SourceExcerpt::find(source, &Lines::new(source), Position { line, column });
            let (file, message) = ("a.proto".to_owned(), "wrong".to_owned());
            assert_eq!(Diagnostic { file, path: None, excerpt, message }.to_string(), expected);
        };
        check("a\n  Foo b", 1, 2, "a.proto:2:3: wrong\n  |\n2 |   Foo b\n  |   ^^^");
        check("\tFoo", 0, 8, "a.proto:1:9: wrong\n  |\n1 | \tFoo\n  | \t^^^");
        check("é = \"x\";", 0, 5, "a.proto:1:6: wrong\n  |\n1 | é = \"x\";\n  |     ^^^");
        check("a", 1, 0, "a.proto:2:1: wrong\n  |\n2 | \n  | ^");
        check("a", u32::MAX, 0, "a.proto: wrong");
        let long = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let excerpt = SourceExcerpt::find(&long, &Lines::new(&long), Position { line: 0, column: 1000 });
        assert!(excerpt.is_some_and(|excerpt| excerpt.text.len() == 200));
    }
}
