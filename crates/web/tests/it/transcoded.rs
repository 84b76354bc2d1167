//! Transcoded JSON, served: unary methods.

use std::time::Duration;

use bytes::Bytes;
use thalweg_engine::{Encoding, ServiceOptions};
use thalweg_protobuf::json::{ParseOptions, PrintOptions};
use thalweg_web::Web;
use thalweg_web::body::Body;

use crate::library::{FAILURE, Library, channel_body, request, request_with};

const JSON: &str = "content-type: application/json";

/// Checks the status and the body of the response, and the headers that `expected` names on separate lines.
async fn check(head: &str, body: &str, expected: &str) {
    check_with(&Library::new(), head, body, expected).await;
}

async fn check_with(library: &Library, head: &str, body: &str, expected: &str) {
    let fields = expected.lines().skip(1).filter_map(|line| line.split_once(": "));
    let names: Vec<&str> = fields.map(|(name, _)| name).filter(|name| is_name(name)).collect();
    assert_eq!(library.response_text(request(head, body), &names).await, expected, "{head}");
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

#[tokio::test]
async fn path_query_and_body_form_the_message() {
    let json = "200\ncontent-type: application/json\n";
    check(
        "GET /v1/one/a%20b?count=3&words=x&words=y",
        "",
        &format!("{json}{}", r#"{"count":3,"name":"a b","words":["x","y"]}"#),
    )
    .await;
    check(
        "POST /v1/one",
        r#"{"name": "n", "longNumber": 7}"#,
        &format!("{json}{}", r#"{"longNumber":"7","name":"n"}"#),
    )
    .await;
    check(
        "PUT /v1/one/n?text=t",
        r#"["a", "b"]"#,
        &format!("{json}{}", r#"{"name":"n","text":"t","words":["a","b"]}"#),
    )
    .await;
    check("GET /v1/words?words=a&words=b", "", &format!("{json}[\"a\",\"b\"]")).await;
    // Without annotation.
    let strict = Library::with(Web::new().requires_connect_version(true), &ServiceOptions::default());
    check_with(&strict, "POST /library.Library/Plain", r#"{"count":2}"#, &format!("{json}{{\"count\":2}}"))
        .await;
    let why = "body: line 1, column 2: expected a name in quotes, found the end of the text";
    let expected = format!("400\n{{\"code\":3,\"message\":\"{why}\",\"details\":[]}}");
    check_with(&strict, "POST /library.Library/Plain", "{", &expected).await;
}

#[tokio::test]
async fn message_of_any_size_arrives_in_any_pieces() {
    let library = Library::new();
    for len in [0, 1, 2, 3, 4, 5, 6, 10, 12, 100, 128, 256, 1024, 1234, 4096, 65_537] {
        let json = format!(r#"{{"name":"1","text":"{}"}}"#, "0123456789abcdefgh".repeat(len / 18 + 1));
        for piece_len in [1, 1000, usize::MAX] {
            let (sender, body) = channel_body();
            for piece in json.as_bytes().chunks(piece_len) {
                sender.send(Ok(Bytes::copy_from_slice(piece))).unwrap();
            }
            drop(sender);
            let text = library.response_text(request_with("POST /v1/one", body), &[]).await;
            assert!(text == format!("200\n{json}"), "{len} bytes in pieces of {piece_len}");
        }
    }
}

#[tokio::test]
async fn invalid_requests_are_reported() {
    let check = async |head, body, problem: &str| {
        let status = format!(r#"{{"code":3,"message":"{problem}","details":[]}}"#);
        check(head, body, &format!("400\n{JSON}\n{status}")).await;
    };
    check(
        "POST /v1/one",
        "{\"count\": 1,\n \"words\": [\"a\", 1]}",
        "body: line 2, column 17: words[1]: expected a string, found a number",
    )
    .await;
    check(
        "POST /v1/one",
        r#"{"nothing": 1}"#,
        "body: line 1, column 2: library.Order has no field `nothing`",
    )
    .await;
    check("GET /v1/one/n?count=x", "", "parameter `count`: `x` is not a number").await;
    check("GET /v1/one/n?nothing=x", "", "parameter `nothing`: library.Order has no field `nothing`").await;
    check("GET /v1/one/%ff", "", "path: name: percent-decoded text is not UTF-8").await;
    check("GET /v1/one/n", "{\"count\":1}", "this method accepts no body").await;
    check(
        "GET /v1/one/n\nx-a-bin: ?",
        "",
        "malformed binary metadata in \\\"x-a-bin\\\": Invalid symbol 63, offset 0.",
    )
    .await;
    check(
        "GET /v1/one/n\ngrpc-timeout: 1",
        "",
        "malformed grpc-timeout \\\"1\\\": expected one to eight digits and one of H, M, S, m, u, n",
    )
    .await;
    check(
        "GET /v1/one/n\nconnect-timeout-ms: x",
        "",
        "malformed connect-timeout-ms \\\"x\\\": expected one to ten digits",
    )
    .await;
}

#[tokio::test]
async fn failure_is_a_status_in_json() {
    let expected = format!("404\n{JSON}\nretry-after: 7\n{FAILURE}");
    check("GET /v1/one/n?text=fail", "", &expected).await;
    // Its form does not depend on `accept`.
    check("GET /v1/one/n?text=fail\naccept: text/html", "", &expected).await;
    let unknown = r#"{"code":12,"message":"nothing is called so","details":[]}"#;
    check("GET /v1/absent", "", &format!("501\n{unknown}")).await;
    let broken = "failed to write the response as JSON: ";
    let (response, body) = Library::new().exchange(request("GET /v1/one/n?text=broken", "")).await;
    assert_eq!(response.status(), 500);
    assert!(body.starts_with(&format!(r#"{{"code":13,"message":"{broken}"#)), "{body}");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_rejected() {
    let (response, body) = Library::new().exchange(request("GET /v1/nothing", "")).await;
    assert_eq!((response.status().as_u16(), &*body), (404, "nothing found at /v1/nothing\n"));
    let allow = "405\nallow: PUT, GET, HEAD\nthis path accepts only PUT, GET, HEAD\n";
    let (response, _) = Library::new().exchange(request("DELETE /v1/one/n", "")).await;
    let mut allowed: Vec<&str> = response.headers()["allow"].to_str().unwrap().split(", ").collect();
    allowed.sort_unstable();
    assert_eq!((response.status().as_u16(), allowed), (405, vec!["GET", "HEAD", "PUT"]), "{allow}");
    check("DELETE /v1/one", "", "405\nallow: POST\nthis path accepts only POST\n").await;
}

#[tokio::test]
async fn head_is_get_without_body() {
    check("HEAD /v1/one/n?count=3", "", &format!("200\n{JSON}\ncontent-length: 22\n")).await;
    let len = FAILURE.len();
    check("HEAD /v1/one/n?text=fail", "", &format!("404\ncontent-length: {len}\nretry-after: 7\n")).await;
    check("HEAD /v1/many/n?count=3", "", "200\ncontent-type: application/x-ndjson\n").await;
    check("HEAD /v1/one", "", "405\nallow: POST\ncontent-length: 28\n").await;
}

#[tokio::test]
async fn headers_and_metadata_are_converted() {
    let head = "GET /v1/words?text=metadata
        authorization: b
        X-A: 1
        x-a: 2
        grpc-metadata-x-b: 3
        te: trailers
        connection: close
        accept: application/json
        accept-encoding: gzip
        connect-protocol-version: 1
        grpc-timeout: 9S";
    check(
        head,
        "",
        &format!(
            "200\n{JSON}\nx-first: 1\ngrpc-trailer-x-last: 1\n{}",
            r#"["accept=application/json","authorization=b","x-a=1","x-a=2","x-b=3"]"#
        ),
    )
    .await;
    let (response, _) = Library::new().exchange(request(head, "")).await;
    let mut names: Vec<&str> = response.headers().keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-type", "grpc-trailer-x-last", "x-first"]);
}

#[tokio::test]
async fn unsupported_content_type_is_rejected() {
    let unsupported = |sent: &str| {
        let why = format!("content-type \\\"{sent}\\\" is not supported; accepted is application/json");
        format!("415\naccept: application/json\n{{\"code\":12,\"message\":\"{why}\",\"details\":[]}}")
    };
    for sent in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "application/x-ndjson",
        "application/msgpack",
    ] {
        check(&format!("POST /v1/one\ncontent-type: {sent}"), "{}", &unsupported(sent)).await;
    }
    // A page of another origin could send it without a preflight request.
    check("POST /v1/one\ncontent-type: none", "{}", &unsupported("")).await;
    for sent in ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"] {
        check(&format!("POST /v1/one\ncontent-type: {sent}"), "{}", "200\n{}").await;
    }
    // Without a body the content type does not matter.
    check("PUT /v1/one/n\ncontent-type: text/plain", "", "200\n{\"name\":\"n\"}").await;
    check("GET /v1/one/n\ncontent-type: text/plain", "", "200\n{\"name\":\"n\"}").await;
}

/// Browsers let pages of other origins send these without a preflight request, cookies included.
const OF_FORMS: [&str; 6] = [
    "none",
    "text/plain",
    "Text/Plain;charset=UTF-8",
    "text/plain; application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
];

#[tokio::test]
async fn post_that_a_form_can_send_is_rejected() {
    let library = Library::new();
    for content_type in OF_FORMS {
        for (path, body) in [
            ("/v1/one/n:cancel", ""),
            ("/v1/one/n:cancel", " "),
            ("/v1/one", ""),
            ("/v1/one", "{}"),
            ("/v1/many", ""),
            ("/v1/fold/n", ""),
            ("/v1/files/n", ""),
            ("/v1/files/n", "x"),
            ("/library.Library/Plain", ""),
            ("/library.Library/PlainChat", ""),
        ] {
            let head = format!("POST {path}\ncontent-type: {content_type}");
            let (response, text) = library.exchange(request(&head, body)).await;
            assert_eq!(response.status(), 415, "{head} {body:?}: {text}");
        }
        for method in ["PUT", "GET"] {
            let head = format!("{method} /v1/one/n\ncontent-type: {content_type}");
            assert_eq!(
                library.response_text(request(&head, ""), &[]).await,
                "200\n{\"name\":\"n\"}",
                "{head}"
            );
        }
    }
    let text = library
        .response_text(request("POST /v1/one/n:cancel\ncontent-type: application/json", ""), &[])
        .await;
    assert_eq!(text, "200\n{\"name\":\"n\"}");
    let text = library.response_text(request("POST /v1/files/n\ncontent-type: image/png", ""), &[]).await;
    assert!(text.starts_with("200\n"), "{text}");
}

#[tokio::test]
async fn simple_post_is_accepted_if_allowed() {
    let library = Library::with(Web::new().allow_simple_posts(true), &ServiceOptions::default());
    for content_type in OF_FORMS {
        for (path, expected) in [("/v1/one/n:cancel", "200\n{\"name\":\"n\"}"), ("/v1/one", "200\n{}")] {
            let head = format!("POST {path}\ncontent-type: {content_type}");
            assert_eq!(library.response_text(request(&head, ""), &[]).await, expected, "{head}");
        }
        let head = format!("POST /v1/files/n\ncontent-type: {content_type}");
        let (response, text) = library.exchange(request(&head, "x")).await;
        assert_eq!(response.status(), 200, "{head}: {text}");
        let head = format!("POST /v1/one\ncontent-type: {content_type}");
        let (response, text) = library.exchange(request(&head, "{}")).await;
        assert_eq!(response.status(), 415, "{head}: {text}");
    }
}

fn compressed(text: &str) -> Body {
    let mut compressed = Vec::new();
    Encoding::Gzip.compress(text.as_bytes(), &mut compressed);
    Body::full(compressed)
}

#[tokio::test]
async fn requests_may_be_compressed() {
    let library = Library::new();
    let response_text =
        |head: &str, body| library.response_text(request_with(head, body), &["accept-encoding"]);
    let json = r#"{"text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#;
    let text = response_text("POST /v1/one\ncontent-encoding: gzip", compressed(json)).await;
    assert_eq!(text, format!("200\n{json}"));
    let text = response_text("POST /v1/one\ncontent-encoding: identity", Body::full("{}")).await;
    assert_eq!(text, "200\n{}");
    let text = response_text("POST /v1/one\ncontent-encoding: rot13", Body::full("{}")).await;
    assert!(text.starts_with("415\naccept-encoding: identity, gzip, deflate"), "{text}");
    let text = response_text("POST /v1/one\ncontent-encoding: gzip", Body::full("{}")).await;
    assert!(text.starts_with("400\n{\"code\":3,"), "{text}");
    // Without a body nothing is compressed.
    let text = response_text("GET /v1/one/n\ncontent-encoding: br", Body::empty()).await;
    assert_eq!(text, "200\n{\"name\":\"n\"}");
    let mut options = ServiceOptions::default();
    options.accept_compressed = thalweg_engine::EncodingSet::IDENTITY;
    let library = Library::with(Web::new(), &options);
    let http_request = request_with("POST /v1/one\ncontent-encoding: gzip", compressed(json));
    let text = library.response_text(http_request, &["accept-encoding"]).await;
    assert!(text.starts_with("415\naccept-encoding: identity\n"), "{text}");
}

#[tokio::test]
async fn response_is_compressed_if_accepted() {
    let mut options = ServiceOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    let library = Library::with(Web::new(), &options);
    let headers = ["content-encoding", "vary"];
    let json = format!("{{\"text\":\"{}\"}}", "x".repeat(2000));
    for (accept, is_compressed) in [
        ("accept-encoding: gzip, br", true),
        ("accept-encoding: deflate;q=1, gzip;q=0.5", true),
        ("accept-encoding: br", false),
        ("accept-encoding: gzip;q=0", false),
        ("x-a: b", false),
    ] {
        let http_request = request(&format!("GET /v1/one/n?text=long%202000\n{accept}"), "");
        let (head, body) = library.service.call(http_request).await.into_parts();
        let sent = collect(body).await;
        let text: Vec<&str> =
            headers.iter().filter_map(|name| head.headers.get(*name)?.to_str().ok()).collect();
        if is_compressed {
            assert_eq!(text, ["gzip", "accept-encoding"], "{accept}");
            assert_eq!(Encoding::Gzip.decompress(&sent, 5000).unwrap(), json.as_bytes());
        } else {
            assert_eq!(text, ["accept-encoding"], "{accept}");
            assert_eq!(sent, json.as_bytes());
        }
    }
    // Small responses are not compressed.
    let text = library.response_text(request("GET /v1/one/n\naccept-encoding: gzip", ""), &headers).await;
    assert_eq!(text, "200\nvary: accept-encoding\n{\"name\":\"n\"}");
    // Nor are raw ones, or any without the server's option.
    let plain = Library::new();
    let http_request = request("GET /v1/one/n?text=long%202000\naccept-encoding: gzip", "");
    assert_eq!(plain.response_text(http_request, &headers).await, format!("200\n{json}"));
    let raw = "a".repeat(2000);
    let http_request = request("PUT /v1/files/n\ncontent-type: text/plain\naccept-encoding: gzip", &raw);
    assert_eq!(library.response_text(http_request, &headers).await, format!("200\nn:{raw}"));
}

async fn collect(body: Body) -> Vec<u8> {
    use http_body::Body as _;
    let (mut body, mut all) = (std::pin::pin!(body), Vec::new());
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        all.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    all
}

#[tokio::test]
async fn limits_are_set_per_method() {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 30;
    options.max_encoding_message_size = 40;
    let library = Library::with(Web::new(), &options);
    let too_large = |size: usize| {
        let why = format!(
            "received message larger than max ({size} vs. 30): see the receiver's max_decoding_message_size"
        );
        format!("413\n{{\"code\":8,\"message\":\"{why}\",\"details\":[]}}")
    };
    let json = |len: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(len - 11));
    let check = |head, body: String, expected: String| {
        let library = &library;
        async move { assert_eq!(library.response_text(request(head, &body), &[]).await, expected) }
    };
    check("POST /v1/one", json(30), format!("200\n{}", json(30))).await;
    check("POST /v1/one", json(31), too_large(31)).await;
    let http_request = request_with("POST /v1/one\ncontent-encoding: gzip", compressed(&json(200)));
    assert!(library.response_text(http_request, &[]).await.starts_with("413\n"));
    // A message may be larger than its JSON; parsing stops at the fourth of five numbers.
    let why = "body: line 1, column 20: numbers: the message is longer than 30 bytes";
    let expected = format!(
        "413\n{{\"code\":8,\"message\":\"{why}: see the receiver's max_decoding_message_size\",\"details\":[]}}"
    );
    check("POST /v1/one", r#"{"numbers":[1,2,3,4,5]}"#.to_owned(), expected).await;
    // The call fails once that much has arrived.
    let (sender, body) = channel_body();
    sender.send(Ok(Bytes::from(json(20)))).unwrap();
    sender.send(Ok(Bytes::from(json(20)))).unwrap();
    assert_eq!(library.response_text(request_with("POST /v1/one", body), &[]).await, too_large(40));
    let (response, body) = library.exchange(request("GET /v1/one/n?text=long%2050", "")).await;
    assert_eq!(response.status(), 429, "{body}");
    // The message fits, but its JSON is too long.
    let (response, body) = library.exchange(request("GET /v1/one/n?text=long%2035", "")).await;
    assert_eq!(response.status(), 429, "{body}");
    assert!(body.contains("failed to write the response as JSON"), "{body}");
}

#[tokio::test]
async fn http_bodies_are_passed_through() {
    let head = "PUT /v1/files/n\ncontent-type: image/png";
    check(head, "\0\u{1}x", "200\ncontent-type: image/png\nn:\0\u{1}x").await;
    check("PUT /v1/files/n\ncontent-type: none", "x", "200\ncontent-type: application/octet-stream\nn:x")
        .await;
    check("PUT /v1/files/n", "", "200\ncontent-type: application/octet-stream\nn:").await;
    let http_request = request_with(&format!("{head}\ncontent-encoding: gzip"), compressed(&"y".repeat(100)));
    let text = Library::new().response_text(http_request, &["content-type"]).await;
    assert_eq!(text, format!("200\ncontent-type: image/png\nn:{}", "y".repeat(100)));
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_calls() {
    let library = Library::new();
    for header in ["grpc-timeout: 2S", "connect-timeout-ms: 2000"] {
        let started = tokio::time::Instant::now();
        let http_request = request(&format!("GET /v1/one/n?text=sleep\n{header}"), "");
        let (response, body) = library.exchange(http_request).await;
        assert_eq!((response.status().as_u16(), started.elapsed().as_secs()), (504, 2), "{body}");
        assert!(body.starts_with("{\"code\":4,"), "{body}");
    }
    assert_eq!(library.dropped(), 2);
    // A request may arrive too late, or use part of the time.
    let (sender, body) = channel_body();
    let (response, text) = library.exchange(request_with("POST /v1/one\ngrpc-timeout: 2S", body)).await;
    assert_eq!(response.status(), 504, "{text}");
    assert!(text.contains("the request was not complete"), "{text}");
    drop(sender);
    let (sender, body) = channel_body();
    let sending = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        sender.send(Ok(Bytes::from_static(b"{\"text\":\"timeout\"}"))).unwrap();
        drop(sender);
    };
    let http_request = request_with("POST /v1/one\ngrpc-timeout: 2S", body);
    let (text, ()) = tokio::join!(library.response_text(http_request, &[]), sending);
    assert_eq!(text, "200\n{\"text\":\"Some(1.5s)\"}");
}

#[tokio::test]
async fn dropped_response_cancels_the_call() {
    let library = Library::new();
    let mut response = Box::pin(library.service.call(request("GET /v1/one/n?text=sleep", "")));
    assert!(futures_poll(&mut response).await);
    assert_eq!(library.dropped(), 0);
    drop(response);
    assert_eq!(library.dropped(), 1);
}

/// Returns whether the future is pending.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending()))
        .await
}

#[tokio::test]
async fn truncated_request_is_not_dispatched() {
    let (sender, body) = channel_body();
    sender.send(Ok(Bytes::from_static(b"{"))).unwrap();
    sender.send(Err(thalweg_engine::Status::new(thalweg_engine::Code::Cancelled, "it broke"))).unwrap();
    let (response, text) = Library::new().exchange(request_with("POST /v1/one", body)).await;
    assert_eq!(response.status(), 499);
    assert_eq!(text, r#"{"code":1,"message":"it broke","details":[]}"#);
}

#[tokio::test]
async fn server_options_apply() {
    let print = PrintOptions::default().defaults(true).schema_names(true);
    let parse = ParseOptions::default().ignore_unknown(true);
    let web = Web::new().print(print).parse(parse).plus_is_space(false).parameters_max(2);
    let library = Library::with(web, &ServiceOptions::default());
    let expected = r#"{"name":"a","text":"b+c","count":0,"words":[],"long_number":"0","numbers":[]}"#;
    let (response, body) = library.exchange(request("GET /v1/one/a?text=b+c&nothing=1", "")).await;
    assert_eq!(response.status(), 200, "{body}");
    let sorted = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap().to_string();
    assert_eq!(sorted(&body), sorted(expected));
    assert!(body.contains("long_number"), "{body}");
    let (response, body) = library.exchange(request("GET /v1/one/a?x=1&y=2&z=3", "")).await;
    assert_eq!(response.status(), 400);
    assert!(body.contains("more than 2 parameters"), "{body}");
    let tracked = Library::with(Web::new().ignored_parameters(["utm_source"]), &ServiceOptions::default());
    assert_eq!(
        tracked.response_text(request("GET /v1/one/a?utm_source=b", ""), &[]).await,
        "200\n{\"name\":\"a\"}"
    );
    let (response, _) = library.exchange(request("POST /v1/one", r#"{"nothing":1}"#)).await;
    assert_eq!(response.status(), 200);
    let pretty = PrintOptions::default().pretty(true);
    let library = Library::with(Web::new().print(pretty), &ServiceOptions::default());
    let text = library.response_text(request("GET /v1/one/a", ""), &[]).await;
    assert_eq!(text, "200\n{\n  \"name\": \"a\"\n}");
    // In a stream, each message still has one line.
    let text = library.response_text(request("GET /v1/many/a?count=1", ""), &[]).await;
    assert_eq!(text, "200\n{\"count\":1,\"words\":[\"1\"]}\n");
}
