//! Splits a byte stream into messages in text format.

/// Separator between messages, as in grpcurl: the ASCII record separator.
pub const SEPARATOR: u8 = 0x1e;

/// Splits a byte stream at record separators. Text format has no end marker: what follows would be more fields of the
/// same message.
#[derive(Debug, Default)]
pub(super) struct Records {
    pending: Vec<u8>,
    /// Number of pending bytes without a separator.
    seen: usize,
}

impl Records {
    /// Adds input.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the next complete message, which may be empty.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let Some(at) = self.pending[self.seen..].iter().position(|byte| *byte == SEPARATOR) else {
            self.seen = self.pending.len();
            return None;
        };
        let behind = self.pending.split_off(self.seen + at + 1);
        let mut record = std::mem::replace(&mut self.pending, behind);
        record.pop();
        self.seen = 0;
        Some(record)
    }

    /// Returns the remaining bytes at the end, unless they are white space.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(self).pending;
        (!rest.iter().all(u8::is_ascii_whitespace)).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_ends_a_message() {
        let check = |text: &str, expected: &[&str]| {
            for piece in 1..=text.len().max(1) {
                let mut records = Records::default();
                let mut found = Vec::new();
                for bytes in text.as_bytes().chunks(piece) {
                    records.push(bytes);
                    found.extend(std::iter::from_fn(|| records.next()));
                }
                found.extend(records.rest());
                let found: Vec<String> =
                    found.into_iter().map(|record| String::from_utf8(record).unwrap()).collect();
                assert_eq!(found, expected, "{text:?} in pieces of {piece}");
            }
        };
        check("", &[]);
        check(" \n", &[]);
        check("a: 1\nb: 2\n", &["a: 1\nb: 2\n"]);
        check("a: 1\x1ea: 2", &["a: 1", "a: 2"]);
        check("a: 1\n\x1e\n", &["a: 1\n"]);
        check("\x1e\x1ea: 1", &["", "", "a: 1"]);
    }
}
