//! The byte stream that hyper uses: [`StrictIo`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::framing::{FramingScanner, MessagePart, Rejection};
use super::progress::{CloseReason, Progress};
use super::received_body::bad_body;
use crate::timed::too_slow;

/// A byte stream that passes only unambiguous messages, and records their progress.
#[derive(Debug)]
pub(super) struct StrictIo<IO> {
    io: IO,
    framing: FramingScanner,
    progress: Progress,
    /// Rest of the substitute for a refused head.
    invalid_head: &'static [u8],
    has_ended: bool,
    is_shut: bool,
}

/// Invalid at any position of a head, so hyper responds with 400. Includes the end of a head, since hyper parses
/// partial heads only once their end has arrived.
const INVALID_HEAD: &[u8] = b"\0\r\n\r\n";

impl<IO> StrictIo<IO> {
    pub(super) fn new(io: IO, head_len_max: usize, progress: Progress) -> Self {
        let framing = FramingScanner::new(head_len_max);
        Self { io, framing, progress, invalid_head: INVALID_HEAD, has_ended: false, is_shut: false }
    }

    /// Returns the byte stream, and whether the client may still send data that is not read.
    pub(super) fn into_parts(self) -> IoParts<IO> {
        let is_in_message = self.framing.position().part != MessagePart::BetweenMessages
            || self.progress.close_reason().is_some();
        IoParts { is_shut: self.is_shut, may_have_more: is_in_message && !self.has_ended, io: self.io }
    }

    /// Checks the bytes received after the first `before` bytes.
    fn check(&mut self, into: &mut ReadBuf<'_>, before: usize) {
        let bytes = &mut into.filled_mut()[before..];
        if bytes.is_empty() {
            self.has_ended = true;
            if self.framing.position().part != MessagePart::BetweenMessages {
                self.progress.close(CloseReason::ClientClosed);
            }
            return;
        }
        let len = bytes.len();
        match self.framing.scan(bytes) {
            Ok(()) => self.progress.received(len, self.framing.position(), Instant::now()),
            Err(Rejection { why, in_body, valid_len }) => {
                tracing::debug!(%why, "rejected an HTTP/1.1 request");
                into.set_filled(before + valid_len);
                self.progress.close(if in_body { CloseReason::BadBody } else { CloseReason::BadHead });
            }
        }
    }

    /// Returns the result of a read after a refusal: an error, or bytes of the invalid head.
    fn read_after_refusal(&mut self, into: &mut ReadBuf<'_>) -> Option<Poll<io::Result<()>>> {
        let status = match self.progress.close_reason()? {
            CloseReason::ClientClosed => return None,
            CloseReason::TooSlow => too_slow(),
            CloseReason::BadBody => bad_body(),
            CloseReason::BadHead if self.invalid_head.is_empty() => return Some(Poll::Pending),
            CloseReason::BadHead => {
                let (now, later) = self.invalid_head.split_at(into.remaining().min(self.invalid_head.len()));
                into.put_slice(now);
                self.invalid_head = later;
                return Some(Poll::Ready(Ok(())));
            }
        };
        Some(Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, status))))
    }

    fn note_write(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Ready(Ok(written)) => self.progress.written(*written),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.progress.write_pending(),
        }
        polled
    }

    fn note_flush(&self, polled: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        match &polled {
            Poll::Ready(_) => self.progress.flushed(),
            Poll::Pending => self.progress.write_pending(),
        }
        polled
    }
}

/// A byte stream after hyper has finished with it.
pub(super) struct IoParts<IO> {
    pub(super) io: IO,
    /// Whether the write side is shut down.
    pub(super) is_shut: bool,
    pub(super) may_have_more: bool,
}

impl<IO: AsyncRead + Unpin> AsyncRead for StrictIo<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(refused) = self.read_after_refusal(into) {
                return refused;
            }
            let before = into.filled().len();
            let read = Pin::new(&mut self.io).poll_read(cx, into);
            if read.is_pending() {
                self.progress.read_pending(Instant::now());
            }
            ready!(read)?;
            self.check(into, before);
            // An empty read would mean the end of the stream.
            if into.filled().len() > before || self.has_ended {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for StrictIo<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, pieces);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.note_flush(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut = true;
        let shut = Pin::new(&mut self.io).poll_shutdown(cx);
        self.note_flush(shut)
    }
}
