//! A byte stream preceded by bytes already read from it: [`PrefixedStream`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream preceded by bytes already read from it.
#[derive(Debug)]
pub(super) struct PrefixedStream<IO> {
    prefix: Vec<u8>,
    /// Number of bytes of `prefix` that were returned.
    position: usize,
    io: IO,
}

impl<IO> PrefixedStream<IO> {
    /// Puts `prefix` in front of the bytes of `io`.
    pub(super) fn new(prefix: Vec<u8>, io: IO) -> Self {
        Self { prefix, position: 0, io }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for PrefixedStream<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let prefix = &self.prefix[self.position..];
        if prefix.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, into);
        }
        let len = into.remaining().min(prefix.len());
        into.put_slice(&prefix[..len]);
        self.position += len;
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for PrefixedStream<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn first_bytes_are_read_again() {
        let (mut ours, theirs) = duplex(100);
        let mut prefixed_stream = PrefixedStream::new(b"abc".to_vec(), theirs);
        ours.write_all(b"def").await.unwrap();
        let mut read = [0; 6];
        prefixed_stream.read_exact(&mut read[..2]).await.unwrap();
        prefixed_stream.read_exact(&mut read[2..]).await.unwrap();
        assert_eq!(&read, b"abcdef");
        prefixed_stream.write_all(b"ghi").await.unwrap();
        drop(prefixed_stream);
        let mut written = String::new();
        ours.read_to_string(&mut written).await.unwrap();
        assert_eq!(written, "ghi");
    }
}
