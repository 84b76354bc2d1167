//! Transcoded JSON, served: streaming methods.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use thalweg_engine::{BodyDecoder, BodyEncoder, Code, Encoding, ServiceOptions, Status};
use thalweg_web::Web;
use thalweg_web::body::Body;

use crate::library::{FAILURE, Library, channel_body, next_frame, request, request_with};
use crate::requests::NO_JSON;

const LINES: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";
const ARRAY: &str = "application/json";

/// Returns the message with this number.
fn message(number: usize) -> String {
    format!("{{\"count\":{number},\"words\":[\"{number}\"]}}")
}

async fn check(head: &str, body: &str, status: u16, content_type: &str, expected: &str) {
    let (response, text) = Library::new().exchange(request(head, body)).await;
    let found = response.headers().get("content-type").map_or("", |value| value.to_str().unwrap());
    assert_eq!((response.status().as_u16(), found, &*text), (status, content_type, expected), "{head}");
}

#[tokio::test]
async fn response_framing_follows_accept() {
    let (one, two) = (message(1), message(2));
    let lines = format!("{one}\n{two}\n");
    for accept in ["x-a: b", "accept: */*", "accept: application/x-ndjson", "accept: text/html, */*;q=0.8"] {
        check(&format!("GET /v1/many/n?count=2\n{accept}"), "", 200, LINES, &lines).await;
    }
    let events = format!("data: {one}\n\ndata: {two}\n\nevent: end\ndata: {{}}\n\n");
    check("GET /v1/many/n?count=2\naccept: text/event-stream", "", 200, EVENTS, &events).await;
    let array = format!("[{one},\n{two}]");
    check("GET /v1/many/n?count=2\naccept: application/json", "", 200, ARRAY, &array).await;
    check("POST /v1/many", "{\"count\": 2}", 200, LINES, &lines).await;
    check("POST /v1/many\naccept: application/json", "{}", 200, ARRAY, "[]").await;
    check("GET /v1/many/n", "", 200, LINES, "").await;
    check("GET /v1/many/n\naccept: text/event-stream", "", 200, EVENTS, "event: end\ndata: {}\n\n").await;
    check("GET /v1/many-words?count=2", "", 200, LINES, "[\"1\"]\n[\"2\"]\n").await;
}

#[tokio::test]
async fn events_are_not_buffered_by_proxies() {
    let library = Library::new();
    let check = async |accept: &str, expected: &str| {
        let http_request = request(&format!("GET /v1/many/n\naccept: {accept}"), "");
        let text = library.response_text(http_request, &["cache-control", "x-accel-buffering"]).await;
        assert!(text.starts_with(expected), "{accept}: {text}");
    };
    check(EVENTS, "200\ncache-control: no-cache\nx-accel-buffering: no\nevent: end").await;
    check(LINES, "200\n").await;
    check(ARRAY, "200\n[]").await;
}

#[tokio::test]
async fn metadata_is_in_headers_and_trailers() {
    let library = Library::new();
    for (te, trailers) in [("x-a: b", ""), ("te: trailers", "<grpc-trailer-x-last: 2>")] {
        let http_request = request(&format!("GET /v1/many/n?count=1\n{te}"), "");
        let text = library.response_text(http_request, &["x-first", "vary", "content-encoding"]).await;
        assert_eq!(text, format!("200\nx-first: 2\nvary: accept\n{}\n{trailers}", message(1)));
        let http_request = request(&format!("GET /v1/files/n?count=1\n{te}"), "");
        assert_eq!(
            library.response_text(http_request, &["x-first"]).await,
            format!("200\nx-first: 2\n1;{trailers}")
        );
    }
    let text =
        library.response_text(request("POST /v1/fold/n", "{}"), &["x-first", "grpc-trailer-x-last"]).await;
    assert!(text.starts_with("200\nx-first: 2\ngrpc-trailer-x-last: 2\n"), "{text}");
}

#[tokio::test]
async fn failure_before_first_message_has_http_status() {
    for accept in ["x-a: b", "accept: text/event-stream", "accept: application/json"] {
        // Without headers, and after them.
        for text in ["fail", "late"] {
            check(&format!("GET /v1/many/n?text={text}\n{accept}"), "", 404, ARRAY, FAILURE).await;
        }
    }
    let http_request = request("GET /v1/many/n?text=late", "");
    assert!(
        Library::new()
            .response_text(http_request, &["retry-after"])
            .await
            .starts_with("404\nretry-after: 7\n")
    );
    let http_request = request("GET /v1/many/n?text=broken", "");
    let text = Library::new().response_text(http_request, &[]).await;
    assert!(
        text.starts_with("500\n{\"code\":13,\"message\":\"failed to write the response as JSON: "),
        "{text}"
    );
}

