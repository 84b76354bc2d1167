//! Parse errors and their positions.

use std::fmt;

use crate::printable::excerpt;

/// Error for a text that is not a message of the type, with its position and field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte offset in the text, from 0.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Path such as `results[3].name`; empty at the message itself.
    pub path: String,
    /// The problem.
    pub problem: String,
    /// Whether the message exceeds [`ParseOptions::len_max`](crate::json::ParseOptions::len_max).
    pub is_too_long: bool,
}

impl ParseError {
    /// Creates an error at a byte offset in `text`, with an empty path.
    #[cold]
    pub fn new(text: &[u8], offset: usize, problem: impl Into<String>) -> Self {
        let offset = offset.min(text.len());
        let before = &text[..offset];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let is_start = |byte: &&u8| **byte & 0xc0 != 0x80;
        Self {
            offset,
            line: before.split(|&byte| byte == b'\n').count(),
            column: 1 + before[line_start..].iter().filter(is_start).count(),
            path: String::new(),
            problem: problem.into(),
            is_too_long: false,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { line, column, path, problem, .. } = self;
        write!(formatter, "line {line}, column {column}: ")?;
        if !path.is_empty() {
            write!(formatter, "{path}: ")?;
        }
        formatter.write_str(problem)
    }
}

impl std::error::Error for ParseError {}

/// A parse error that is propagating; each enclosing message adds its step to the path. Boxed, because every function
/// of the reader can return one but rarely does.
#[derive(Debug)]
pub struct LocatedError(Box<Details>);

#[derive(Debug)]
struct Details {
    at: usize,
    problem: String,
    /// `.name` or `[3]`, innermost first.
    steps: Vec<String>,
    is_too_long: bool,
}

/// Maximum number of path steps. Longer paths lose their outer end, since they are for people.
const STEPS_MAX: usize = 32;

impl LocatedError {
    /// Creates an error at this offset, in bytes.
    #[cold]
    #[inline(never)]
    pub fn new(at: usize, problem: impl Into<String>) -> LocatedError {
        LocatedError(Box::new(Details { at, problem: problem.into(), steps: Vec::new(), is_too_long: false }))
    }

    /// Creates an error for output that would exceed `max` bytes.
    #[cold]
    #[inline(never)]
    pub fn too_long(at: usize, max: usize) -> LocatedError {
        let mut error = LocatedError::new(at, format!("the message is longer than {max} bytes"));
        error.0.is_too_long = true;
        error
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.0.is_too_long
    }

    /// Adds the enclosing field to the path.
    #[cold]
    pub fn in_field(self, name: &str) -> LocatedError {
        self.step(format!(".{}", excerpt(name)))
    }

    /// Adds the enclosing list's element to the path.
    #[cold]
    pub fn in_element(self, index: usize) -> LocatedError {
        self.step(format!("[{index}]"))
    }

    fn step(mut self, step: String) -> LocatedError {
        if self.0.steps.len() < STEPS_MAX {
            self.0.steps.push(step);
        }
        self
    }

    /// Returns the offset of the problem.
    pub(crate) fn at(&self) -> usize {
        self.0.at
    }

    /// Returns the path and the problem.
    pub(crate) fn into_parts(self) -> (String, String) {
        let path: String = self.0.steps.into_iter().rev().collect();
        let path = path.strip_prefix('.').unwrap_or(&path).to_owned();
        (path, self.0.problem)
    }

    /// Adds line and column; the caller has the text.
    pub fn locate(self, text: &[u8]) -> ParseError {
        let (at, is_too_long) = (self.at(), self.is_too_long());
        let (path, problem) = self.into_parts();
        ParseError { path, is_too_long, ..ParseError::new(text, at, problem) }
    }
}

#[cfg(test)]
mod tests {
    use super::LocatedError;

    #[test]
    fn error_has_line_column_and_path() {
        let text = "{\n  \"é\": [1, 2x]\n}".as_bytes();
        let at = text.iter().position(|&byte| byte == b'x').unwrap();
        let error = LocatedError::new(at, "expected , or ]").in_element(1).in_field("é").in_field("outer");
        let error = error.locate(text);
        assert_eq!(error.to_string(), "line 2, column 13: outer.é[1]: expected , or ]");
        assert_eq!(error.offset, at);
    }
}
