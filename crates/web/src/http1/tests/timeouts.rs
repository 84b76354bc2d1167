//! Time limits.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use super::{Client, timed};
use crate::http1::Http1Limits;

const HEAD: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns when the connection ends, if it ends within an hour.
async fn ends_after(client: &mut Client) -> Option<Duration> {
    let serving = &mut client.serving;
    let (ended, took) = timed(tokio::time::timeout(seconds(3600), serving)).await;
    ended.is_ok().then_some(took)
}

#[tokio::test(start_paused = true)]
async fn header_timeout_starts_at_first_byte() {
    let limits = Http1Limits::default().idle_timeout(None);
    let mut client = Client::with(limits.clone(), 1000);
    // Empty lines do not start a head.
    sleep(seconds(1000)).await;
    client.send("\r\n").await;
    sleep(seconds(1000)).await;
    client.send("G").await;
    sleep(seconds(9)).await;
    client.send("ET").await;
    assert_eq!(ends_after(&mut client).await, Some(seconds(1)));

    // Nor does the time between two heads count.
    let mut client = Client::with(limits, 1000);
    assert_eq!(client.exchange(HEAD).await.statuses(), ["200"]);
    sleep(seconds(1000)).await;
    assert_eq!(client.exchange(HEAD).await.statuses(), ["200"]);
    client.send("G").await;
    assert_eq!(ends_after(&mut client).await, Some(seconds(10)));
}

#[tokio::test(start_paused = true)]
async fn header_timeout_excludes_previous_response() {
    let mut client = Client::new();
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.1\r\n").await;
    sleep(seconds(105)).await;
    assert_eq!(client.exchange("Host: a\r\n\r\n").await.statuses(), ["200", "200"]);
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_timeout() {
    let mut client = Client::new();
    client.exchange(HEAD).await;
    // The client has already waited a second for more of the response.
    assert_eq!(ends_after(&mut client).await, Some(seconds(74)));

    let mut client = Client::with(Http1Limits::default().idle_timeout(None), 1000);
    client.exchange(HEAD).await;
    assert_eq!(ends_after(&mut client).await, None);

    let limits = Http1Limits::default().idle_timeout(Some(seconds(60)));
    let mut client = Client::with(limits.clone(), 1000);
    assert_eq!(ends_after(&mut client).await, Some(seconds(60)));
    let mut client = Client::with(limits, 1000);
    sleep(seconds(50)).await;
    client.exchange("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    sleep(seconds(99)).await;
    let (received, took) = timed(async { (client.receive().await, ends_after(&mut client).await) }).await;
    assert_eq!(received.0.statuses(), ["200"]);
    assert_eq!(took, seconds(60));
}

/// A connection becomes idle when its response was sent, which may be long after it was ready.
#[tokio::test(start_paused = true)]
async fn idle_time_starts_when_response_is_sent() {
    let limits = Http1Limits::default().idle_timeout(Some(seconds(60)));
    let mut client = Client::with(limits, 1000);
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    sleep(seconds(50)).await;
    let (received, took) = timed(async { (client.receive().await, ends_after(&mut client).await) }).await;
    assert_eq!((received.0.statuses(), took), (vec!["200"], seconds(60)));
}

fn post(path: &str, field: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n")
}

const TOO_SLOW: &str = "receiving the body took too long";

#[tokio::test(start_paused = true)]
async fn request_body_times_out() {
    let mut client = Client::new();
    client.send(post("/a", "Content-Length: 10000")).await;
    sleep(seconds(29)).await;
    // 2 KiB allow two more seconds.
    client.send("a".repeat(2048)).await;
    sleep(seconds(2)).await;
    assert!(client.log.lines().is_empty());
    sleep(seconds(2)).await;
    let received = client.receive().await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["200"], true));
    assert!(received.text.contains("\r\nconnection: close\r\n"), "{received:?}");
    assert!(client.log.lines()[0].ends_with(&format!("aaa, then {TOO_SLOW}")), "{:?}", client.log);

    let limits = Http1Limits::default().request_timeout(None);
    let mut client = Client::with(limits, 1000);
    client.send(post("/a", "Content-Length: 10000")).await;
    assert_eq!(ends_after(&mut client).await, None);
}

#[tokio::test(start_paused = true)]
async fn stream_may_pause_between_chunks() {
    let mut client = Client::new();
    client.send(post("/a", "Transfer-Encoding: chunked")).await;
    for _ in 0..3 {
        sleep(seconds(1000)).await;
        client.send("3\r\na").await;
        sleep(seconds(29)).await;
        client.send("bc\r\n").await;
    }
    sleep(seconds(1000)).await;
    assert!(client.log.lines().is_empty(), "{:?}", client.log);
    client.send("3").await;
    sleep(seconds(31)).await;
    assert_eq!(client.log.lines(), [format!("POST /a: abcabcabc, then {TOO_SLOW}")]);
}

