//! Bytes of responses that have not left an HTTP/1.1 connection: [`Unsent`].

use std::collections::VecDeque;

/// Parts below this size are counted as one, because hyper copies them into one buffer.
const PART_LEN_MIN: usize = 16 << 10;

/// Bodies of responses that hyper buffers. A part occupies its memory until its last byte has left.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    parts: VecDeque<QueuedPart>,
    /// Size of all parts, in bytes.
    memory: usize,
    /// Bytes sent since the last report.
    sent: usize,
    reported: usize,
}

#[derive(Debug)]
struct QueuedPart {
    len: usize,
    left: usize,
}

impl Unsent {
    /// Adds a part that hyper has taken.
    pub(super) fn push(&mut self, len: usize) {
        self.memory += len;
        match self.parts.back_mut() {
            Some(last) if last.len < PART_LEN_MIN && len < PART_LEN_MIN => {
                last.len += len;
                last.left += len;
            }
            _ => self.parts.push_back(QueuedPart { len, left: len }),
        }
    }

    /// Removes `written` bytes. Bytes of headers and of chunk framing count as body bytes.
    pub(super) fn advance(&mut self, mut written: usize) {
        self.sent += written;
        while let Some(first) = self.parts.front_mut() {
            let taken = first.left.min(written);
            first.left -= taken;
            written -= taken;
            if first.left > 0 {
                return;
            }
            self.memory -= first.len;
            self.parts.pop_front();
        }
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.memory = 0;
    }

    /// Returns the buffered and the sent bytes, unless they have hardly changed since the last report.
    pub(super) fn report(&mut self) -> Option<(usize, usize)> {
        let has_changed = self.memory.abs_diff(self.reported) >= PART_LEN_MIN
            || self.sent >= PART_LEN_MIN && self.reported > 0
            || self.memory == 0 && self.reported > 0;
        if !has_changed {
            return None;
        }
        self.reported = self.memory;
        Some((self.memory, std::mem::take(&mut self.sent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_occupies_memory_until_last_byte_is_sent() {
        let mut unsent = Unsent::default();
        unsent.push(100_000);
        unsent.push(50_000);
        assert_eq!(unsent.report(), Some((150_000, 0)));
        unsent.advance(99_999);
        assert_eq!(unsent.report(), Some((150_000, 99_999)));
        unsent.advance(1);
        assert_eq!(unsent.report(), Some((50_000, 1)));
        unsent.advance(49_000);
        unsent.clear();
        assert_eq!(unsent.report(), Some((0, 49_000)));
    }

    #[test]
    fn small_parts_are_merged_and_not_reported() {
        let mut unsent = Unsent::default();
        for _ in 0..1000 {
            unsent.push(10);
        }
        assert_eq!((unsent.parts.len(), unsent.report()), (1, None));
        unsent.advance(20_000);
        assert_eq!((unsent.parts.len(), unsent.memory, unsent.report()), (0, 0, None));
    }
}
