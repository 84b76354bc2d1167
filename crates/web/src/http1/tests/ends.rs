//! Ends of connections, by either side.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::{Client, Log, service, time_of};
use crate::http1::{Http1Limits, serve};

const MANY: Duration = Duration::from_secs(5);

/// Requests a path, receives what is sent, then disconnects, and checks that the service's part is dropped.
async fn check_cancelled(request: &str, path_begins: bool) {
    let mut client = Client::new();
    let came = client.ask(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    assert_eq!((came.statuses().len(), came.is_closed), (usize::from(path_begins), false));
    assert!(!client.log.lines().contains(&"dropped".to_owned()));
    drop(client.io);
    let ((), took) = time_of(async { client.serving.await.unwrap() }).await;
    assert!(took < MANY, "{took:?}");
    assert_eq!(client.log.lines().last().unwrap(), "dropped");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_cancels_what_it_asked_for() {
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
async fn a_client_that_vanishes_cancels_what_it_asked_for() {
    for path in ["/hang", "/for-ever"] {
        let (mut io, served) = tokio::io::duplex(64 << 10);
        let served = Vanishing(served, Box::pin(tokio::time::sleep(Duration::from_secs(120))));
        let log = Log::default();
        let limits = Http1Limits::default();
        let serving = serve(served, |request| service(request, log.clone()), &limits, std::future::pending());
        io.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let ((), took) = time_of(serving).await;
        assert_eq!(log.lines().last().unwrap(), "dropped", "{path}");
        assert!(took < Duration::from_secs(120) + MANY, "{path}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_in_the_middle_of_its_body_cancels_what_it_asked_for() {
    let mut client = Client::new();
    client.send("POST /hang HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").await;
    client.receive().await;
    drop(client.io);
    client.serving.await.unwrap();
    assert_eq!(client.log.lines(), ["POST /hang", "dropped"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_fails_is_cut() {
    // With a declared length, HTTP/1.0 would keep the connection.
    for (request, length) in [
        ("GET /fails HTTP/1.1\r\nHost: a\r\n\r\n", None),
        ("GET /fails-of-30 HTTP/1.1\r\nHost: a\r\n\r\n", Some("30")),
        ("GET /fails-of-30 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Some("30")),
    ] {
        let mut client = Client::new();
        let came = client.ask(request).await;
        assert!(came.is_closed, "{request} {came:?}");
        let (head, body) = came.text.split_once("\r\n\r\n").unwrap();
        let told = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(told, length, "{request} {came:?}");
        let expected = if length.is_some() { "some" } else { "4\r\nsome\r\n" };
        assert_eq!(body, expected, "{request} {came:?}");
    }
    // The client cannot detect the truncation, but nothing more is sent.
    let came = Client::new().ask("GET /fails HTTP/1.0\r\n\r\n").await;
    assert!(came.is_closed && came.text.ends_with("\r\n\r\nsome"), "{came:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_ends_connections_without_requests_at_once() {
    for request in ["", "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut client = Client::new();
        client.ask(request).await;
        client.stop();
        let (came, took) = time_of(client.receive()).await;
        assert_eq!((came.text.as_str(), came.is_closed, took), ("", true, Duration::ZERO), "{request:?}");
        client.serving.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_answers_what_it_was_asked() {
    let mut client = Client::new();
    let asked = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(client.ask(asked).await.text, "");
    client.stop();
    assert!(!client.receive().await.is_closed);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let came = client.receive().await;
    assert_eq!((came.statuses(), came.is_closed), (vec!["200"], true));
    assert!(came.text.contains("\r\nconnection: close\r\n"), "{came:?}");
    assert_eq!(client.log.lines(), ["GET /slow"]);
}

/// RFC 9112 §9.6: a client that still sends when the server closes would lose the response.
#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_wants_is_read_for_a_while() {
    let mut client = Client::with(Http1Limits::default(), 1 << 10);
    client.send("POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    let came = client.receive().await;
    assert_eq!((came.statuses(), came.is_closed), (vec!["200"], true));
    let still_takes = client.io.write_all(&[b'a'; 10_000]).await;
    assert!(still_takes.is_ok());
    let ((), took) = time_of(async { client.serving.await.unwrap() }).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
}

/// The same for requests after the last one.
#[tokio::test(start_paused = true)]
async fn requests_that_nobody_wants_are_read_for_a_while() {
    let mut client = Client::new();
    let last = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.send(format!("{last}GET /b HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    let ((), took) = time_of(async { (&mut client.serving).await.unwrap() }).await;
    assert_eq!((took, client.log.lines()), (Duration::from_secs(2), vec!["GET /a".to_owned()]));
}

/// After an upgrade request hyper ends the connection differently.
#[tokio::test(start_paused = true)]
async fn an_answer_is_sent_to_its_end_whatever_was_asked_besides() {
    let mut client = Client::with(Http1Limits::default(), 1 << 10);
    client
        .send("POST /large HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 9\r\n\r\n")
        .await;
    let came = client.receive().await;
    assert!(came.is_closed);
    assert_eq!(came.text.split_once("\r\n\r\n").unwrap().1.len(), 1 << 20);
}

/// RFC 9112 §9.6: without notice the client would send its next request on a closed connection.
#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_behind_a_response_has_said_so() {
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
            let came = client.ask(later).await;
            let has_said = came.text.contains("\r\nconnection: close\r\n");
            assert_eq!(has_said, came.is_closed, "{path}, {length}, {arrives} bytes: {came:?}");
            let waits = matches!(path, "/read" | "/whole");
            // `/early` still holds the request body when its response starts.
            let is_kept = waits || is_kept && path != "/early";
            assert_eq!(!came.is_closed, is_kept, "{path}, {length}, {arrives} bytes: {came:?}");
        }
    }
}
