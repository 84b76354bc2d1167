//! Lines of a body that arrives in pieces.

use std::mem;

/// Cuts a body into lines. A watch has one event per line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The line that has not ended yet.
    rest: Vec<u8>,
}

/// A line exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

impl Lines {
    /// Takes a piece, and returns the lines that it completes.
    pub(crate) fn take(&mut self, piece: &[u8], len_max: usize) -> Result<Vec<Vec<u8>>, LineTooLong> {
        let mut complete = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            if self.rest.len() + text.len() > len_max {
                return Err(LineTooLong);
            }
            self.rest.extend_from_slice(text);
            if is_end {
                complete.push(mem::take(&mut self.rest));
            }
        }
        Ok(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &[&str], rest: &str) {
        let mut lines = Lines::default();
        let taken = pieces.iter().flat_map(|piece| lines.take(piece.as_bytes(), 5).expect("short lines"));
        let taken: Vec<String> = taken.map(|line| String::from_utf8(line).expect("text")).collect();
        assert_eq!(taken, expected, "{pieces:?}");
        assert_eq!(lines.rest, rest.as_bytes(), "{pieces:?}");
    }

    #[test]
    fn lines_are_cut_where_they_end() {
        check(&["a\nbc\n"], &["a", "bc"], "");
        check(&["a", "b", "\nc", "", "d\ne"], &["ab", "cd"], "e");
        check(&["\n\n"], &["", ""], "");
        check(&["12345", "\n12345"], &["12345"], "12345");
    }

    #[test]
    fn long_lines_are_errors() {
        assert_eq!(Lines::default().take(b"123456\n", 5), Err(LineTooLong));
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"1\n1234", 5), Ok(vec![b"1".to_vec()]));
        assert_eq!(lines.take(b"56", 5), Err(LineTooLong));
    }
}
