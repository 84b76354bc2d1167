//! Detects a client's protocol by its first bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use thalweg_http2::PREFACE;
use tokio::io::{AsyncRead, ReadBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Reads until the protocol is known; nothing is sent before. Returns the bytes read, too.
///
/// # Errors
/// Returns errors of the stream, or UnexpectedEof at its end.
pub(super) async fn detect<IO: AsyncRead + Unpin>(io: &mut IO) -> io::Result<(Vec<u8>, Protocol)> {
    let mut first = [0; PREFACE.len()];
    let mut len = 0;
    loop {
        let mut space = ReadBuf::new(&mut first[len..]);
        poll_fn(|cx| Pin::new(&mut *io).poll_read(cx, &mut space)).await?;
        match space.filled().len() {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => len += read,
        }
        if first[..len] != PREFACE[..len] {
            return Ok((first[..len].to_vec(), Protocol::Http1));
        }
        if len == PREFACE.len() {
            return Ok((first.to_vec(), Protocol::Http2));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Detects the protocol of a client that sends these pieces.
    async fn detect_pieces(pieces: &[&[u8]]) -> io::Result<(Vec<u8>, Protocol)> {
        let (mut client, mut server) = tokio::io::duplex(1024);
        let detecting = tokio::spawn(async move { detect(&mut server).await });
        for piece in pieces {
            // The server drops the stream once it knows the protocol.
            let _ = client.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        drop(client);
        detecting.await.unwrap()
    }

    #[tokio::test]
    async fn protocol_is_detected_from_first_bytes() {
        let (first, protocol) = detect_pieces(&[PREFACE, b"more"]).await.unwrap();
        assert_eq!((&first[..], protocol), (&PREFACE[..], Protocol::Http2));
        let (first, protocol) =
            detect_pieces(&[b"PRI", b" * HTTP/2.0\r\n\r\nS", b"M\r\n\r\n"]).await.unwrap();
        assert_eq!((&first[..], protocol), (&PREFACE[..], Protocol::Http2));
        let (first, protocol) = detect_pieces(&[b"G", b"ET / HTTP/1.1\r\n\r\n"]).await.unwrap();
        assert_eq!((&first[..], protocol), (&b"G"[..], Protocol::Http1));
        // PROPFIND, PUT and POST share their first bytes with the preface.
        let (first, protocol) = detect_pieces(&[b"P", b"R", b"OPFIND / HTTP/1.1\r\n\r\n"]).await.unwrap();
        assert_eq!(protocol, Protocol::Http1);
        assert!(first.starts_with(b"PRO"), "{first:?}");
        assert!(detect_pieces(&[b"PRI * HT"]).await.is_err());
    }
}
