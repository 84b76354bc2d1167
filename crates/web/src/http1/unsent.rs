//! What of responses has not left a connection: [`Unsent`].

use std::collections::VecDeque;

/// Parts of fewer bytes are counted together: hyper copies them behind each other.
const PART_LEN_MIN: usize = 16 << 10;

/// What of the bodies of responses hyper holds. A part takes its memory until its last byte has left.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    parts: VecDeque<Part>,
    /// Of all parts, in bytes.
    memory: usize,
    /// How many bytes have left since it was told.
    sent: usize,
    told: usize,
}

#[derive(Debug)]
struct Part {
    len: usize,
    left: usize,
}

impl Unsent {
    /// hyper has taken a part of a body.
    pub(super) fn push(&mut self, len: usize) {
        self.memory += len;
        match self.parts.back_mut() {
            Some(last) if last.len < PART_LEN_MIN && len < PART_LEN_MIN => {
                last.len += len;
                last.left += len;
            }
            _ => self.parts.push_back(Part { len, left: len }),
        }
    }

    /// So many bytes have left. Those of heads, and around chunks, count as if they were of bodies.
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

    /// All has left.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.memory = 0;
    }

    /// How much memory it takes and how much has left, if that is news: small changes are none.
    pub(super) fn news(&mut self) -> Option<(usize, usize)> {
        let is_news = self.memory.abs_diff(self.told) >= PART_LEN_MIN
            || self.sent >= PART_LEN_MIN && self.told > 0
            || self.memory == 0 && self.told > 0;
        if !is_news {
            return None;
        }
        self.told = self.memory;
        Some((self.memory, std::mem::take(&mut self.sent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_until_its_last_byte_has_left() {
        let mut unsent = Unsent::default();
        unsent.push(100_000);
        unsent.push(50_000);
        assert_eq!(unsent.news(), Some((150_000, 0)));
        unsent.advance(99_999);
        assert_eq!(unsent.news(), Some((150_000, 99_999)));
        unsent.advance(1);
        assert_eq!(unsent.news(), Some((50_000, 1)));
        unsent.advance(49_000);
        unsent.clear();
        assert_eq!(unsent.news(), Some((0, 49_000)));
    }

    #[test]
    fn small_parts_are_one_and_no_news() {
        let mut unsent = Unsent::default();
        for _ in 0..1000 {
            unsent.push(10);
        }
        assert_eq!((unsent.parts.len(), unsent.news()), (1, None));
        unsent.advance(20_000);
        assert_eq!((unsent.parts.len(), unsent.memory, unsent.news()), (0, 0, None));
    }
}