#[tokio::test(start_paused = true)]
async fn collected_body_may_not_pause() {
    let mut client = Client::new();
    client.send(post("/whole", "Transfer-Encoding: chunked")).await;
    for _ in 0..2 {
        sleep(seconds(14)).await;
        client.send("3\r\nabc\r\n").await;
    }
    sleep(seconds(1)).await;
    assert!(client.log.lines().is_empty());
    sleep(seconds(2)).await;
    assert!(client.log.lines()[0].contains(TOO_SLOW), "{:?}", client.log);
}

/// One read may bring the end of a body and the start of the next.
#[tokio::test(start_paused = true)]
async fn each_body_has_its_own_timeout() {
    let mut client = Client::new();
    client.send(post("/a", "Content-Length: 2") + "a").await;
    sleep(seconds(29)).await;
    client.send("b".to_owned() + &post("/b", "Content-Length: 2") + "c").await;
    sleep(seconds(29)).await;
    client.send("d").await;
    assert_eq!(client.receive().await.statuses(), ["200", "200"]);
    assert_eq!(client.log.lines(), ["POST /a: ab", "POST /b: cd"]);
}

/// Message readers announce the next part, independent of the pieces.
#[tokio::test(start_paused = true)]
async fn each_part_has_its_own_timeout() {
    let mut client = Client::new();
    client.send(post("/parts", "Content-Length: 10")).await;
    for part in ["a", "b", "c"] {
        sleep(seconds(20)).await;
        client.send(part).await;
    }
    sleep(seconds(29)).await;
    assert!(client.log.lines().is_empty(), "{:?}", client.log);
    sleep(seconds(2)).await;
    assert_eq!(client.log.lines(), [format!("POST /parts: abc, then {TOO_SLOW}")]);
}

#[tokio::test(start_paused = true)]
async fn body_timeout_pauses_while_service_does_not_read() {
    let mut client = Client::new();
    client.send(post("/slow", "Content-Length: 10")).await;
    sleep(seconds(105)).await;
    assert_eq!(client.receive().await.statuses(), ["200"]);
}

#[tokio::test(start_paused = true)]
async fn unread_response_times_out() {
    let mut client = Client::with(Http1Limits::default(), 1000);
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(ends_after(&mut client).await, Some(seconds(60)));

    let limits = Http1Limits::default().reply_timeout(None);
    let mut client = Client::with(limits, 1000);
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(ends_after(&mut client).await, None);
}

/// Empty lines before a request are allowed (RFC 9112 §2.2) and do not end the idle time.
#[tokio::test(start_paused = true)]
async fn empty_lines_do_not_extend_idle_time() {
    for start in ["\r", "\r\n", "\r\n\r\n"] {
        let mut client = Client::new();
        client.send(start).await;
        let took = ends_after(&mut client).await;
        assert!(took.is_some_and(|took| took <= seconds(75)), "{start:?}: {took:?}");
    }
}

/// A byte now and then does not restart the time, and 1 KiB/s is enough.
#[tokio::test(start_paused = true)]
async fn response_must_be_read_at_minimum_rate() {
    let check = async |path: &str, len: usize, period: u64, expected: Option<Duration>| {
        let mut client = Client::with(Http1Limits::default(), 1000);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let Client { io, serving, .. } = &mut client;
        let reading = async {
            let mut part = vec![0; len];
            // Slightly less than the time that /large takes at 1 KiB/s.
            for _ in 0..1000 / period {
                sleep(seconds(period)).await;
                io.read_exact(&mut part).await.expect("the stream is open");
            }
        };
        let (outcome, took) = timed(async {
            tokio::select! {
                biased;
                _ = serving => true,
                () = reading => false,
            }
        })
        .await;
        assert_eq!(outcome.then_some(took), expected, "{path}: {len} bytes each {period} s");
    };
    for path in ["/large", "/endless"] {
        check(path, 1, 11, Some(seconds(60))).await;
        check(path, 500, 1, Some(Duration::from_millis(116_608))).await;
        check(path, 1024, 1, None).await;
    }
}

/// If nothing waits for the client, it has no minimum rate.
#[tokio::test(start_paused = true)]
async fn paused_response_has_no_minimum_rate() {
    let mut client = Client::with(Http1Limits::default(), 1000);
    client.send("GET /for-ever HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(ends_after(&mut client).await, None);
}
