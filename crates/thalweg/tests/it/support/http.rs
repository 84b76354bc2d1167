//! Raw HTTP/1.1 and HTTP/2 requests, and their responses.

use std::pin::Pin;

use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body::Body as _;
use thalweg::CallOptions;
use thalweg::bytes::Bytes;
use thalweg::web::body::Body;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::soon;

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Headers and trailers, one per line.
    pub(crate) fields: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Parses an HTTP/1.1 response, decoding a chunked body.
    pub(crate) fn read(answer: &[u8]) -> Answer {
        let (head, rest) = split(answer, b"\r\n\r\n").expect("a head");
        let head = str::from_utf8(head).expect("text");
        let (first, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = first["HTTP/1.1 ".len()..][..3].parse().expect("a status");
        let fields = format!("{}\n", fields.replace("\r\n", "\n"));
        let mut answer = Answer { status, fields, body: Vec::new() };
        if !answer.fields.contains("transfer-encoding: chunked") {
            answer.body = rest.to_vec();
            return answer;
        }
        let mut rest = rest;
        while let Some((len, behind)) = split(rest, b"\r\n") {
            let len = usize::from_str_radix(str::from_utf8(len).expect("text"), 16).expect("a size");
            answer.body.extend_from_slice(&behind[..len]);
            rest = behind[len..].strip_prefix(b"\r\n").expect("the end of a chunk");
        }
        answer
    }

    pub(crate) fn status_and_body(self) -> (u16, Vec<u8>) {
        (self.status, self.body)
    }
}

/// Splits before and after a mark.
fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((&bytes[..at], &bytes[at + mark.len()..]))
}

/// Sends a request and reads until the connection closes.
pub(crate) async fn http1_by<IO>(mut io: IO, head: &str, body: &[u8]) -> Vec<u8>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let head = format!("{head}\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    io.write_all(&[head.as_bytes(), body].concat()).await.expect("the stream is open");
    let mut answer = Vec::new();
    soon(io.read_to_end(&mut answer)).await.expect("an answer");
    answer
}

/// Returns status and body of a response over HTTP/2.
pub(crate) async fn http2_by(
    channel: &thalweg_engine::Channel,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> (u16, Vec<u8>) {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(Body::full(Bytes::copy_from_slice(body))).expect("a request");
    ask(channel, request).await.status_and_body()
}

/// Returns the response over HTTP/2.
pub(crate) async fn ask(channel: &thalweg_engine::Channel, request: Request<Body>) -> Answer {
    let answer = soon(channel.raw(request, &CallOptions::default())).await.expect("an answer");
    let status = answer.status().as_u16();
    let mut fields = lines(answer.headers());
    let mut body = answer.into_body();
    let mut all = Vec::new();
    while let Some(frame) = soon(std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).await {
        match frame.expect("no error").into_data() {
            Ok(piece) => all.extend_from_slice(&piece),
            Err(frame) => fields += &lines(&frame.into_trailers().unwrap_or_default()),
        }
    }
    Answer { status, fields, body: all }
}

fn lines(fields: &HeaderMap) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| [name.as_str(), ": ", text(value), "\n"].concat();
    fields.iter().map(line).collect()
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().expect("text")
}
