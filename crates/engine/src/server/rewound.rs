//! A byte stream whose first bytes are read again: [`Rewound`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream preceded by bytes already read from it.
#[derive(Debug)]
pub(super) struct Rewound<IO> {
    first: Vec<u8>,
    /// Number of bytes of `first` read again.
    position: usize,
    io: IO,
}

impl<IO> Rewound<IO> {
    /// Puts `first` in front of the bytes of `io`.
    pub(super) fn new(first: Vec<u8>, io: IO) -> Self {
        Self { first, position: 0, io }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Rewound<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let first = &self.first[self.position..];
        if first.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, into);
        }
        let len = into.remaining().min(first.len());
        into.put_slice(&first[..len]);
        self.position += len;
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Rewound<IO> {
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
        let mut rewound = Rewound::new(b"abc".to_vec(), theirs);
        ours.write_all(b"def").await.unwrap();
        let mut read = [0; 6];
        rewound.read_exact(&mut read[..2]).await.unwrap();
        rewound.read_exact(&mut read[2..]).await.unwrap();
        assert_eq!(&read, b"abcdef");
        rewound.write_all(b"ghi").await.unwrap();
        drop(rewound);
        let mut written = String::new();
        ours.read_to_string(&mut written).await.unwrap();
        assert_eq!(written, "ghi");
    }
}
