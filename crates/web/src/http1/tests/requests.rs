//! Valid requests and responses.

use super::Client;

/// Sends `bytes` at once and in pieces of each length up to 3, and checks the service's log and the statuses.
async fn check(bytes: &str, log: &[&str], statuses: &[&str], is_closed: bool) {
    for piece_len in [usize::MAX, 1, 2, 3] {
        let mut client = Client::new();
        for piece in bytes.as_bytes().chunks(piece_len) {
            client.send(piece).await;
            tokio::task::yield_now().await;
        }
        let received = client.receive().await;
        let context = format!("{bytes:?} in pieces of {piece_len}: {received:?}");
        assert_eq!(client.log.lines(), log, "{context}");
        assert_eq!(received.statuses(), statuses, "{context}");
        assert_eq!(received.is_closed, is_closed, "{context}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_is_kept_alive() {
    let mut client = Client::new();
    for _ in 0..3 {
        let received = client.exchange("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!((received.statuses(), received.is_closed), (vec!["200"], false));
        assert!(received.text.contains("\r\ncontent-length: 2\r\n"), "{received:?}");
        assert!(received.text.ends_with("\r\n\r\nok"), "{received:?}");
    }
    assert_eq!(client.log.lines(), ["GET /a"; 3]);
    let received = client.exchange("GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["200"], true));
}

/// RFC 9112 §3.2.2; `Upgrade` is removed.
#[tokio::test(start_paused = true)]
async fn service_sees_normalized_headers() {
    let request_line = "GET http://b/fields HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nX-A: 1\r\n\r\n";
    let received = Client::new().exchange(request_line).await;
    assert!(received.text.ends_with("\r\n\r\nhost=b x-a=1 "), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn responses_keep_request_order() {
    let pipelined = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
                     \r\n\
                     POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                     2;ext=1\r\nde\r\n1\r\nf\r\n0\r\nTrailer: a\r\n\r\n\
                     GET /unread HTTP/1.1\r\nHost: a\r\n\r\n\
                     GET /4 HTTP/1.1\r\nHost: a\r\n\r\n";
    let log = ["POST /1: abc", "POST /2: def and trailers", "GET /unread", "GET /4"];
    check(pipelined, &log, &["200"; 4], false).await;
}

#[tokio::test(start_paused = true)]
async fn many_pipelined_requests_get_responses() {
    let mut client = Client::new();
    let received = client.exchange("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100)).await;
    assert_eq!(received.statuses(), ["200"; 100]);
}

#[tokio::test(start_paused = true)]
async fn continue_is_sent_when_body_is_read() {
    let head = |path| {
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    };
    let mut client = Client::new();
    let received = client.exchange(head("/a")).await;
    assert_eq!(received.text, "HTTP/1.1 100 Continue\r\n\r\n");
    let received = client.exchange("abc").await;
    assert_eq!((received.statuses(), client.log.lines()), (vec!["200"], vec!["POST /a: abc".to_owned()]));
    // A service that ignores the body responds immediately, and the body may or may not follow.
    let received = client.exchange(head("/unread")).await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["200"], true));
    assert!(received.text.contains("\r\nconnection: close\r\n"), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn body_of_unknown_length_is_chunked() {
    let mut client = Client::new();
    let received = client.exchange("GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(received.text.contains("\r\ntransfer-encoding: chunked\r\n"), "{received:?}");
    assert!(received.text.ends_with("\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"), "{received:?}");
    let received = client.exchange("HEAD /pieces HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(received.text.ends_with("\r\n\r\n"), "{received:?}");
    assert!(!received.is_closed);
}

#[tokio::test(start_paused = true)]
async fn trailers_are_sent_if_te_accepts_them() {
    let mut client = Client::new();
    let received = client.exchange("GET /trailers HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(received.text.ends_with("1\r\na\r\n0\r\n\r\n"), "{received:?}");
    let received = client.exchange("GET /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n").await;
    assert!(received.text.ends_with("1\r\na\r\n0\r\nbehind: it\r\n\r\n"), "{received:?}");
    assert!(!received.is_closed);
}

#[tokio::test(start_paused = true)]
async fn http_1_0_response_is_not_chunked() {
    let mut client = Client::new();
    let received = client.exchange("GET /pieces HTTP/1.0\r\n\r\n").await;
    assert!(received.text.starts_with("HTTP/1.0 200"), "{received:?}");
    assert!(!received.text.contains("chunked"), "{received:?}");
    assert!(received.text.ends_with("\r\n\r\nabc"), "{received:?}");
    assert!(received.is_closed);
    check("GET /a HTTP/1.0\r\n\r\n", &["GET /a"], &["200"], true).await;
    check("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &["GET /a"], &["200"], false).await;
}

#[tokio::test(start_paused = true)]
async fn target_form_must_match_method() {
    let request = |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
    check(&request("OPTIONS *"), &["OPTIONS *"], &["200"], false).await;
    check(&request("GET http://b/c"), &["GET http://b/c"], &["200"], false).await;
    check(&request("GET *"), &[], &["400"], true).await;
    check(&request("GET example.com"), &[], &["400"], true).await;
    check(&request("CONNECT example.com:443"), &[], &["501"], true).await;
}

#[tokio::test(start_paused = true)]
async fn request_must_have_exactly_one_host() {
    let request = |fields: &str| format!("GET / HTTP/1.1\r\n{fields}\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    check(&request("Host: a.b:80\r\n"), &["GET /", "GET /b"], &["200"; 2], false).await;
    check(&request("Host: [::1]:80\r\n"), &["GET /", "GET /b"], &["200"; 2], false).await;
    check(&request("Host:\r\n"), &["GET /", "GET /b"], &["200"; 2], false).await;
    check(&request(""), &[], &["400"], true).await;
    check(&request("Host: a\r\nHost: a\r\n"), &[], &["400"], true).await;
    check(&request("Host: a, b\r\n"), &[], &["400"], true).await;
    check(&request("Host: a@b\r\n"), &[], &["400"], true).await;
    check(&request("Host: a/b\r\n"), &[], &["400"], true).await;
}

#[tokio::test(start_paused = true)]
async fn upgrade_is_ignored() {
    let fields =
        "Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    let twice = format!("GET /a HTTP/1.1\r\n{fields}\r\n").repeat(2);
    check(&twice, &["GET /a", "GET /a"], &["200"; 2], false).await;
}

#[tokio::test(start_paused = true)]
async fn invalid_response_headers_are_corrected() {
    let mut client = Client::new();
    let received = client.exchange("GET /length HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(
        received.text.contains("\r\ncontent-length: 3\r\n") && received.text.ends_with("abc"),
        "{received:?}"
    );
    let received = client.exchange("GET /100 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((received.statuses(), received.is_closed), (vec!["500"], false));
}
