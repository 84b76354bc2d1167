//! Puts the bytes of one direction in order.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capture::segment::Segment;

/// Number of packets to wait for acknowledged but missing bytes, which may be captured out of order.
const PATIENCE: u32 = 64;
/// Overhead of a waiting segment, which may have no bytes if cut off.
const SEGMENT_COST: usize = 64;

/// The next piece of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Bytes(Duration, &'a [u8]),
    /// Number of bytes missing from the capture.
    Gap(u64),
}

/// The bytes of one direction. Sequence numbers become offsets, which do not wrap.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// Next sequence number and its offset. `None` before the first segment.
    next: Option<(u32, u64)>,
    /// Segments that wait for earlier bytes, by offset. Bytes cut off are only counted.
    waiting: BTreeMap<u64, Waiting>,
    /// Total cost of waiting segments.
    waiting_cost: usize,
    /// Offset acknowledged by the other side.
    acknowledged: u64,
    /// Packets since acknowledged bytes are missing.
    patience: u32,
    /// Time of the last piece. Pieces delayed by a gap do not go back in time.
    last_at: Duration,
    fin: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    at: Duration,
    bytes: Vec<u8>,
    cut: usize,
}

impl Waiting {
    fn cost(&self) -> usize {
        SEGMENT_COST + self.bytes.len()
    }
}

