//! Request smuggling: the service sees only requests that were really sent.

use super::Client;
use crate::http1::Http1Limits;

/// The request that an attacker tries to smuggle.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends `bytes` at once and in pieces, and checks the service's log and the statuses. The connection is closed.
#[track_caller]
fn check(bytes: &str, log: &[&str], statuses: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        for piece_len in [usize::MAX, 1, 7] {
            let mut client = Client::new();
            for piece in bytes.as_bytes().chunks(piece_len) {
                client.send(piece).await;
                tokio::task::yield_now().await;
            }
            let received = client.receive().await;
            let context = format!("{bytes:?} in pieces of {piece_len}: {received:?}");
            assert_eq!(client.log.lines(), log, "{context}");
            assert_eq!(received.statuses(), statuses, "{context}");
            assert!(received.is_closed, "{context}");
        }
    });
}

/// Checks that a request with these fields and a body that starts with `body` is refused, and nothing after it is read.
#[track_caller]
fn check_refused(fields: &str, body: &str) {
    check(&format!("POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}{HIDDEN}"), &[], &["400"]);
    // Nor after a valid request.
    let good = "GET /good HTTP/1.1\r\nHost: a\r\n\r\n";
    let both = format!("{good}POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}{HIDDEN}");
    check(&both, &["GET /good"], &["200", "400"]);
}

