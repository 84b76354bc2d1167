//! Ends of connections, by either side.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::{Client, Log, service, timed};
use crate::http1::{Http1Limits, serve};

const MANY: Duration = Duration::from_secs(5);

/// Requests a path, receives what is sent, then disconnects, and checks that the service's part is dropped.
async fn check_cancelled(request: &str, path_begins: bool) {
    let mut client = Client::new();
    let received = client.exchange(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    assert_eq!((received.statuses().len(), received.is_closed), (usize::from(path_begins), false));
    assert!(!client.log.lines().contains(&"dropped".to_owned()));
    drop(client.io);
    let ((), took) = timed(async { client.serving.await.unwrap() }).await;
    assert!(took < MANY, "{took:?}");
    assert_eq!(client.log.lines().last().unwrap(), "dropped");
}

#[tokio::test(start_paused = true)]
async fn disconnect_cancels_request() {
    check_cancelled("GET /hang", false).await;
    check_cancelled("GET /for-ever", true).await;
}

/// A byte stream whose reads fail once TCP keepalive gets no response.
struct Vanishing<IO>(IO, Pin<Box<tokio::time::Sleep>>);

impl<IO: AsyncRead + Unpin> AsyncRead for Vanishing<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.1.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Vanishing<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn read_error_cancels_request() {
    for path in ["/hang", "/for-ever"] {
        let (mut io, served) = tokio::io::duplex(64 << 10);
        let served = Vanishing(served, Box::pin(tokio::time::sleep(Duration::from_secs(120))));
        let log = Log::default();
        let limits = Http1Limits::default();
        let serving = serve(served, |request| service(request, log.clone()), &limits, std::future::pending());
        io.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let ((), took) = timed(serving).await;
        assert_eq!(log.lines().last().unwrap(), "dropped", "{path}");
        assert!(took < Duration::from_secs(120) + MANY, "{path}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn disconnect_during_body_cancels_request() {
    let mut client = Client::new();
    client.send("POST /hang HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").await;
    client.receive().await;
    drop(client.io);
    client.serving.await.unwrap();
    assert_eq!(client.log.lines(), ["POST /hang", "dropped"]);
}

#[tokio::test(start_paused = true)]
async fn failed_response_is_truncated() {
    // With a declared length, HTTP/1.0 would keep the connection.
    for (request, length) in [
        ("GET /fails HTTP/1.1\r\nHost: a\r\n\r\n", None),
        ("GET /fails-of-30 HTTP/1.1\r\nHost: a\r\n\r\n", Some("30")),
        ("GET /fails-of-30 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Some("30")),
    ] {
        let mut client = Client::new();
        let received = client.exchange(request).await;
        assert!(received.is_closed, "{request} {received:?}");
        let (head, body) = received.text.split_once("\r\n\r\n").unwrap();
        let field_lines = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(field_lines, length, "{request} {received:?}");
        let expected = if length.is_some() { "some" } else { "4\r\nsome\r\n" };
        assert_eq!(body, expected, "{request} {received:?}");
    }
    // The client cannot detect the truncation, but nothing more is sent.
    let received = Client::new().exchange("GET /fails HTTP/1.0\r\n\r\n").await;
    assert!(received.is_closed && received.text.ends_with("\r\n\r\nsome"), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn stop_closes_idle_connections_immediately() {
    for request in ["", "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut client = Client::new();
        client.exchange(request).await;
        client.stop();
        let (received, took) = timed(client.receive()).await;
        assert_eq!(
            (received.text.as_str(), received.is_closed, took),
            ("", true, Duration::ZERO),
            "{request:?}"
        );
        client.serving.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn stop_waits_for_active_request() {
    let mut client = Client::new();
    let request_line = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(client.exchange(request_line).await.text, "");
    client.stop();
    assert!(!client.receive().await.is_closed);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let received = client.receive().await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["200"], true));
    assert!(received.text.contains("\r\nconnection: close\r\n"), "{received:?}");
    assert_eq!(client.log.lines(), ["GET /slow"]);
}

/// RFC 9112 §9.6: a client that still sends when the server closes would lose the response.
#[tokio::test(start_paused = true)]
async fn unread_body_is_discarded_before_close() {
    let mut client = Client::with(Http1Limits::default(), 1 << 10);
    client.send("POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    let received = client.receive().await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["200"], true));
    let still_takes = client.io.write_all(&[b'a'; 10_000]).await;
    assert!(still_takes.is_ok());
    let ((), took) = timed(async { client.serving.await.unwrap() }).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
}

/// The same for requests after the last one.
#[tokio::test(start_paused = true)]
async fn requests_after_last_response_are_discarded() {
    let mut client = Client::new();
    let last = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.send(format!("{last}GET /b HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    let ((), took) = timed(async { (&mut client.serving).await.unwrap() }).await;
    assert_eq!((took, client.log.lines()), (Duration::from_secs(2), vec!["GET /a".to_owned()]));
}

/// After an upgrade request hyper ends the connection differently.
#[tokio::test(start_paused = true)]
async fn response_to_upgrade_request_is_complete() {
    let mut client = Client::with(Http1Limits::default(), 1 << 10);
    client
        .send("POST /large HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 9\r\n\r\n")
        .await;
    let received = client.receive().await;
    assert!(received.is_closed);
    assert_eq!(received.text.split_once("\r\n\r\n").unwrap().1.len(), 1 << 20);
}

/// RFC 9112 §9.6: without notice the client would send its next request on a closed connection.
#[tokio::test(start_paused = true)]
async fn close_after_response_is_announced() {
    let (chunked, long) = ("Transfer-Encoding: chunked", "Content-Length: 9");
    for path in ["/unread", "/early", "/read", "/whole"] {
        for (length, body, arrives, is_kept) in [
            (chunked, "3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n", 41, true),
            (chunked, "3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n", 8, false),
            (chunked, "0\r\n\r\n", 5, true),
            (chunked, "0\r\n\r\n", 0, false),
            (long, "abcdefghi", 9, true),
            (long, "abcdefghi", 3, false),
            (long, "abcdefghi", 0, false),
        ] {
            let mut client = Client::new();
            let (now, later) = body.split_at(arrives.min(body.len()));
            client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n{now}")).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let received = client.exchange(later).await;
            let has_said = received.text.contains("\r\nconnection: close\r\n");
            assert_eq!(has_said, received.is_closed, "{path}, {length}, {arrives} bytes: {received:?}");
            let waits = matches!(path, "/read" | "/whole");
            // `/early` still holds the request body when its response starts.
            let is_kept = waits || is_kept && path != "/early";
            assert_eq!(!received.is_closed, is_kept, "{path}, {length}, {arrives} bytes: {received:?}");
        }
    }
}
