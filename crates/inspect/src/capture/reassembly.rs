//! Puts the bytes of one direction in order.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capture::segment::Segment;

/// Number of packets to wait for acknowledged but missing bytes, which may be captured out of order.
const PACKETS_SINCE_GAP_MAX: u32 = 64;
/// Overhead of a buffered segment, which may have no bytes if cut off.
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
    buffered: BTreeMap<u64, BufferedSegment>,
    /// Total cost of waiting segments.
    buffered_cost: usize,
    /// Offset acknowledged by the other side.
    acknowledged: u64,
    /// Packets since acknowledged bytes are missing.
    packets_since_gap: u32,
    /// Time of the last piece. Pieces delayed by a gap do not go back in time.
    last_at: Duration,
    fin: Option<u64>,
}

#[derive(Debug)]
struct BufferedSegment {
    at: Duration,
    bytes: Vec<u8>,
    cut: usize,
}

impl BufferedSegment {
    fn cost(&self) -> usize {
        SEGMENT_COST + self.bytes.len()
    }
}

impl Reassembly {
    /// Processes a segment. `buffered_max` limits buffered bytes including [`SEGMENT_COST`].
    pub(crate) fn push(
        &mut self,
        segment: &Segment<'_>,
        buffered_max: usize,
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
        if start == position && self.buffered.is_empty() {
            self.deliver(segment.at, bytes, segment.cut, each);
            return;
        }
        let buffered = BufferedSegment { at: segment.at, bytes: bytes.to_vec(), cut: segment.cut };
        // If two segments start at the same offset, keeps the longer.
        if self.buffered.get(&start).is_none_or(|known| known.bytes.len() < bytes.len()) {
            self.buffered_cost += buffered.cost();
            let replaced = self.buffered.insert(start, buffered);
            self.buffered_cost -= replaced.map_or(0, |known| known.cost());
        }
        self.deliver_ready(each);
        while self.buffered_cost > buffered_max {
            self.skip(u64::MAX, each);
        }
    }

