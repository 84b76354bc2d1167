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
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Headers and trailers, one per line.
    pub(crate) fields: String,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    /// Parses an HTTP/1.1 response, decoding a chunked body.
    pub(crate) fn read(response: &[u8]) -> HttpResponse {
        let (head, rest) = split(response, b"\r\n\r\n").expect("headers");
        let head = str::from_utf8(head).expect("text");
        let (first, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = first["HTTP/1.1 ".len()..][..3].parse().expect("a status");
        let fields = format!("{}\n", fields.replace("\r\n", "\n"));
        let mut response = HttpResponse { status, fields, body: Vec::new() };
        if !response.fields.contains("transfer-encoding: chunked") {
            response.body = rest.to_vec();
            return response;
        }
        let mut rest = rest;
        while let Some((len, rest_of_body)) = split(rest, b"\r\n") {
            let len = usize::from_str_radix(str::from_utf8(len).expect("text"), 16).expect("a size");
            response.body.extend_from_slice(&rest_of_body[..len]);
            rest = rest_of_body[len..].strip_prefix(b"\r\n").expect("the end of a chunk");
        }
        response
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
    let mut response = Vec::new();
    soon(io.read_to_end(&mut response)).await.expect("a response");
    response
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
    send(channel, request).await.status_and_body()
}

/// Returns the response over HTTP/2.
pub(crate) async fn send(channel: &thalweg_engine::Channel, request: Request<Body>) -> HttpResponse {
    let response = soon(channel.raw(request, &CallOptions::default())).await.expect("a response");
    let status = response.status().as_u16();
    let mut fields = lines(response.headers());
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(frame) = soon(std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).await {
        match frame.expect("no error").into_data() {
            Ok(piece) => all.extend_from_slice(&piece),
            Err(frame) => fields += &lines(&frame.into_trailers().unwrap_or_default()),
        }
    }
    HttpResponse { status, fields, body: all }
}

fn lines(fields: &HeaderMap) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| [name.as_str(), ": ", text(value), "\n"].concat();
    fields.iter().map(line).collect()
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().expect("text")
}