#[test]
fn body_with_ambiguous_length_is_rejected() {
    check_refused("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
    check_refused("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n");
    check_refused("Content-Length: 5\r\nContent-Length: 6\r\n", "abcde");
    check_refused("Content-Length: 5\r\nContent-Length: 5\r\n", "abcde");
    check_refused("Content-Length: 5, 6\r\n", "abcde");
    check_refused("Content-Length: -5\r\n", "abcde");
    check_refused("Content-Length: +5\r\n", "abcde");
    check_refused("Content-Length: 0x5\r\n", "abcde");
    check_refused("Content-Length: 5 5\r\n", "abcde");
    check_refused("Content-Length:\r\n", "abcde");
    check_refused("Content-Length: 99999999999999999999\r\n", "abcde");
}

#[test]
fn transfer_coding_other_than_chunked_is_rejected() {
    for value in [
        "chunked, identity",
        "identity, chunked",
        "identity",
        "xchunked",
        "chunkedx",
        "chunked, chunked",
        "gzip, chunked",
        "\"chunked\"",
        "chunked;a=b",
        "chunked,",
        ",chunked",
        "",
        "\u{b}chunked",
    ] {
        check_refused(&format!("Transfer-Encoding: {value}\r\n"), "0\r\n\r\n");
    }
    check_refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n");
    check_refused("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
    let http_1_0 = "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check(&format!("{http_1_0}{HIDDEN}"), &[], &["400"]);
}

#[test]
fn line_without_crlf_is_rejected() {
    check(&format!("GET / HTTP/1.1\nHost: a\r\n\r\n{HIDDEN}"), &[], &["400"]);
    check(&format!("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n{HIDDEN}"), &[], &["400"]);
    check(&format!("GET / HTTP/1.1\rHost: a\r\n\r\n{HIDDEN}"), &[], &["400"]);
    check_refused("A: b\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
    check_refused("A: b\rTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
    check_refused("A: b\r\n\n", "");
    check_refused("A: b\r\r\n", "");
}

#[test]
fn malformed_header_field_is_rejected() {
    // A folded line.
    check_refused("A: b\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n");
    check_refused("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n");
    check_refused(" Transfer-Encoding: chunked\r\n", "0\r\n\r\n");
    check_refused("Transfer-Encoding : chunked\r\n", "0\r\n\r\n");
    check_refused("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n");
    check_refused("Transfer-Encoding\r\n", "0\r\n\r\n");
    check_refused(": a\r\n", "");
    check_refused("A: b\0c\r\n", "");
    check_refused("A\0: b\r\n", "");
    check_refused("A: b\u{7f}\r\n", "");
    check_refused("Ä: b\r\n", "");
}

#[test]
fn malformed_request_line_is_rejected() {
    for line in [
        "GET  / HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET / HTTP/1.2",
        "GET / HTTP/2.0",
        "GET / HTTP/11",
        "GET / http/1.1",
        "GET /",
        "GET / GET /b HTTP/1.1",
        "GET / HTTP/1.1\0",
        "G\0T / HTTP/1.1",
        "(GET) / HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "GET /\u{7f} HTTP/1.1",
        " HTTP/1.1",
    ] {
        check(&format!("{line}\r\nHost: a\r\n\r\n{HIDDEN}"), &[], &["400"]);
    }
}

/// Checks that these chunks are refused: the service gets the valid ones, and nothing after them is read.
#[track_caller]
fn check_bad_chunks(chunks: &str) {
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let log = "POST /a: abc, then malformed HTTP/1.1 body";
    check(&format!("{head}3\r\nabc\r\n{chunks}{HIDDEN}"), &[log], &["200"]);
}

#[test]
fn malformed_chunk_size_is_rejected() {
    for size in ["-3", "+3", " 3", "3 ", "3\t", "0x3", "3 3", "g", "", "\0", "3\0", "3,", "10000000000000000"]
    {
        check_bad_chunks(&format!("{size}\r\nabc\r\n0\r\n\r\n"));
    }
    check_bad_chunks("3\nabc\r\n0\r\n\r\n");
    check_bad_chunks("3\rabc\r\n0\r\n\r\n");
    check_bad_chunks("3;a\nabc\r\n0\r\n\r\n");
    check_bad_chunks("3;a\rb\r\nabc\r\n0\r\n\r\n");
    check_bad_chunks("\r\n0\r\n\r\n");
    check_bad_chunks("0\n\r\n");
    check_bad_chunks(&format!("3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(20_000)));
}

#[test]
fn malformed_trailer_is_rejected() {
    check_bad_chunks("0\r\n\n");
    check_bad_chunks("0\r\nA: b\n\r\n");
    check_bad_chunks("0\r\nA: b\r\n\n");
    check_bad_chunks("0\r\nA\r\n\r\n");
    check_bad_chunks("0\r\n A: b\r\n\r\n");
    check_bad_chunks("0\r\nA : b\r\n\r\n");
    check_bad_chunks(&format!("0\r\nA: {}\r\n\r\n", "b".repeat(20_000)));
    check_bad_chunks(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(101)));
}

#[test]
fn chunk_longer_than_its_size_is_rejected() {
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let then = "then malformed HTTP/1.1 body";
    for chunk in ["3\r\nabcd\r\n", "3\r\nabc0\r\n", "3\r\nabc\n", "3\r\nabc\r\r\n", "3\r\nabc\n\r\n"] {
        check(&format!("{head}{chunk}0\r\n\r\n{HIDDEN}"), &[&format!("POST /a: abc, {then}")], &["200"]);
    }
}

#[tokio::test(start_paused = true)]
async fn incomplete_chunk_blocks_next_request() {
    let mut client = Client::new();
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let received = client.exchange(format!("{head}ffffffffffffffff\r\nabc\r\n0\r\n\r\n{HIDDEN}")).await;
    assert_eq!((received.text.as_str(), client.log.lines().len()), ("", 0));
}

#[test]
fn oversized_header_is_rejected() {
    let long = "a".repeat(20_000);
    check(&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n{HIDDEN}"), &[], &["431"]);
    check(&format!("{long} / HTTP/1.1\r\nHost: a\r\n\r\n{HIDDEN}"), &[], &["431"]);
    check(&format!("GET / HTTP/1.1\r\nHost: a\r\nA: {long}\r\n\r\n{HIDDEN}"), &[], &["431"]);
    check(&format!("GET / HTTP/1.1\r\nHost: a\r\n{long}: a\r\n\r\n{HIDDEN}"), &[], &["431"]);
    check(&format!("{}{HIDDEN}", "\r\n".repeat(10_000)), &[], &["431"]);
    let many = "A: b\r\n".repeat(100);
    check(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n{HIDDEN}"), &[], &["431"]);
    let allowed = "A: b\r\n".repeat(98);
    let closed = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{allowed}\r\n{HIDDEN}");
    check(&closed, &["GET /"], &["200"]);
}

#[tokio::test(start_paused = true)]
async fn oversized_request_line_is_rejected() {
    let limits = Http1Limits::default().max_head_size(1 << 20);
    let mut client = Client::with(limits, 1 << 20);
    let received =
        client.exchange(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n{HIDDEN}", "a".repeat(70_000))).await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["414"], true));
    assert!(client.log.lines().is_empty());
}

#[test]
fn truncated_request_is_not_served() {
    let close = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    check(&format!("{close}{HIDDEN}"), &["GET /a"], &["200"]);
}
