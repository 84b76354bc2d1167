//! Transports below the fuzzer's TLS streams.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use crate::random::Random;

/// Written bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn note(&self, bytes: &[u8]) {
        self.0.lock().expect("the lock is not poisoned").extend_from_slice(bytes);
    }

    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().expect("the lock is not poisoned"))
    }
}

/// A transport that delivers bytes in pieces, then the end. It accepts writes in pieces, too, and is sometimes
/// `Pending` for no reason.
#[derive(Debug)]
pub(super) struct Wire {
    sent: Vec<u8>,
    at: usize,
    random: Random,
    buffered_bytes: Arc<AtomicUsize>,
    buffered_bytes_max: usize,
    log: Log,
    reads_at_end: usize,
}

/// Maximum reads at the end of a stream; more means an endless loop.
const READS_AT_END_MAX: usize = 10;

impl Wire {
    pub(super) fn new(
        sent: &[u8],
        random: Random,
        buffered_bytes: Arc<AtomicUsize>,
        buffered_bytes_max: usize,
        log: Log,
    ) -> Self {
        Self { sent: sent.to_vec(), at: 0, random, buffered_bytes, buffered_bytes_max, log, reads_at_end: 0 }
    }

    /// Whether to return `Pending` and wake the task. Also checks the buffered memory between two polls.
    fn is_spuriously_pending(&mut self, cx: &mut Context<'_>) -> bool {
        let buffered_bytes = self.buffered_bytes.load(Ordering::Relaxed);
        assert!(buffered_bytes <= self.buffered_bytes_max, "{buffered_bytes} bytes are held");
        let is_spuriously_pending = self.random.one_in(4);
        if is_spuriously_pending {
            cx.waker().wake_by_ref();
        }
        is_spuriously_pending
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_spuriously_pending(cx) {
            return Poll::Pending;
        }
        let left = self.sent.len() - self.at;
        if left == 0 {
            self.reads_at_end += 1;
            assert!(self.reads_at_end <= READS_AT_END_MAX, "it keeps reading after the end");
            return Poll::Ready(Ok(()));
        }
        assert!(buf.remaining() > 0, "it reads into no space");
        let piece = (1 + self.random.size(left - 1)).min(buf.remaining());
        buf.put_slice(&self.sent[self.at..self.at + piece]);
        self.at += piece;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_spuriously_pending(cx) {
            return Poll::Pending;
        }
        let accepted = (1 + self.random.size(bytes.len())).min(bytes.len());
        self.log.note(&bytes[..accepted]);
        Poll::Ready(Ok(accepted))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// One end of a pipe that logs its writes if there is a log.
#[derive(Debug)]
pub(super) struct Tee {
    io: DuplexStream,
    log: Option<Log>,
}

impl Tee {
    pub(super) fn new(io: DuplexStream, log: Option<Log>) -> Self {
        Self { io, log }
    }
}

impl AsyncRead for Tee {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Tee {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let (Poll::Ready(Ok(written)), Some(log)) = (&outcome, &self.log) {
            log.note(&bytes[..*written]);
        }
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
