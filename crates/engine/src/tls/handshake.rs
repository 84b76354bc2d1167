//! The handshake: from a byte stream to a TLS stream, or to an error text.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use rustls::{AlertDescription, Error};
use tokio::io::{AsyncRead, AsyncWrite};

use super::buffers::BufferMemory;
use super::explain::explain;
use super::session::Session;
use super::stream::{Broken, TlsStream};

/// ALPN name of HTTP/2 (RFC 9113 §3.1).
pub(super) const ALPN_H2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1 (RFC 7301 §6).
pub(super) const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Error of a handshake.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The underlying stream failed.
    #[error("the TLS handshake failed: {0}")]
    Io(#[from] io::Error),
    /// The peer closed the connection.
    #[error("the connection was closed during the TLS handshake{}", hint_at_closed(*.is_client))]
    Closed { is_client: bool },
    /// rustls or the peer rejected the handshake.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// The peer speaks another protocol.
    #[error("{0}")]
    NotTls(&'static str),
    /// TLS succeeded, but without HTTP/2.
    #[error("{}", no_alpn(*.is_client))]
    NoAlpn { is_client: bool },
    /// The handshake took too long.
    #[error("the TLS handshake took longer than {0:?}")]
    TimedOut(Duration),
}

/// Runs the handshake over `io`. `memory` tracks the memory of the stream's buffers.
pub(super) async fn shake<IO, S>(
    io: IO,
    session: S,
    memory: BufferMemory,
    needs_alpn: bool,
    is_client: bool,
) -> Result<TlsStream<IO, S>, HandshakeError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Session,
{
    let mut stream = TlsStream::new(io, session, memory);
    let outcome = poll_fn(|cx| {
        let outcome = stream.poll_handshake(cx);
        if let Poll::Ready(Err(Broken::Tls(_))) = outcome {
            stream.send_alert(cx);
        }
        outcome
    });
    match outcome.await {
        Ok(()) if needs_alpn && stream.session().alpn_protocol() != Some(ALPN_H2) => {
            // Sends close_notify, so that the peer sees that the connection was not cut.
            let _ = poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await;
            Err(HandshakeError::NoAlpn { is_client })
        }
        Ok(()) => Ok(stream),
        Err(Broken::Io(error)) => Err(error.into()),
        Err(Broken::Closed) => Err(HandshakeError::Closed { is_client }),
        Err(Broken::Tls(Error::NoApplicationProtocol)) => Err(HandshakeError::NoAlpn { is_client }),
        Err(Broken::Tls(Error::AlertReceived(AlertDescription::NoApplicationProtocol))) => {
            Err(HandshakeError::NoAlpn { is_client })
        }
        Err(Broken::Tls(error)) => Err(match not_tls(&error, stream.unread(), is_client) {
            Some(what) => HandshakeError::NotTls(what),
            None => HandshakeError::Tls(explain(&error)),
        }),
    }
}

/// Identifies the protocol of a peer whose first bytes are no TLS record.
fn not_tls(error: &Error, first: &[u8], is_client: bool) -> Option<&'static str> {
    if !matches!(error, Error::InvalidMessage(_)) {
        return None;
    }
    let is_http1 = HTTP1.iter().any(|word| first.starts_with(word));
    // A server's preface is a SETTINGS frame on stream 0 (RFC 9113 §3.4): three bytes of length, type 4, flags.
    let is_settings = matches!(first, [0, _, _, 4, _, 0, 0, 0, 0, ..]);
    match (
        is_client,
        is_http1 || first.starts_with(b"HTTP/1."),
        is_settings || first.starts_with(b"PRI * HTTP/2"),
    ) {
        (true, true, _) => Some("the server speaks HTTP/1.x without TLS (check that this is the TLS port)"),
        (true, _, true) => Some(
            "the server speaks HTTP/2 without TLS, and this channel uses TLS (check that this is the TLS port)",
        ),
        (true, ..) => Some("the server does not speak TLS (check that this is the TLS port)"),
        (false, true, _) => Some("the client speaks HTTP/1.x without TLS"),
        (false, _, true) => Some("the client speaks HTTP/2 without TLS"),
        (false, ..) => Some("the client does not speak TLS"),
    }
}

const HTTP1: &[&[u8]] =
    &[b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"PATCH "];

fn hint_at_closed(is_client: bool) -> &'static str {
    if is_client { " (check that the server uses TLS at this port)" } else { "" }
}

fn no_alpn(is_client: bool) -> &'static str {
    if is_client {
        "the server did not negotiate HTTP/2 by ALPN (protocol `h2`); check that it is a gRPC server, or set \
         `assume_http2` if it does not use ALPN"
    } else {
        "the client did not offer HTTP/2 by ALPN (protocol `h2`)"
    }
}

#[cfg(test)]
mod tests {
    use rustls::InvalidMessage;

    use super::*;

    #[test]
    fn other_protocols_are_named() {
        let check = |first: &[u8], of_client: &str, of_server: &str| {
            let error = Error::InvalidMessage(InvalidMessage::InvalidContentType);
            for (is_client, part) in [(true, of_client), (false, of_server)] {
                let message = not_tls(&error, first, is_client).expect("it is not TLS");
                assert!(message.contains(part), "{first:?}: {message}");
            }
        };
        check(b"HTTP/1.1 400 Bad Request\r\n", "server speaks HTTP/1", "client speaks HTTP/1");
        check(b"GET / HTTP/1.1\r\n", "server speaks HTTP/1", "client speaks HTTP/1");
        check(b"PRI * HTTP/2.0\r\n\r\nSM", "server speaks HTTP/2", "client speaks HTTP/2");
        check(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0], "server speaks HTTP/2", "client speaks HTTP/2");
        check(b"SSH-2.0-OpenSSH", "does not speak TLS", "does not speak TLS");
        assert_eq!(not_tls(&Error::DecryptError, b"GET / HTTP/1.1", true), None);
    }
}