impl Reassembly {
    /// Processes a segment. `waiting_max` limits waiting bytes including [`SEGMENT_COST`].
    pub(crate) fn take(
        &mut self,
        segment: &Segment<'_>,
        waiting_max: usize,
        each: &mut dyn FnMut(Piece<'_>),
    ) {
        let sequence = if segment.is_syn { segment.sequence.wrapping_add(1) } else { segment.sequence };
        let (next, position) = *self.next.get_or_insert((sequence, 0));
        // Less than half the number range ahead is new, otherwise old.
        let distance = i64::from(sequence.wrapping_sub(next).cast_signed());
        let (bytes, start) = if distance < 0 {
            let known = distance.unsigned_abs();
            match usize::try_from(known).ok().and_then(|known| segment.bytes.get(known..)) {
                Some(bytes) => (bytes, position),
                // A complete retransmission.
                None if known as usize >= segment.bytes.len() + segment.cut => return,
                None => (&[][..], position),
            }
        } else {
            (segment.bytes, position + distance as u64)
        };
        if segment.is_fin {
            self.fin = Some(start + bytes.len() as u64 + segment.cut as u64);
        }
        if bytes.is_empty() && segment.cut == 0 {
            return;
        }
        if start == position && self.waiting.is_empty() {
            self.give(segment.at, bytes, segment.cut, each);
            return;
        }
        let waits = Waiting { at: segment.at, bytes: bytes.to_vec(), cut: segment.cut };
        // If two segments start at the same offset, keeps the longer.
        if self.waiting.get(&start).is_none_or(|known| known.bytes.len() < bytes.len()) {
            self.waiting_cost += waits.cost();
            let replaced = self.waiting.insert(start, waits);
            self.waiting_cost -= replaced.map_or(0, |known| known.cost());
        }
        self.give_ready(each);
        while self.waiting_cost > waiting_max {
            self.skip(u64::MAX, each);
        }
    }

    /// Handles an acknowledgment of all bytes up to `number`.
    pub(crate) fn acknowledge(&mut self, number: u32, each: &mut dyn FnMut(Piece<'_>)) {
        let Some((next, position)) = self.next else { return };
        let distance = number.wrapping_sub(next).cast_signed();
        if distance <= 0 || self.fin.is_some_and(|fin| position >= fin) {
            self.patience = 0;
            return;
        }
        self.acknowledged = position + u64::from(distance.unsigned_abs());
        self.patience += 1;
        if self.patience > PATIENCE {
            self.skip(self.acknowledged, each);
        }
    }

    /// Ends the direction: passes on waiting segments and gaps before them.
    pub(crate) fn end(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        while !self.waiting.is_empty() {
            self.skip(u64::MAX, each);
        }
        // Bytes sent but not captured.
        self.skip(self.fin.unwrap_or(self.acknowledged), each);
    }

    /// Returns whether a SYN starts another connection. A retransmitted SYN has this connection's initial number.
    pub(crate) fn begins_otherwise(&self, syn: &Segment<'_>) -> bool {
        let first = self.next.map(|(next, position)| next.wrapping_sub(position as u32));
        first.is_some_and(|first| first != syn.sequence.wrapping_add(1))
    }

    /// Returns whether FIN was sent and all bytes before it were passed on or acknowledged.
    pub(crate) fn has_ended(&self) -> bool {
        let has_come = |fin| self.next.is_some_and(|(_, position)| position >= fin);
        self.fin.is_some_and(|fin| has_come(fin) || self.acknowledged >= fin)
    }

    /// Skips missing bytes up to `end` or the first waiting segment.
    fn skip(&mut self, end: u64, each: &mut dyn FnMut(Piece<'_>)) {
        self.patience = 0;
        let Some((_, position)) = self.next else { return };
        let end = match self.waiting.keys().next() {
            Some(first) => end.min(*first),
            // FIN has a sequence number but no byte.
            None => self.fin.map_or(end, |fin| end.min(fin)),
        };
        if end > position && end != u64::MAX {
            each(Piece::Gap(end - position));
            self.advance(end - position);
        }
        self.give_ready(each);
    }

    /// Passes on waiting segments without gaps before them.
    fn give_ready(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        while let Some((_, position)) = self.next
            && let Some(first) = self.waiting.first_entry()
            && *first.key() <= position
        {
            let (start, waits) = first.remove_entry();
            self.waiting_cost -= waits.cost();
            let Waiting { at, bytes, cut } = waits;
            let known = usize::try_from(position - start).unwrap_or(usize::MAX);
            let cut = if known > bytes.len() { cut.saturating_sub(known - bytes.len()) } else { cut };
            self.give(at, bytes.get(known..).unwrap_or_default(), cut, each);
        }
    }

    fn give(&mut self, at: Duration, bytes: &[u8], cut: usize, each: &mut dyn FnMut(Piece<'_>)) {
        self.last_at = self.last_at.max(at);
        if !bytes.is_empty() {
            each(Piece::Bytes(self.last_at, bytes));
        }
        if cut > 0 {
            each(Piece::Gap(cut as u64));
        }
        self.advance((bytes.len() + cut) as u64);
        self.patience = 0;
    }

    fn advance(&mut self, len: u64) {
        if let Some((next, position)) = &mut self.next {
            *next = next.wrapping_add(len as u32);
            *position += len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    const ADDRESS: std::net::SocketAddr =
        std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn segment(sequence: u32, text: &str) -> Segment<'_> {
        Segment {
            at: Duration::ZERO,
            from: ADDRESS,
            to: ADDRESS,
            sequence,
            acknowledged: None,
            is_syn: false,
            is_fin: false,
            is_reset: false,
            bytes: text.as_bytes(),
            cut: 0,
        }
    }

    /// Limit of waiting bytes in these tests.
    const WAITING_MAX: usize = 3 * SEGMENT_COST + 16;

    /// Returns the bytes of these segments after a SYN with number 0xfffffffd. Gaps are `<N>`.
    fn put_together(segments: &[Segment<'_>]) -> String {
        let mut out = String::new();
        let mut each = |piece: Piece<'_>| match piece {
            Piece::Bytes(_, bytes) => out += std::str::from_utf8(bytes).unwrap(),
            // Writing to a String does not fail.
            Piece::Gap(len) => drop(write!(out, "<{len}>")),
        };
        let mut reassembly = Reassembly::default();
        reassembly.take(&Segment { is_syn: true, ..segment(0xffff_fffd, "") }, WAITING_MAX, &mut each);
        for segment in segments {
            reassembly.take(segment, WAITING_MAX, &mut each);
        }
        reassembly.end(&mut each);
        out
    }

    /// Returns the sequence number of a byte. Numbers wrap.
    fn number(offset: u32) -> u32 {
        0xffff_fffe_u32.wrapping_add(offset)
    }

    #[test]
    fn bytes_come_in_order_and_once() {
        let at = |offset, text| segment(number(offset), text);
        assert_eq!(put_together(&[at(0, "abc"), at(3, "def")]), "abcdef");
        assert_eq!(put_together(&[at(3, "def"), at(0, "abc")]), "abcdef");
        assert_eq!(put_together(&[at(0, "abc"), at(0, "abc"), at(1, "bcde"), at(3, "d")]), "abcde");
        assert_eq!(put_together(&[at(4, "ef"), at(2, "cdefg"), at(4, "efg"), at(0, "abcd")]), "abcdefg");
        assert_eq!(put_together(&[at(6, "g"), at(2, "c"), at(4, "e"), at(0, "abcdef")]), "abcdefg");
        // A keep-alive probe repeats a byte.
        assert_eq!(put_together(&[at(0, "ab"), at(1, "x"), at(2, "c")]), "abc");
    }

    #[test]
    fn what_is_missing_is_said() {
        let at = |offset, text| segment(number(offset), text);
        assert_eq!(put_together(&[at(0, "ab"), at(4, "ef")]), "ab<2>ef");
        assert_eq!(put_together(&[at(2, "0123456789"), at(14, "012345678")]), "<2>0123456789<2>012345678");
        let cut = Segment { cut: 3, ..at(0, "ab") };
        assert_eq!(put_together(&[cut, at(5, "f")]), "ab<3>f");
        assert_eq!(put_together(&[at(5, "f"), cut]), "ab<3>f");
        // A later retransmission does not fill the gap that was reported.
        assert_eq!(put_together(&[cut, at(0, "abcde"), at(5, "f")]), "ab<3>f");
    }

    #[test]
    fn segments_without_captured_bytes_wait_within_the_bound() {
        let mut reassembly = Reassembly::default();
        let mut given = 0;
        let mut each = |piece: Piece<'_>| given += u64::from(matches!(piece, Piece::Gap(_)));
        reassembly.take(&segment(0, "a"), WAITING_MAX, &mut each);
        for number in 0..1000 {
            let cut_off = Segment { cut: 10, ..segment(100 + number * 20, "") };
            reassembly.take(&cut_off, WAITING_MAX, &mut each);
            assert!(reassembly.waiting.len() <= WAITING_MAX / SEGMENT_COST);
        }
        reassembly.end(&mut each);
        // A gap for each cut segment and one before it.
        assert_eq!(given, 2000);
        assert_eq!(reassembly.waiting_cost, 0);
    }

    #[test]
    fn what_was_acknowledged_is_not_waited_for() {
        let mut gaps = Vec::new();
        let mut each = |piece: Piece<'_>| gaps.extend(matches!(piece, Piece::Gap(_)).then_some(()));
        let mut reassembly = Reassembly::default();
        reassembly.take(&segment(0, "a"), 1 << 20, &mut each);
        for _ in 0..PATIENCE {
            reassembly.acknowledge(11, &mut each);
        }
        reassembly.acknowledge(1, &mut each);
        for _ in 0..PATIENCE {
            reassembly.acknowledge(11, &mut each);
        }
        // The late packet arrives after all.
        reassembly.take(&segment(1, "0123456789"), 1 << 20, &mut each);
        for _ in 0..=PATIENCE {
            reassembly.acknowledge(21, &mut each);
        }
        assert_eq!(gaps.len(), 1);
    }
}
