//! A connection in memory.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Capacity of one direction; about that of a socket's two buffers.
const CAPACITY_BYTES: usize = 256 << 10;

/// One end of a connection. Its memory is allocated at the start, so all later allocations are the library's.
#[derive(Clone)]
pub(crate) struct Pipe {
    incoming: Arc<Mutex<Direction>>,
    outgoing: Arc<Mutex<Direction>>,
    moved: Arc<AtomicU64>,
}

struct Direction {
    bytes: VecDeque<u8>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    /// Creates the ends of several connections, which count their bytes together.
    pub(crate) fn pairs(count: usize) -> (Vec<Self>, Vec<Self>) {
        let moved = Arc::default();
        (0..count).map(|_| Self::pair(&moved)).unzip()
    }

    fn pair(moved: &Arc<AtomicU64>) -> (Self, Self) {
        let direction = || {
            let bytes = VecDeque::with_capacity(CAPACITY_BYTES);
            Arc::new(Mutex::new(Direction { bytes, reader: None, writer: None }))
        };
        let (forward, backward) = (direction(), direction());
        let first = Self {
            incoming: Arc::clone(&backward),
            outgoing: Arc::clone(&forward),
            moved: Arc::clone(moved),
        };
        (first, Self { incoming: forward, outgoing: backward, moved: Arc::clone(moved) })
    }

    /// Total bytes written to and read from the connections created with this one, in both directions.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    fn count(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn lock(direction: &Mutex<Direction>) -> MutexGuard<'_, Direction> {
    direction.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut incoming = lock(&self.incoming);
        if incoming.bytes.is_empty() {
            incoming.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        // Twice at most: bytes past the end of the ring are read in a second piece.
        while target.remaining() > 0 && !incoming.bytes.is_empty() {
            let read = incoming.bytes.read(target.initialize_unfilled())?;
            target.advance(read);
            self.count(read);
        }
        if let Some(writer) = incoming.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, source: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(source)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut outgoing = lock(&self.outgoing);
        let room = CAPACITY_BYTES - outgoing.bytes.len();
        if room == 0 {
            outgoing.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut written = 0;
        for slice in slices {
            let len = slice.len().min(room - written);
            outgoing.bytes.write_all(&slice[..len])?;
            written += len;
        }
        self.count(written);
        if let Some(reader) = outgoing.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
