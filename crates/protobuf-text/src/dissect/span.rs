//! Where something lies in the input.

use std::ops::Range;

/// Where something lies in the input, in bytes: from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset behind the last one.
    pub end: usize,
}

impl Span {
    /// All of the input.
    pub fn all(input: &[u8]) -> Self {
        Self { start: 0, end: input.len() }
    }

    /// How many bytes that is.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Nothing.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes; none if they are not there.
    pub fn of(self, input: &[u8]) -> &[u8] {
        input.get(Range::from(self)).unwrap_or_default()
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}