#[tokio::test]
async fn failure_after_first_message_ends_the_body() {
    let one = message(1);
    let lines = format!("{one}\n{{\"error\":{FAILURE}}}\n");
    check("GET /v1/many/n?count=1&text=late", "", 200, LINES, &lines).await;
    let events = format!("data: {one}\n\nevent: error\ndata: {FAILURE}\n\n");
    check("GET /v1/many/n?count=1&text=late\naccept: text/event-stream", "", 200, EVENTS, &events).await;
    let array = format!("[{one},\n{{\"error\":{FAILURE}}}]");
    check("GET /v1/many/n?count=1&text=late\naccept: application/json", "", 200, ARRAY, &array).await;
    let (_, text) = Library::new().exchange(request("GET /v1/many/n?count=1&text=broken", "")).await;
    let expected =
        format!("{one}\n{{\"error\":{{\"code\":13,\"message\":\"failed to write the response as JSON: ");
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn response_headers_are_sent_without_first_message() {
    let library = Library::new();
    let started = tokio::time::Instant::now();
    let response = library.service.call(request("GET /v1/many/n?count=2&text=slow%20late", "")).await;
    assert_eq!((response.status().as_u16(), started.elapsed()), (200, Duration::from_secs(1)));
    let mut body = response.into_body();
    for (second, expected) in [(2, message(1)), (4, message(2)), (4, format!("{{\"error\":{FAILURE}}}"))] {
        assert_eq!(next_frame(&mut body).await.unwrap(), format!("{expected}\n"));
        assert_eq!(started.elapsed().as_secs(), second);
    }
    assert_eq!(next_frame(&mut body).await, None);
    // Without headers, the response waits for a failure.
    let http_request = request("GET /v1/many/n?text=sleep\ngrpc-timeout: 9S", "");
    let (response, text) = library.exchange(http_request).await;
    assert_eq!(response.status(), 504, "{text}");
    // In an array it is then the first element.
    let http_request = request("GET /v1/many/n?text=hang\ngrpc-timeout: 9S\naccept: application/json", "");
    let (response, text) = library.exchange(http_request).await;
    assert_eq!(response.status(), 200);
    assert!(text.starts_with("[{\"error\":{\"code\":4,") && text.ends_with("}]"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_streams() {
    let library = Library::new();
    let http_request = request("GET /v1/many/n?count=1&text=hang\nconnect-timeout-ms: 3000", "");
    let (_, text) = library.exchange(http_request).await;
    assert!(text.starts_with(&format!("{}\n{{\"error\":{{\"code\":4,", message(1))), "{text}");
    eventually(|| library.dropped() == 1).await;
    let (_sender, body) = channel_body();
    let (response, text) = library.exchange(request_with("POST /v1/fold/n\ngrpc-timeout: 3S", body)).await;
    assert_eq!(response.status(), 504, "{text}");
}

async fn eventually(is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it did not come");
}

#[tokio::test]
async fn dropped_body_cancels_the_call() {
    let library = Library::new();
    for head in ["GET /v1/many/n?count=1&text=hang", "GET /v1/files/n?count=1&text=hang"] {
        let before = library.dropped();
        let mut body = library.service.call(request(head, "")).await.into_body();
        assert!(next_frame(&mut body).await.is_some());
        tokio::task::yield_now().await;
        assert_eq!(library.dropped(), before);
        drop(body);
        eventually(|| library.dropped() == before + 1).await;
    }
    let (sender, body) = channel_body();
    sender.send(Ok(Bytes::from_static(b"{}"))).unwrap();
    let response = library.service.call(request_with("POST /v1/chat", body)).await;
    drop(response);
    eventually(|| library.dropped() == 3).await;
    // The request is no longer read.
    assert!(sender.is_closed());
}

#[tokio::test]
async fn requests_are_json_lines_or_arrays() {
    let fold = |words: &[&str]| {
        let words: Vec<serde_json::Value> = words.iter().map(|word| (*word).into()).collect();
        serde_json::json!({ "words": words }).to_string()
    };
    let two = fold(&[r#"{"count":1,"name":"n"}"#, r#"{"count":2}"#]);
    for (content_type, body) in [
        ("application/json", "{\"count\":1}{\"count\":2}"),
        ("application/json", "[{\"count\":1},{\"count\":2}]"),
        ("application/x-ndjson", "{\"count\":1}\n{\"count\":2}\n"),
        ("application/jsonl; charset=utf-8", "\r\n{\"count\":1}\r\n\r\n{\"count\":2}"),
    ] {
        let head = format!("POST /v1/fold/n\ncontent-type: {content_type}");
        check(&head, body, 200, ARRAY, &two).await;
    }
    check("POST /v1/fold/n", "", 200, ARRAY, "{}").await;
    check("POST /v1/fold/n", "[]", 200, ARRAY, "{}").await;
    check(
        "PUT /v1/fold?count=5",
        "\"a\" \"b\"",
        200,
        ARRAY,
        &fold(&[r#"{"count":5,"text":"a"}"#, r#"{"text":"b"}"#]),
    )
    .await;
    // Without a body the request is in path and query.
    check("GET /v1/fold?count=5", "", 200, ARRAY, &fold(&[r#"{"count":5}"#])).await;
}

#[tokio::test]
async fn streamed_message_may_be_a_field() {
    let fold = |words: &[&str]| {
        let words: Vec<serde_json::Value> = words.iter().map(|word| (*word).into()).collect();
        serde_json::json!({ "words": words }).to_string()
    };
    // Several values, or a value and a path with parts of the same field, which only the first message gets.
    for (target, body, messages) in [
        ("/v1/fold", r#"["a","b","c"]"#, &[r#"{"text":"a"}"#, r#"{"text":"b"}"#, r#"{"text":"c"}"#][..]),
        (
            "/v1/fold-words",
            r#"[["a","b"],["c"],[]]"#,
            &[r#"{"words":["a","b"]}"#, r#"{"words":["c"]}"#, "{}"],
        ),
        (
            "/v1/fold/n?text=t",
            r#"[{"text":"a"},{"text":"b"}]"#,
            &[r#"{"inner":{"name":"n","text":"a"},"text":"t"}"#, r#"{"inner":{"text":"b"}}"#],
        ),
    ] {
        check(&format!("PUT {target}"), body, 200, ARRAY, &fold(messages)).await;
    }
}

/// A stream comes back unchanged: no message or many, including empty ones.
#[tokio::test]
async fn stream_may_have_any_length() {
    let library = Library::new();
    for len in [0, 1, 2, 3, 50, 1000, 5000] {
        let message = |number: usize| {
            if number % 3 == 1 {
                return "{}".to_owned();
            }
            let text = "abcdefgh12345".repeat(if number == 2 { 5042 } else { number % 7 + 1 });
            format!(r#"{{"inner":{{"inner":{{"text":"{text}"}}}},"name":"{number}"}}"#)
        };
        let messages: Vec<String> = (0..len).map(message).collect();
        let (lines, array) = (messages.join("\n"), format!("[{}]", messages.join(", ")));
        let events: Vec<String> = messages.iter().map(|message| format!("data: {message}\n\n")).collect();
        let ends_with_a_line = if len == 0 { "" } else { "\n" };
        for (framing, expected) in [
            (LINES, format!("{lines}{ends_with_a_line}")),
            (EVENTS, format!("{}event: end\ndata: {{}}\n\n", events.concat())),
            (ARRAY, format!("[{}]", messages.join(",\n"))),
        ] {
            for body in [&lines, &array] {
                let http_request = request(&format!("POST /v1/chat\naccept: {framing}"), body);
                let (response, text) = library.exchange(http_request).await;
                assert_eq!(response.headers()["content-type"], framing);
                // `assert_eq` would print everything.
                assert!(text == expected, "{len} messages, {framing}");
            }
        }
    }
}

#[tokio::test]
async fn stream_that_is_not_json_is_rejected() {
    for body in NO_JSON {
        let (response, text) = Library::new().exchange(request("POST /v1/fold/n", body)).await;
        assert_eq!(response.status(), 400, "{body}: {text}");
    }
}

/// Returns a compressed body.
fn compressed(encoding: Encoding, text: &str) -> Vec<u8> {
    let mut compressed = Vec::new();
    encoding.compress(text.as_bytes(), &mut compressed);
    compressed
}

/// Returns all encodings except identity.
fn compressing() -> impl Iterator<Item = Encoding> {
    Encoding::ALL.iter().copied().filter(|encoding| encoding.compresses())
}

#[tokio::test]
async fn request_stream_may_be_compressed() {
    let lines = "{\"count\":1}\n{\"count\":2}\n";
    for encoding in compressing() {
        let library = Library::new();
        let head = format!("POST /v1/chat\ncontent-encoding: {}", encoding.name());
        // In pieces of any size.
        for piece_len in [1, 5, 1000] {
            let (to, body) = channel_body();
            for piece in compressed(encoding, lines).chunks(piece_len) {
                to.send(Ok(Bytes::copy_from_slice(piece))).unwrap();
            }
            drop(to);
            let (response, text) = library.exchange(request_with(&head, body)).await;
            assert_eq!((response.status().as_u16(), &*text), (200, lines), "{encoding:?}");
        }
        // Messages are passed on as they arrive.
        let (to, body) = channel_body();
        let mut encoder = BodyEncoder::new(encoding);
        to.send(Ok(encoder.push(b"{\"count\":1}\n".to_vec()).into())).unwrap();
        let response = library.service.call(request_with(&head, body)).await;
        assert_eq!(next_frame(&mut response.into_body()).await.unwrap(), "{\"count\":1}\n", "{encoding:?}");
        // Invalid and truncated bodies.
        let cut = compressed(encoding, lines);
        for body in [b"nonsense, nonsense".to_vec(), cut[..cut.len() - 1].to_vec()] {
            let (response, text) = library.exchange(request_with(&head, Body::full(body))).await;
            let is_reported = response.status() == 400 || text.contains("\"error\":{\"code\":3,");
            assert!(is_reported && text.contains("corrupt"), "{encoding:?}: {text}");
        }
    }
    let text =
        Library::new().response_text(request("POST /v1/chat\ncontent-encoding: rot13", "{}"), &[]).await;
    assert!(text.starts_with("415"), "{text}");
}

/// A body that becomes much larger than the message limit, with or without a message in it.
#[tokio::test]
async fn request_stream_is_decompressed_one_message_at_a_time() {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 100_000;
    let library = Library::with(Web::new(), &options);
    for encoding in compressing() {
        let head = format!("POST /v1/fold/n\ncontent-encoding: {}", encoding.name());
        for text in [" ".repeat(1 << 20), format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20))] {
            let body = Body::full(compressed(encoding, &text));
            let text = library.response_text(request_with(&head, body), &[]).await;
            assert!(text.starts_with("413") && text.contains("larger than max"), "{encoding:?}: {text}");
        }
        // Each of them may be as large as a message.
        let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(90_000));
        let body = Body::full(compressed(encoding, &line.repeat(5)));
        let text = library.response_text(request_with(&head, body), &[]).await;
        assert!(text.starts_with("200"), "{encoding:?}");
    }
}

#[tokio::test]
async fn response_stream_is_compressed_if_accepted() {
    for encoding in compressing() {
        let mut options = ServiceOptions::default();
        options.send_compressed = Some(encoding);
        let library = Library::with(Web::new(), &options);
        let accept = format!("accept-encoding: br;q=0.3, {}", encoding.name());
        for (framing, suffix) in
            [("application/x-ndjson", ""), ("text/event-stream", "event: end\ndata: {}\n\n")]
        {
            let http_request = request(&format!("GET /v1/many/n?count=2\naccept: {framing}\n{accept}"), "");
            let (head, mut body) = library.service.call(http_request).await.into_parts();
            assert_eq!(head.headers["content-encoding"], encoding.name());
            let vary: Vec<_> = head.headers.get_all("vary").iter().collect();
            assert_eq!(vary, ["accept", "accept-encoding"]);
            let mut decoder = BodyDecoder::new(encoding);
            let mut text = String::new();
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                decoder.push(frame.unwrap().into_data().unwrap());
                while let Some(piece) = decoder.take(1000).unwrap() {
                    text += str::from_utf8(&piece).unwrap();
                }
            }
            decoder.finish().unwrap();
            assert!(
                text.contains(&message(1)) && text.contains(&message(2)) && text.ends_with(suffix),
                "{text}"
            );
        }
        // Each message is readable on arrival, though the end never comes.
        let http_request = request(&format!("GET /v1/many/n?count=1&text=hang\n{accept}"), "");
        let mut body = library.service.call(http_request).await.into_body();
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.unwrap();
        let mut decoder = BodyDecoder::new(encoding);
        decoder.push(frame.unwrap().into_data().unwrap());
        let line = decoder.take(1000).unwrap().unwrap();
        assert_eq!(line, format!("{}\n", message(1)), "{encoding:?}");
        // Clients that do not ask for compression get none.
        let text =
            library.response_text(request("GET /v1/many/n?count=1", ""), &["content-encoding", "vary"]).await;
        assert_eq!(text, format!("200\nvary: accept\nvary: accept-encoding\n{}\n", message(1)));
    }
}

#[tokio::test]
async fn invalid_stream_requests_are_reported() {
    let failed = |code: u8, why: &str| format!("{{\"code\":{code},\"message\":\"{why}\",\"details\":[]}}");
    let why = "message 2: body: line 1, column 2: library.Order has no field `nothing`";
    check("POST /v1/fold/n", "{}\n{\"nothing\":1}\n{}", 400, ARRAY, &failed(3, why)).await;
    check("POST /v1/fold/n", "[{}", 400, ARRAY, &failed(3, "body: unterminated array")).await;
    let why = "message 1: body: line 1, column 1: expected an object, found an array";
    check("POST /v1/fold/n\ncontent-type: application/x-ndjson", "[{}]", 400, ARRAY, &failed(3, why)).await;
    check(
        "POST /v1/fold/%ff",
        "{}",
        400,
        ARRAY,
        &failed(3, "message 1: path: name: percent-decoded text is not UTF-8"),
    )
    .await;
    let why = "content-type \\\"text/plain\\\" is not supported; accepted is application/json, application/x-ndjson";
    check("POST /v1/fold/n\ncontent-type: text/plain", "{}", 415, ARRAY, &failed(12, why)).await;
    // After a message, the failure is part of the response.
    let why = failed(3, "message 2: body: line 1, column 1: expected an object, found a number");
    check("POST /v1/chat", "{\"count\":1} 1", 200, LINES, &format!("{{\"count\":1}}\n{{\"error\":{why}}}\n"))
        .await;
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 20;
    let library = Library::with(Web::new(), &options);
    let body = format!("{{}}{{\"text\":\"{}\"}}", "x".repeat(20));
    let text = library.response_text(request("POST /v1/fold/n", &body), &[]).await;
    let why = "received message larger than max (31 vs. 20): see the receiver's max_decoding_message_size";
    assert_eq!(text, format!("413\n{}", failed(8, why)));
    // A handler's own error replaces that of the request.
    check("POST /v1/fold/n", "{\"text\":\"fail\"} 1", 404, ARRAY, FAILURE).await;
}

#[tokio::test]
async fn bidirectional_messages_are_interleaved() {
    let library = Library::new();
    let (sender, body) = channel_body();
    let send = |text: &'static str| sender.send(Ok(Bytes::from_static(text.as_bytes()))).unwrap();
    send("{\"count\":1}");
    let response = library.service.call(request_with("POST /v1/chat", body)).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    assert_eq!(next_frame(&mut body).await.unwrap(), "{\"count\":1}\n");
    for _ in 0..3 {
        // In two pieces.
        send("\n{\"count\":");
        tokio::task::yield_now().await;
        send("2}\n");
        assert_eq!(next_frame(&mut body).await.unwrap(), "{\"count\":2}\n");
    }
    send("{\"text\":\"fail\"}");
    assert_eq!(next_frame(&mut body).await.unwrap(), format!("{{\"error\":{FAILURE}}}\n"));
    assert_eq!(next_frame(&mut body).await, None);
    drop(sender);
    // A request that is cut ends the call.
    let (sender, body) = channel_body();
    sender.send(Ok(Bytes::from_static(b"{\"count\":1}"))).unwrap();
    let mut body = library.service.call(request_with("POST /v1/chat", body)).await.into_body();
    assert_eq!(next_frame(&mut body).await.unwrap(), "{\"count\":1}\n");
    sender.send(Err(Status::new(Code::Cancelled, "it broke"))).unwrap();
    let expected = "{\"error\":{\"code\":1,\"message\":\"it broke\",\"details\":[]}}\n";
    assert_eq!(next_frame(&mut body).await.unwrap(), expected);
}

#[tokio::test]
async fn each_message_is_sent_immediately() {
    let one = "{\"count\":1}";
    for (framing, first, later, end) in [
        (LINES, format!("{one}\n"), format!("{one}\n"), None),
        (EVENTS, format!("data: {one}\n\n"), format!("data: {one}\n\n"), Some("event: end\ndata: {}\n\n")),
        (ARRAY, format!("[{one}"), format!(",\n{one}"), Some("]")),
    ] {
        let (sender, body) = channel_body();
        let send = |text: &'static str| sender.send(Ok(Bytes::from_static(text.as_bytes()))).unwrap();
        send("{\"count\":1}{\"cou");
        let http_request = request_with(&format!("POST /v1/chat\naccept: {framing}"), body);
        let mut body = Library::new().service.call(http_request).await.into_body();
        assert_eq!(next_frame(&mut body).await.unwrap(), first);
        for rest in ["nt\":1}{\"cou", "nt\":1}"] {
            send(rest);
            assert_eq!(next_frame(&mut body).await.unwrap(), later, "{framing}");
        }
        drop(sender);
        assert_eq!(next_frame(&mut body).await.as_deref(), end, "{framing}");
    }
}

#[tokio::test]
async fn raw_bodies_are_streamed_in_pieces() {
    check("GET /v1/files/n?count=3", "", 200, "text/x-count", "1;2;3;").await;
    check("GET /v1/files/n?count=3\naccept: text/event-stream", "", 200, "text/x-count", "1;2;3;").await;
    check("GET /v1/files/n", "", 200, "", "").await;
    check("GET /v1/files/n?text=late", "", 404, ARRAY, FAILURE).await;
    // A truncated body must not look complete.
    check("GET /v1/files/n?count=2&text=late", "", 200, "text/x-count", "1;2;<cut off: no such book>").await;

    let library = Library::new();
    let (sender, body) = channel_body();
    for piece in ["ab", "", "c"] {
        sender.send(Ok(Bytes::from(piece))).unwrap();
    }
    drop(sender);
    let file = |name: &str, data: &str| {
        let name = if name.is_empty() { String::new() } else { format!("\"name\":\"{name}\",") };
        format!("{{{name}\"raw\":{{\"contentType\":\"image/png\",\"data\":\"{data}\"}}}}")
    };
    let words = |words: &[String]| format!("200\n{}", serde_json::json!({ "words": words }));
    let head = "POST /v1/files/n\ncontent-type: image/png";
    let text = library.response_text(request_with(head, body), &[]).await;
    assert_eq!(text, words(&[file("n", "YWI="), file("", "Yw==")]));
    // An empty file has its name.
    let text = library.response_text(request(head, ""), &[]).await;
    assert_eq!(text, words(&["{\"name\":\"n\",\"raw\":{\"contentType\":\"image/png\"}}".to_owned()]));
    // A piece that is larger than a message becomes several.
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 60;
    let library = Library::with(Web::new(), &options);
    let (response, text) = library.exchange(request(head, &"x".repeat(50))).await;
    assert_eq!(response.status(), 200, "{text}");
    let text: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text["words"].as_array().unwrap().len(), 3, "{text}");
}

#[tokio::test]
async fn stream_without_annotation_is_routed_by_its_path() {
    check("POST /library.Library/PlainChat", "[{\"count\":1},{}]", 200, LINES, "{\"count\":1}\n{}\n").await;
    let head =
        "POST /library.Library/PlainChat\ncontent-type: application/x-ndjson\naccept: application/json";
    check(head, "{\"count\":1}\n{}\n", 200, ARRAY, "[{\"count\":1},\n{}]").await;
}

#[tokio::test]
async fn ready_responses_are_sent_together() {
    let library = Library::new();
    let http_request = request("POST /v1/chat", &"{\"count\":1}\n".repeat(10_000));
    let mut body = library.service.call(http_request).await.into_body();
    let (mut frames, mut len) = (0, 0);
    while let Some(frame) = next_frame(&mut body).await {
        frames += 1;
        len += frame.len();
    }
    assert_eq!(len, 120_000);
    assert!(frames >= 3, "{frames}");
}
