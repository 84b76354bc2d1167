//! Limits how much the readers of a connection decompress before other tasks of their threads run.
//!
//! A message of 4 KiB may decompress to 4 MiB, which takes milliseconds. A connection may have hundreds of streams
//! with such messages, each read by a task of its own. With a limit per reader, other tasks on the thread would wait
//! for all of them, so the readers of a connection share one limit. A waiting reader reserves nothing: a task may stop
//! reading at any time, and read another stream of the connection meanwhile.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::scheduler::yield_now;

/// Decompressed bytes after which a connection's readers yield: some hundred microseconds of work.
const DECOMPRESSED_AT_ONCE: usize = 256 * 1024;

/// The decompression limit of a connection.
#[derive(Debug, Default)]
pub(crate) struct Decompression(Mutex<Period>);

/// The time between two yields.
#[derive(Debug, Default)]
struct Period {
    number: u64,
    /// Decompressed bytes in this period.
    spent: usize,
}

/// A reader's part in the limit.
#[derive(Debug, Default)]
pub(crate) struct DecompressionReader {
    /// The last period in which the limit was used up and the reader yielded.
    yielded_in: Option<u64>,
    /// The last period in which the reader decompressed a message, unless it has yielded since.
    decompressed_in: Option<u64>,
}

impl Decompression {
    /// Waits until `reader` may decompress a message.
    ///
    /// When a reader returns from its yield, other tasks have run, so the first reader to return starts a new period.
    /// A reader that decompressed in the last period yields twice, so that readers take turns.
    pub(crate) fn poll_turn(&self, reader: &mut DecompressionReader, cx: &mut Context<'_>) -> Poll<()> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if period.spent < DECOMPRESSED_AT_ONCE {
            return Poll::Ready(());
        }
        if reader.yielded_in == Some(period.number) {
            *period = Period { number: period.number + 1, spent: 0 };
            return Poll::Ready(());
        }
        if reader.decompressed_in.take() != Some(period.number) {
            reader.yielded_in = Some(period.number);
        }
        drop(period);
        yield_now(cx)
    }

    /// Counts a message that `reader` decompressed to `len` bytes. `None` is an invalid message, whose decompressed
    /// length is unknown: it uses up the limit.
    pub(crate) fn note(&self, reader: &mut DecompressionReader, len: Option<usize>) {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        period.spent += len.unwrap_or(DECOMPRESSED_AT_ONCE);
        reader.decompressed_in = Some(period.number);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Polls all `readers` in order, `passes` times, each until it yields, with messages of `len` bytes. Returns the
    /// indices of the readers that decompressed. The `stopped` ones take part in the first pass only.
    fn decompressed(readers: usize, stopped: usize, passes: usize, len: Option<usize>) -> Vec<Vec<usize>> {
        let (decompression, mut cx) = (Decompression::default(), Context::from_waker(Waker::noop()));
        let mut readers: Vec<DecompressionReader> =
            (0..readers).map(|_| DecompressionReader::default()).collect();
        let mut pass = |number| {
            let mut row = Vec::new();
            for (index, reader) in readers.iter_mut().enumerate().skip(if number == 0 { 0 } else { stopped })
            {
                while decompression.poll_turn(reader, &mut cx).is_ready() {
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
        // An invalid message.
        check(3, None, &[&[0], &[1], &[2]]);
        check(2, Some(DECOMPRESSED_AT_ONCE / 2), &[&[0, 0], &[1, 1], &NONE, &[0, 0]]);
    }

    #[test]
    fn stopped_reader_does_not_block_others() {
        let much = Some(DECOMPRESSED_AT_ONCE);
        assert_eq!(decompressed(4, 2, 5, much), [vec![0], vec![2], vec![3], vec![], vec![2]]);
        assert_eq!(decompressed(2, 1, 4, much), [vec![0], vec![1], vec![], vec![1]]);
    }
}
