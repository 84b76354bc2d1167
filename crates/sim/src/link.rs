//! One direction of a link: bytes arrive in order, delayed, and in different pieces than sent.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes};

use crate::random::Random;

/// Behaviour of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkPlan {
    /// Minimum delay of each piece, and the random delay added to it; pieces never overtake each other.
    pub(crate) delay_min: Duration,
    pub(crate) jitter_max: Duration,
    /// Maximum bytes in transit; beyond that a writer has to wait.
    pub(crate) capacity: usize,
    /// Maximum bytes per read; small ones split frames.
    pub(crate) read_max: usize,
    /// Whether a read may randomly return less than available.
    pub(crate) splits_reads: bool,
}

impl LinkPlan {
    pub(crate) fn random(random: &mut Random) -> LinkPlan {
        LinkPlan {
            delay_min: Duration::from_micros(random.size(50_000) as u64),
            jitter_max: Duration::from_micros(random.size(20_000) as u64),
            capacity: random.pick(&[100, 4096, 65_536, 1 << 20]),
            read_max: random.pick(&[40, 1000, 20_000, usize::MAX, usize::MAX]),
            splits_reads: true,
        }
    }

    /// Delivers everything after `delay`, in the pieces that were written.
    pub(crate) fn steady(delay: Duration) -> LinkPlan {
        LinkPlan {
            delay_min: delay,
            jitter_max: Duration::ZERO,
            capacity: usize::MAX,
            read_max: usize::MAX,
            splits_reads: false,
        }
    }

    /// Maximum bytes moved in one step.
    pub(crate) fn narrowest(&self) -> usize {
        self.capacity.min(self.read_max)
    }
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    plan: LinkPlan,
    /// Pieces in transit or arrived, with their arrival times.
    pieces: VecDeque<(Duration, Bytes)>,
    in_transit: usize,
    last_arrival: Duration,
    /// Arrival time of the end of the stream, once the writer has closed.
    end: Option<Duration>,
    broken: bool,
    /// The reader is closed: written bytes are discarded.
    reader_closed: bool,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Nothing,
    Some,
    /// The writer has closed, or the link is broken.
    End,
}

impl Pipe {
    pub(crate) fn new(plan: LinkPlan) -> Pipe {
        let last_arrival = Duration::ZERO;
        Pipe {
            plan,
            pieces: VecDeque::new(),
            in_transit: 0,
            last_arrival,
            end: None,
            broken: false,
            reader_closed: false,
        }
    }

    /// Bytes that can be written now.
    pub(crate) fn free_space(&self) -> usize {
        if self.end.is_some() || self.broken { 0 } else { self.plan.capacity.saturating_sub(self.in_transit) }
    }

    /// Sends `bytes`. To respect the link's capacity, check [`free_space`](Self::free_space) first.
    pub(crate) fn write(&mut self, bytes: Bytes, now: Duration, random: &mut Random) {
        if self.reader_closed {
            return;
        }
        let jitter = random.between(0, self.plan.jitter_max.as_micros() as usize);
        let delay = self.plan.delay_min + Duration::from_micros(jitter as u64);
        self.last_arrival = self.last_arrival.max(now + delay);
        self.in_transit += bytes.len();
        self.pieces.push_back((self.last_arrival, bytes));
    }

    /// Ends the stream.
    pub(crate) fn close(&mut self, now: Duration) {
        self.end.get_or_insert(self.last_arrival.max(now + self.plan.delay_min));
    }

    /// Breaks the connection; bytes in transit are lost.
    pub(crate) fn cut(&mut self) {
        self.broken = true;
        self.pieces.clear();
        self.in_transit = 0;
    }

    /// Closes the reading end.
    pub(crate) fn close_reader(&mut self) {
        self.reader_closed = true;
        self.pieces.clear();
        self.in_transit = 0;
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Time when there is something to read.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        if self.broken {
            return Some(Duration::ZERO);
        }
        self.pieces.front().map(|piece| piece.0).or(self.end)
    }

    /// Appends arrived bytes, or a part of them, to `target`: at most `len_max`.
    pub(crate) fn read(
        &mut self,
        target: &mut Vec<u8>,
        len_max: usize,
        now: Duration,
        random: &mut Random,
    ) -> Read {
        let arrived: usize =
            self.pieces.iter().take_while(|piece| piece.0 <= now).map(|piece| piece.1.len()).sum();
        if arrived == 0 {
            let ended = self.broken || (self.pieces.is_empty() && self.end.is_some_and(|end| end <= now));
            return if ended { Read::End } else { Read::Nothing };
        }
        let max = arrived.min(self.plan.read_max).min(len_max);
        let mut left = if !self.plan.splits_reads || random.one_in(2) { max } else { random.between(1, max) };
        self.in_transit -= left;
        while left > 0 {
            let piece = &mut self.pieces[0].1;
            let len = left.min(piece.len());
            target.extend_from_slice(&piece[..len]);
            piece.advance(len);
            left -= len;
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        Read::Some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_delayed_in_order_and_split() {
        let mut random = Random::new(1);
        let at = Duration::from_millis;
        let plan =
            LinkPlan { delay_min: at(5), jitter_max: at(4), capacity: 100, read_max: 7, splits_reads: true };
        let mut pipe = Pipe::new(plan);
        for start in [0u8, 50] {
            pipe.write((start..start + 50).collect(), at(u64::from(start)), &mut random);
        }
        assert_eq!(pipe.free_space(), 0);
        pipe.close(at(50));
        let (mut received, mut reads) = (Vec::new(), 0);
        assert_eq!(pipe.read(&mut received, 1000, at(4), &mut random), Read::Nothing);
        while pipe.read(&mut received, 1000, at(100), &mut random) == Read::Some {
            reads += 1;
        }
        assert_eq!(received, (0..100).collect::<Vec<u8>>());
        assert!(reads >= 15, "{reads} reads of at most 7 bytes");
        assert_eq!(pipe.read(&mut received, 1000, at(100), &mut random), Read::End);
    }

    #[test]
    fn cut_loses_bytes_in_transit() {
        let mut random = Random::new(1);
        let mut pipe = Pipe::new(LinkPlan::random(&mut random));
        pipe.write(Bytes::from_static(b"lost"), Duration::ZERO, &mut random);
        pipe.cut();
        assert_eq!(pipe.read(&mut Vec::new(), 1000, Duration::MAX, &mut random), Read::End);
        assert_eq!(pipe.free_space(), 0);
    }
}
