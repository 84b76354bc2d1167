//! A link for tokio: an in-memory byte stream with delays, short reads and writes, and spurious `Pending`s.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::link::{LinkPlan, Pipe, Read};
use crate::random::Random;

/// Maximum bytes of one read. A driver's buffer is at least this large. Its actual size depends on earlier work of its
/// thread and must not matter.
const READ_MAX: usize = 64 << 10;

/// One end of a link.
#[derive(Debug)]
pub(super) struct Duplex {
    wire: Arc<Mutex<Wire>>,
    /// Its direction of writing: 0 or 1.
    end: usize,
    /// Wakes the reader when more arrives or the link breaks.
    timer: Option<Pin<Box<Sleep>>>,
    /// Counts the existing ends.
    _alive: Arc<()>,
}

/// The connection between the ends.
#[derive(Debug)]
struct Wire {
    random: Random,
    start: Instant,
    /// By writer.
    pipes: [Pipe; 2],
    readers: [Option<Waker>; 2],
    writers: [Option<Waker>; 2],
    cut_at: Option<Instant>,
    /// One poll in this many returns `Pending` although there is work.
    spurious_pending_one_in: usize,
}

impl Duplex {
    /// Both ends of a link that breaks at `cut_at`.
    pub(super) fn pair(
        mut random: Random,
        links: [LinkPlan; 2],
        cut_at: Option<Instant>,
        ends: &Arc<()>,
    ) -> [Duplex; 2] {
        let spurious_pending_one_in = random.pick(&[3, 50, 1_000_000]);
        let wire = Wire {
            random,
            start: Instant::now(),
            pipes: links.map(Pipe::new),
            readers: [None, None],
            writers: [None, None],
            cut_at,
            spurious_pending_one_in,
        };
        let wire = Arc::new(Mutex::new(wire));
        [0, 1].map(|end| Duplex { wire: Arc::clone(&wire), end, timer: None, _alive: Arc::clone(ends) })
    }

    fn lock(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether the link is broken by now.
    fn is_cut(&mut self) -> bool {
        if self.cut_at.is_some_and(|at| at <= Instant::now()) {
            self.cut_at = None;
            self.pipes.iter_mut().for_each(Pipe::cut);
            self.wake_all();
        }
        self.pipes[0].is_broken()
    }

    fn wake_all(&mut self) {
        self.readers.iter_mut().chain(&mut self.writers).filter_map(Option::take).for_each(Waker::wake);
    }

    /// Whether this poll must be repeated.
    fn is_spuriously_pending(&mut self, cx: &Context<'_>) -> bool {
        let is_pending = self.random.one_in(self.spurious_pending_one_in);
        if is_pending {
            cx.waker().wake_by_ref();
        }
        is_pending
    }

    /// Time of the next arrival from the other end; a cut counts as an arrival.
    fn next_arrival(&self, end: usize) -> Option<Instant> {
        let arrival = self.pipes[1 - end].next_arrival().map(|at| self.start + at);
        [arrival, self.cut_at].into_iter().flatten().min()
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the simulated link broke")
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let end = self.end;
            let mut wire = self.lock();
            if wire.is_cut() {
                return Poll::Ready(Err(broken()));
            }
            if wire.is_spuriously_pending(cx) {
                return Poll::Pending;
            }
            let now = wire.now();
            let Wire { pipes, random, .. } = &mut *wire;
            let mut arrived = Vec::new();
            let len_max = target.remaining().min(READ_MAX);
            let read = pipes[1 - end].read(&mut arrived, len_max, now, random);
            match read {
                Read::Some => {
                    target.put_slice(&arrived);
                    let writer = wire.writers[1 - end].take();
                    drop(wire);
                    writer.into_iter().for_each(Waker::wake);
                    return Poll::Ready(Ok(()));
                }
                Read::End => return Poll::Ready(Ok(())),
                Read::Nothing => {}
            }
            wire.readers[end] = Some(cx.waker().clone());
            let next = wire.next_arrival(end);
            drop(wire);
            let Some(next) = next else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            timer.as_mut().reset(next);
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let end = self.end;
        let mut wire = self.lock();
        if wire.is_cut() {
            return Poll::Ready(Err(broken()));
        }
        if wire.is_spuriously_pending(cx) {
            return Poll::Pending;
        }
        let room = wire.pipes[end].free_space();
        if room == 0 {
            wire.writers[end] = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let max = if wire.random.one_in(2) { room } else { wire.random.between(1, room) };
        let written: Bytes = slices.iter().flat_map(|slice| slice.iter().copied()).take(max).collect();
        let len = written.len();
        let now = wire.now();
        let Wire { pipes, random, .. } = &mut *wire;
        pipes[end].write(written, now, random);
        let reader = wire.readers[1 - end].take();
        drop(wire);
        reader.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(len))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = self.lock();
        let now = wire.now();
        wire.pipes[self.end].close(now);
        wire.wake_all();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Duplex {
    /// Dropping a socket closes it.
    fn drop(&mut self) {
        let mut wire = self.lock();
        let now = wire.now();
        wire.pipes[self.end].close(now);
        wire.pipes[1 - self.end].close_reader();
        wire.wake_all();
    }
}
