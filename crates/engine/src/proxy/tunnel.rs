//! Opening a tunnel through a proxy: HTTP CONNECT (RFC 9110 §9.3.6).

use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
#[cfg(feature = "tls")]
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::url::{Credentials, Protocol, Proxy};
use crate::grpc::user_agent::USER_AGENT;
#[cfg(feature = "tls")]
use crate::tls::{BufferMemory, ClientTls, HandshakeError};

/// Reason why a proxy opened no tunnel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TunnelError {
    /// The proxy answered with another status than 2xx.
    #[error("it refused with {status}{reason}; {}", hint(*.status, *.has_credentials))]
    Refused {
        status: u16,
        /// Printable, with a space before it, or empty.
        reason: String,
        has_credentials: bool,
    },
    /// The response is no HTTP/1 response.
    #[error("its response is not HTTP/1; check the proxy's address and port")]
    NotHttp,
    /// The response headers are larger than [`HEAD_LEN_MAX`].
    #[error("its response headers have more than {HEAD_LEN_MAX} bytes")]
    TooLong,
    /// The server's name cannot be sent.
    #[error("the server's name has characters that are not printable ASCII")]
    Server,
    /// The connection ended before the response.
    #[error("it closed the connection without a response; check the proxy's address and port")]
    Closed,
    /// A SOCKS5 proxy refused or broke the protocol.
    #[cfg(feature = "socks")]
    #[error("{0}")]
    Socks(String),
    /// TLS to the proxy itself failed.
    #[cfg(feature = "tls")]
    #[error("TLS to the proxy itself: {0}")]
    Tls(#[from] HandshakeError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Maximum length of response headers, in bytes. Proxies send less than 1 KiB.
const HEAD_LEN_MAX: usize = 16 * 1024;
/// Bytes of response headers that are looked at together.
const PEEKED_LEN_MAX: usize = 1024;
/// Maximum length of a reason phrase that is shown.
const REASON_LEN_MAX: usize = 80;

/// Asks the proxy at the other end of `stream` for a tunnel to `server`, which is `host:port`. Later bytes of the
/// stream are the server's.
pub(crate) async fn open_tunnel(
    stream: TcpStream,
    proxy: &Proxy,
    server: &str,
) -> Result<TcpStream, TunnelError> {
    check_name(server)?;
    match proxy.protocol {
        Protocol::HttpConnect => connect(stream, proxy.credentials.as_ref(), server).await,
        #[cfg(feature = "socks")]
        Protocol::Socks5 => {
            let connected = super::socks::connect(stream, proxy.credentials.as_ref(), server).await;
            connected.map_err(|error| match error {
                tokio_socks::Error::Io(error) => TunnelError::Io(error),
                error => TunnelError::Socks(format!("it refused or broke SOCKS5: {error}")),
            })
        }
    }
}

/// Like [`open_tunnel`], inside TLS to the proxy.
#[cfg(feature = "tls")]
pub(crate) async fn open_secure_tunnel<IO>(
    stream: IO,
    proxy: &Proxy,
    tls: &ClientTls,
    server: &str,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<IO>, TunnelError>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send,
{
    check_name(server)?;
    let stream = tls.connect_http1(stream, BufferMemory::default()).await?;
    // It keeps the server's first bytes, which may come with the response.
    let stream = BufReader::with_capacity(PEEKED_LEN_MAX, stream);
    connect(stream, proxy.credentials.as_ref(), server).await
}

fn check_name(server: &str) -> Result<(), TunnelError> {
    if server.bytes().all(|byte| byte.is_ascii_graphic()) { Ok(()) } else { Err(TunnelError::Server) }
}

/// A connection to a proxy.
trait ProxyStream: AsyncRead + AsyncWrite + Unpin {
    /// Waits for bytes and copies them. They remain to be read.
    async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize>;
}

impl ProxyStream for TcpStream {
    async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        TcpStream::peek(self, buf).await
    }
}

#[cfg(feature = "tls")]
impl<IO: AsyncRead + AsyncWrite + Unpin> ProxyStream for BufReader<IO> {
    async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let filled = self.fill_buf().await?;
        let len = filled.len().min(buf.len());
        buf[..len].copy_from_slice(&filled[..len]);
        Ok(len)
    }
}

async fn connect<S: ProxyStream>(
    mut stream: S,
    credentials: Option<&Credentials>,
    server: &str,
) -> Result<S, TunnelError> {
    stream.write_all(request(server, credentials).as_bytes()).await?;
    stream.flush().await?;
    loop {
        let (status, reason) = status_line(&receive_head(&mut stream).await?).ok_or(TunnelError::NotHttp)?;
        match status {
            // Interim responses (RFC 9110 §15.2).
            100..=199 => {}
            200..=299 => return Ok(stream),
            _ => return Err(TunnelError::Refused { status, reason, has_credentials: credentials.is_some() }),
        }
    }
}

fn request(server: &str, credentials: Option<&Credentials>) -> String {
    let authorization = credentials.map(|Credentials { user, password }| {
        format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(format!("{user}:{password}")))
    });
    let authorization = authorization.unwrap_or_default();
    format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: {USER_AGENT}\r\n{authorization}\r\n")
}