    /// Handles an acknowledgment of all bytes up to `number`.
    pub(crate) fn acknowledge(&mut self, number: u32, each: &mut dyn FnMut(Piece<'_>)) {
        let Some((next, position)) = self.next else { return };
        let distance = number.wrapping_sub(next).cast_signed();
        if distance <= 0 || self.fin.is_some_and(|fin| position >= fin) {
            self.packets_since_gap = 0;
            return;
        }
        self.acknowledged = position + u64::from(distance.unsigned_abs());
        self.packets_since_gap += 1;
        if self.packets_since_gap > PACKETS_SINCE_GAP_MAX {
            self.skip(self.acknowledged, each);
        }
    }

    /// Ends the direction: passes on waiting segments and gaps before them.
    pub(crate) fn end(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        while !self.buffered.is_empty() {
            self.skip(u64::MAX, each);
        }
        // Bytes sent but not captured.
        self.skip(self.fin.unwrap_or(self.acknowledged), each);
    }

    /// Returns whether a SYN starts another connection. A retransmitted SYN has this connection's initial number.
    pub(crate) fn is_other_connection(&self, syn: &Segment<'_>) -> bool {
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
        self.packets_since_gap = 0;
        let Some((_, position)) = self.next else { return };
        let end = match self.buffered.keys().next() {
            Some(first) => end.min(*first),
            // FIN has a sequence number but no byte.
            None => self.fin.map_or(end, |fin| end.min(fin)),
        };
        if end > position && end != u64::MAX {
            each(Piece::Gap(end - position));
            self.advance(end - position);
        }
        self.deliver_ready(each);
    }

    /// Passes on waiting segments without gaps before them.
    fn deliver_ready(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        while let Some((_, position)) = self.next
            && let Some(first) = self.buffered.first_entry()
            && *first.key() <= position
        {
            let (start, buffered) = first.remove_entry();
            self.buffered_cost -= buffered.cost();
            let BufferedSegment { at, bytes, cut } = buffered;
            let known = usize::try_from(position - start).unwrap_or(usize::MAX);
            let cut = if known > bytes.len() { cut.saturating_sub(known - bytes.len()) } else { cut };
            self.deliver(at, bytes.get(known..).unwrap_or_default(), cut, each);
        }
    }

    fn deliver(&mut self, at: Duration, bytes: &[u8], cut: usize, each: &mut dyn FnMut(Piece<'_>)) {
        self.last_at = self.last_at.max(at);
        if !bytes.is_empty() {
            each(Piece::Bytes(self.last_at, bytes));
        }
        if cut > 0 {
            each(Piece::Gap(cut as u64));
        }
        self.advance((bytes.len() + cut) as u64);
        self.packets_since_gap = 0;
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
    const BUFFERED_MAX: usize = 3 * SEGMENT_COST + 16;

    /// Returns the bytes of these segments after a SYN with number 0xfffffffd. Gaps are `<N>`.
    fn put_together(segments: &[Segment<'_>]) -> String {
        let mut out = String::new();
        let mut each = |piece: Piece<'_>| match piece {
            Piece::Bytes(_, bytes) => out += std::str::from_utf8(bytes).unwrap(),
            // Writing to a String does not fail.
            Piece::Gap(len) => drop(write!(out, "<{len}>")),
        };
        let mut reassembly = Reassembly::default();
        reassembly.push(&Segment { is_syn: true, ..segment(0xffff_fffd, "") }, BUFFERED_MAX, &mut each);
        for segment in segments {
            reassembly.push(segment, BUFFERED_MAX, &mut each);
        }
        reassembly.end(&mut each);
        out
    }

    /// Returns the sequence number of a byte. Numbers wrap.
    fn number(offset: u32) -> u32 {
        0xffff_fffe_u32.wrapping_add(offset)
    }

    #[test]
    fn bytes_are_delivered_in_order_and_once() {
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
    fn missing_bytes_are_reported_as_gaps() {
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
    fn buffered_segments_without_bytes_are_bounded() {
        let mut reassembly = Reassembly::default();
        let mut gap_count = 0;
        let mut each = |piece: Piece<'_>| gap_count += u64::from(matches!(piece, Piece::Gap(_)));
        reassembly.push(&segment(0, "a"), BUFFERED_MAX, &mut each);
        for number in 0..1000 {
            let cut_off = Segment { cut: 10, ..segment(100 + number * 20, "") };
            reassembly.push(&cut_off, BUFFERED_MAX, &mut each);
            assert!(reassembly.buffered.len() <= BUFFERED_MAX / SEGMENT_COST);
        }
        reassembly.end(&mut each);
        // A gap for each cut segment and one before it.
        assert_eq!(gap_count, 2000);
        assert_eq!(reassembly.buffered_cost, 0);
    }

    #[test]
    fn acknowledged_bytes_become_a_gap_after_64_packets() {
        let mut gaps = Vec::new();
        let mut each = |piece: Piece<'_>| gaps.extend(matches!(piece, Piece::Gap(_)).then_some(()));
        let mut reassembly = Reassembly::default();
        reassembly.push(&segment(0, "a"), 1 << 20, &mut each);
        for _ in 0..PACKETS_SINCE_GAP_MAX {
            reassembly.acknowledge(11, &mut each);
        }
        reassembly.acknowledge(1, &mut each);
        for _ in 0..PACKETS_SINCE_GAP_MAX {
            reassembly.acknowledge(11, &mut each);
        }
        // The late packet arrives after all.
        reassembly.push(&segment(1, "0123456789"), 1 << 20, &mut each);
        for _ in 0..=PACKETS_SINCE_GAP_MAX {
            reassembly.acknowledge(21, &mut each);
        }
        assert_eq!(gaps.len(), 1);
    }
}
