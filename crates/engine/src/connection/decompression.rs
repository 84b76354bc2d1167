//! How much the readers of a connection decompress before others of their threads have their turn.
//!
//! A message of 4 KiB may become one of 4 MiB, which takes milliseconds. A connection may have hundreds of streams with
//! such messages, each with a reader in a task of its own: were there a bound for each reader, whoever else shares the
//! thread would wait for all of them. So they share one. Nobody holds anything while it waits, since whoever reads may
//! stop to at any time, and read another stream of the same connection meanwhile.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::scheduler::yield_now;

/// Compressed messages of a connection become so many bytes, and others have their turn: some hundred microseconds.
const DECOMPRESSED_AT_ONCE: usize = 256 * 1024;

/// A connection's.
#[derive(Debug, Default)]
pub(crate) struct Decompression(Mutex<Period>);

/// From one time that others had their turn to the next.
#[derive(Debug, Default)]
struct Period {
    number: u64,
    /// Bytes that messages have become in it.
    spent: usize,
}

/// What a reader remembers.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The last period in which it found nothing left, and gave way.
    gave_way_in: Option<u64>,
    /// The last period in which it decompressed a message, if it did not give way since.
    decompressed_in: Option<u64>,
}

impl Decompression {
    /// Ready when `reader` may decompress a message.
    ///
    /// Who gave way and comes back finds that others have had their turn: the first that does begins a new period. One
    /// that decompressed something in the last gives way a second time, so that readers take turns.
    pub(crate) fn poll_may(&self, reader: &mut Reader, cx: &mut Context<'_>) -> Poll<()> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if period.spent < DECOMPRESSED_AT_ONCE {
            return Poll::Ready(());
        }
        if reader.gave_way_in == Some(period.number) {
            *period = Period { number: period.number + 1, spent: 0 };
            return Poll::Ready(());
        }
        if reader.decompressed_in.take() != Some(period.number) {
            reader.gave_way_in = Some(period.number);
        }
        drop(period);
        yield_now(cx)
    }

    /// `reader` has decompressed a message, which became `len` bytes: `None` if it could not be, of which nobody says
    /// after how many.
    pub(crate) fn note(&self, reader: &mut Reader, len: Option<usize>) {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        period.spent += len.unwrap_or(DECOMPRESSED_AT_ONCE);
        reader.decompressed_in = Some(period.number);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Who of `readers` decompresses messages of `len` bytes when all are polled in their order, `passes` times, each
    /// until it gives way; those that are `stopped` in the first pass alone.
    fn decompressed(readers: usize, stopped: usize, passes: usize, len: Option<usize>) -> Vec<Vec<usize>> {
        let (decompression, mut cx) = (Decompression::default(), Context::from_waker(Waker::noop()));
        let mut readers: Vec<Reader> = (0..readers).map(|_| Reader::default()).collect();
        let mut pass = |number| {
            let mut row = Vec::new();
            for (index, reader) in readers.iter_mut().enumerate().skip(if number == 0 { 0 } else { stopped })
            {
                while decompression.poll_may(reader, &mut cx).is_ready() {
                    decompression.note(reader, len);
                    row.push(index);
                }
            }
            row
        };
        (0..passes).map(&mut pass).collect()
    }

    const NONE: [usize; 0] = [];

    #[test]
    fn readers_take_turns() {
        let check = |readers, len, expected: &[&[usize]]| {
            assert_eq!(decompressed(readers, 0, expected.len(), len), expected, "{readers} of {len:?}");
        };
        let much = Some(DECOMPRESSED_AT_ONCE);
        check(3, much, &[&[0], &[1], &[2], &NONE, &[0], &[1], &[2], &NONE]);
        check(2, much, &[&[0], &[1], &NONE, &[0], &[1]]);
        check(1, much, &[&[0], &NONE, &[0], &NONE, &[0]]);
        // One that can't be decompressed.
        check(3, None, &[&[0], &[1], &[2]]);
        check(2, Some(DECOMPRESSED_AT_ONCE / 2), &[&[0, 0], &[1, 1], &NONE, &[0, 0]]);
    }

    #[test]
    fn nobody_waits_for_a_reader_that_stopped() {
        let much = Some(DECOMPRESSED_AT_ONCE);
        assert_eq!(decompressed(4, 2, 5, much), [vec![0], vec![2], vec![3], vec![], vec![2]]);
        assert_eq!(decompressed(2, 1, 4, much), [vec![0], vec![1], vec![], vec![1]]);
    }
}
