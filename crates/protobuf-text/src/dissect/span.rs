//! Positions in the input.

use std::ops::Range;

/// A byte range of the input, from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span of the whole input.
    pub fn all(input: &[u8]) -> Self {
        Self { start: 0, end: input.len() }
    }

    /// Returns its length in bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns its bytes, or none if they are out of range.
    pub fn of(self, input: &[u8]) -> &[u8] {
        input.get(Range::from(self)).unwrap_or_default()
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}