/// Receives response headers up to the empty line, and not a byte more: the server may speak first.
async fn receive_head(stream: &mut impl ProxyStream) -> Result<Vec<u8>, TunnelError> {
    let mut head = Vec::new();
    let mut peeked = [0; PEEKED_LEN_MAX];
    loop {
        let len = stream.peek(&mut peeked).await?;
        if len == 0 {
            return Err(TunnelError::Closed);
        }
        let start = head.len();
        head.extend_from_slice(&peeked[..len]);
        let end = end_of_head(&head, start);
        head.truncate(end.unwrap_or(head.len()));
        stream.read_exact(&mut peeked[..head.len() - start]).await?;
        let magic = &b"HTTP/1."[..];
        if !head.starts_with(&magic[..magic.len().min(head.len())]) {
            return Err(TunnelError::NotHttp);
        }
        if end.is_some() {
            return Ok(head);
        }
        if head.len() >= HEAD_LEN_MAX {
            return Err(TunnelError::TooLong);
        }
    }
}

/// Returns the position after the empty line. The bytes before `from` were searched before.
fn end_of_head(head: &[u8], from: usize) -> Option<usize> {
    // A line may end with LF alone (RFC 9112 §2.2).
    (from..head.len())
        .filter(|&at| head[at] == b'\n')
        .find(|&at| head[..at].ends_with(b"\n") || head[..at].ends_with(b"\n\r"))
        .map(|at| at + 1)
}

/// Returns status and reason phrase, which is the proxy's text: what is not printable is replaced.
fn status_line(head: &[u8]) -> Option<(u16, String)> {
    let line = head.split(|&byte| byte == b'\n').next()?.strip_prefix(b"HTTP/1.")?.trim_ascii();
    let (status, reason) = line.split_at_checked(5)?;
    let [minor, b' ', digits @ ..] = status else { return None };
    let status: u16 = str::from_utf8(digits).ok()?.parse().ok()?;
    let is_valid = minor.is_ascii_digit() && (100..=999).contains(&status);
    let printable = |&byte: &u8| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '?' };
    let is_separated = matches!(reason.first(), None | Some(b' '));
    (is_valid && is_separated).then(|| (status, reason.iter().take(REASON_LEN_MAX).map(printable).collect()))
}

fn hint(status: u16, has_credentials: bool) -> &'static str {
    match status {
        407 if has_credentials => "check user and password in the proxy's URL",
        407 => "set user and password in the proxy's URL: http://USER:PASSWORD@HOST:PORT",
        502..=504 => "check the server's name, and that the proxy can reach it",
        _ => "check that the proxy permits tunnels (CONNECT) to this server and port",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let check = |credentials: Option<(&str, &str)>, fields: &str| {
            let credentials = credentials
                .map(|(user, password)| Credentials { user: user.to_owned(), password: password.to_owned() });
            let start = "CONNECT [::1]:5 HTTP/1.1\r\nHost: [::1]:5\r\n";
            let expected = format!("{start}User-Agent: {USER_AGENT}\r\n{fields}\r\n");
            assert_eq!(request("[::1]:5", credentials.as_ref()), expected);
        };
        check(None, "");
        check(
            Some(("Aladdin", "open sesame")),
            "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n",
        );
        check(Some(("me", "")), "Proxy-Authorization: Basic bWU6\r\n");
    }

    #[test]
    fn status_lines() {
        let check = |head: &[u8], expected: Option<(u16, &str)>| {
            let found = status_line(head);
            let found = found.as_ref().map(|(status, reason)| (*status, reason.as_str()));
            assert_eq!(found, expected, "{}", head.escape_ascii());
        };
        check(b"HTTP/1.1 200 Connection established\r\n\r\n", Some((200, " Connection established")));
        check(b"HTTP/1.0 200\r\n\r\n", Some((200, "")));
        check(b"HTTP/1.1 407 \r\n", Some((407, "")));
        check(b"HTTP/1.1 502 \x1b[31mred\x07\xff\n", Some((502, " ?[31mred??")));
        check(b"HTTP/1.1 2000 OK\r\n", None);
        check(b"HTTP/1.1 20 OK\r\n", None);
        check(b"HTTP/1.1  200 OK\r\n", None);
        check(b"HTTP/1.1 099 OK\r\n", None);
        check(b"HTTP/1.x 200 OK\r\n", None);
        check(b"HTTP/2 200\r\n", None);
        check(b"SSH-2.0-OpenSSH\r\n", None);
        let long = format!("HTTP/1.1 500 {}\r\n", "x".repeat(500));
        assert_eq!(status_line(long.as_bytes()).unwrap().1.len(), REASON_LEN_MAX);
    }

    #[test]
    fn head_ends_at_the_empty_line_wherever_it_is_cut() {
        for (head, len) in [("HTTP/1.1 200 OK\r\nA: b\r\n\r\nrest", 25), ("HTTP/1.1 200 OK\n\nrest", 17)] {
            for cut in 0..=len {
                let first = end_of_head(&head.as_bytes()[..cut], 0);
                assert_eq!(first, (cut == len).then_some(len), "{head}, {cut}");
                if first.is_none() {
                    assert_eq!(end_of_head(head.as_bytes(), cut), Some(len), "{head}, {cut}");
                }
            }
        }
    }
}
