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
        let came = client.receive().await;
        let context = format!("{bytes:?} in pieces of {piece_len}: {came:?}");
        assert_eq!(client.log.lines(), log, "{context}");
        assert_eq!(came.statuses(), statuses, "{context}");
        assert_eq!(came.is_closed, is_closed, "{context}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept() {
    let mut client = Client::new();
    for _ in 0..3 {
        let came = client.ask("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!((came.statuses(), came.is_closed), (vec!["200"], false));
        assert!(came.text.contains("\r\ncontent-length: 2\r\n"), "{came:?}");
        assert!(came.text.ends_with("\r\n\r\nok"), "{came:?}");
    }
    assert_eq!(client.log.lines(), ["GET /a"; 3]);
    let came = client.ask("GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!((came.statuses(), came.is_closed), (vec!["200"], true));
}

/// RFC 9112 §3.2.2; `Upgrade` is removed.
#[tokio::test(start_paused = true)]
async fn the_fields_are_those_that_count() {
    let asked = "GET http://b/fields HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nX-A: 1\r\n\r\n";
    let came = Client::new().ask(asked).await;
    assert!(came.text.ends_with("\r\n\r\nhost=b x-a=1 "), "{came:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_in_their_order() {
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
async fn many_pipelined_requests_are_all_answered() {
    let mut client = Client::new();
    let came = client.ask("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100)).await;
    assert_eq!(came.statuses(), ["200"; 100]);
}

#[tokio::test(start_paused = true)]
async fn a_body_is_asked_for_when_it_is_read() {
    let head = |path| {
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    };
    let mut client = Client::new();
    let came = client.ask(head("/a")).await;
    assert_eq!(came.text, "HTTP/1.1 100 Continue\r\n\r\n");
    let came = client.ask("abc").await;
    assert_eq!((came.statuses(), client.log.lines()), (vec!["200"], vec!["POST /a: abc".to_owned()]));
    // A service that ignores the body responds immediately, and the body may or may not follow.
    let came = client.ask(head("/unread")).await;
    assert_eq!((came.statuses(), came.is_closed), (vec!["200"], true));
    assert!(came.text.contains("\r\nconnection: close\r\n"), "{came:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_comes_in_chunks() {
    let mut client = Client::new();
    let came = client.ask("GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(came.text.contains("\r\ntransfer-encoding: chunked\r\n"), "{came:?}");
    assert!(came.text.ends_with("\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"), "{came:?}");
    let came = client.ask("HEAD /pieces HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(came.text.ends_with("\r\n\r\n"), "{came:?}");
    assert!(!came.is_closed);
}

#[tokio::test(start_paused = true)]
async fn trailers_come_to_those_who_ask_for_them() {
    let mut client = Client::new();
    let came = client.ask("GET /trailers HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(came.text.ends_with("1\r\na\r\n0\r\n\r\n"), "{came:?}");
    let came = client.ask("GET /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n").await;
    assert!(came.text.ends_with("1\r\na\r\n0\r\nbehind: it\r\n\r\n"), "{came:?}");
    assert!(!came.is_closed);
}

#[tokio::test(start_paused = true)]
async fn http_1_0_knows_no_chunks() {
    let mut client = Client::new();
    let came = client.ask("GET /pieces HTTP/1.0\r\n\r\n").await;
    assert!(came.text.starts_with("HTTP/1.0 200"), "{came:?}");
    assert!(!came.text.contains("chunked"), "{came:?}");
    assert!(came.text.ends_with("\r\n\r\nabc"), "{came:?}");
    assert!(came.is_closed);
    check("GET /a HTTP/1.0\r\n\r\n", &["GET /a"], &["200"], true).await;
    check("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &["GET /a"], &["200"], false).await;
}

#[tokio::test(start_paused = true)]
async fn targets_have_the_form_of_their_method() {
    let request = |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
    check(&request("OPTIONS *"), &["OPTIONS *"], &["200"], false).await;
    check(&request("GET http://b/c"), &["GET http://b/c"], &["200"], false).await;
    check(&request("GET *"), &[], &["400"], true).await;
    check(&request("GET example.com"), &[], &["400"], true).await;
    check(&request("CONNECT example.com:443"), &[], &["501"], true).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_has_one_host() {
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
async fn upgrades_are_passed_over() {
    let fields =
        "Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    let twice = format!("GET /a HTTP/1.1\r\n{fields}\r\n").repeat(2);
    check(&twice, &["GET /a", "GET /a"], &["200"; 2], false).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_service_says_wrongly_is_set_right() {
    let mut client = Client::new();
    let came = client.ask("GET /length HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(came.text.contains("\r\ncontent-length: 3\r\n") && came.text.ends_with("abc"), "{came:?}");
    let came = client.ask("GET /100 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((came.statuses(), came.is_closed), (vec!["500"], false));
}
