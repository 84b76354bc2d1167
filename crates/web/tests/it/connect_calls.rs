//! Connect calls from request to response.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use thalweg_engine::{Encoding, ServiceOptions};
use thalweg_web::Web;
use thalweg_web::body::Body;

use crate::echo::{
    FullResponse, descriptors, envelope, envelopes, in_time, order, pieces, ready_piece, request, send,
    serve, service,
};

const JSON: &str = "content-type: application/json\nconnect-protocol-version: 1";
const STREAM: &str = "content-type: application/connect+json";

async fn post(method: &str, headers: &str, body: impl Into<Body>) -> FullResponse {
    send(&service(), request(&format!("POST /echo.Echo/{method}\n{headers}"), body)).await
}

#[tokio::test]
async fn unary_call_supports_each_codec() {
    let response = post("One", JSON, Bytes::from_static(b" { \"text\" : \"a\", \"big\": \"7\" } ")).await;
    assert_eq!(response.head(), "200 content-type: application/json");
    assert_eq!(response.text(), r#"{"text":"a","big":"7"}"#);
    let response = post("One", "content-type: application/proto", order("a", 2)).await;
    assert_eq!(response.head(), "200 content-type: application/proto");
    assert_eq!(response.body, order("a", 2));
    let response = post("One", "content-type: application/msgpack", b"\x81\xa4text\xa1a".to_vec()).await;
    assert_eq!(response.head(), "200 content-type: application/msgpack");
    assert_eq!(response.body, b"\x81\xa4text\xa1a");
    let response =
        post("One", "content-type: application/json; charset=utf-8", Bytes::from_static(b"{}")).await;
    assert_eq!((response.head().as_str(), response.text()), ("200 content-type: application/json", "{}"));
}

#[tokio::test]
async fn body_may_arrive_in_pieces() {
    let body = pieces([Some(b"{\"text\"".to_vec()), Some(Vec::new()), Some(b":\"a\"}".to_vec()), None]);
    assert_eq!(post("One", JSON, body).await.text(), r#"{"text":"a"}"#);
}

#[tokio::test]
async fn metadata_and_trailers() {
    let body = Bytes::from_static(br#"{"text":"metadata "}"#);
    let response =
        post("One", &format!("{JSON}\nx-a: 1\nx-b-bin: YQ==\naccept-encoding: identity"), body).await;
    let expected =
        "200 content-type: application/json, trailer-x-a-t: 1, trailer-x-b-bin-t: YQ, x-a: 1, x-b-bin: YQ";
    assert_eq!(response.head(), expected);
}

#[tokio::test]
async fn failure_has_message_details_and_metadata() {
    let response = post("One", JSON, Bytes::from_static(br#"{"text":"fail"}"#)).await;
    assert_eq!(response.head(), "409 content-type: application/json, trailer-x-why: tired");
    let expected = "{\"code\":\"aborted\",\"message\":\"ganz: ü\",\
                    \"details\":[{\"type\":\"echo.Order\",\"value\":\"CgN3aHk\",\"debug\":{\"text\":\"why\"}}]}";
    assert_eq!(response.text(), expected);
    // A handler's panic does not affect others.
    let response = post("One", JSON, Bytes::from_static(br#"{"text":"panic"}"#)).await;
    assert_eq!(
        (response.status, response.text()),
        (500, r#"{"code":"internal","message":"the handler panicked"}"#)
    );
}

#[tokio::test]
async fn invalid_message_is_reported_with_position() {
    let check = async |method: &str, headers: &str, body: &'static [u8], expected: &str| {
        let response = post(method, headers, Bytes::from_static(body)).await;
        assert_eq!((response.status, response.text()), (400, expected));
    };
    let no_order = |why: &str| {
        format!(r#"{{"code":"invalid_argument","message":"the request is not a valid echo.Order: {why}"}}"#)
    };
    check(
        "One",
        JSON,
        b"{\n  \"inner\": {\"count\": 1.5}}",
        &no_order("line 2, column 22: inner.count: `1.5` is not a whole number"),
    )
    .await;
    check("One", JSON, b"{\"nothing\": 1}", &no_order("line 1, column 2: echo.Order has no field `nothing`"))
        .await;
    check(
        "One",
        "content-type: application/msgpack",
        b"\x81\xa5count\xa1a",
        &no_order("at byte 7: count: `a` is not a whole number"),
    )
    .await;
    let response = post("One", JSON, Bytes::from_static(br#"{"text":"broken"}"#)).await;
    assert_eq!(response.status, 500);
    assert!(
        response.text().contains("failed to write the response, echo.Order, as json"),
        "{}",
        response.text()
    );
}

#[tokio::test]
async fn get_requires_method_without_side_effects() {
    let get = async |target: &str| send(&service(), request(&format!("GET {target}"), Body::empty())).await;
    let response = get("/echo.Echo/Look?connect=v1&encoding=json&message=%7B%22text%22%3A%22a%22%7D").await;
    assert_eq!(response.head(), "200 content-type: application/json, vary: accept-encoding");
    assert_eq!(response.text(), r#"{"text":"a"}"#);
    let response = get("/echo.Echo/Look?encoding=proto&base64=1&message=CgFh").await;
    assert_eq!(response.body, order("a", 0));
    let response = get("/echo.Echo/One?connect=v1&encoding=json&message=%7B%7D").await;
    assert_eq!(response.status, 405);
    assert_eq!(response.headers["allow"], "POST");
    let response = get("/echo.Echo/Look").await;
    assert_eq!((response.status, response.headers["allow"].to_str().unwrap()), (405, "GET, POST"));
    let response = get("/echo.Echo/Look?connect=v2&encoding=json&message=%7B%7D").await;
    assert_eq!(response.status, 400);
}

/// A repeated header costs a client a few bytes, so its decompressed size has its own limit.
#[tokio::test]
async fn decompressed_get_message_is_limited() {
    let check = async |len: usize, expected: u16| {
        let mut compressed = Vec::new();
        Encoding::Gzip.compress(&order(&"a".repeat(len), 0), &mut compressed);
        let message = URL_SAFE_NO_PAD.encode(compressed);
        let target = format!("/echo.Echo/Look?encoding=proto&base64=1&compression=gzip&message={message}");
        let response = send(&service(), request(&format!("GET {target}"), Body::empty())).await;
        assert_eq!(response.status, expected, "{len}: {}", response.text());
    };
    check(60_000, 200).await;
    check(70_000, 429).await;
}

#[tokio::test]
async fn protocol_version_may_be_required() {
    let (service, _) = serve(
        Web::new().descriptors(descriptors()).requires_connect_version(true).transcoding(false),
        &ServiceOptions::default(),
    );
    let check = async |headers: &str, expected: u16| {
        let head = format!("POST /echo.Echo/One\ncontent-type: application/proto\n{headers}");
        let response = send(&service, request(&head, order("a", 0))).await;
        assert_eq!(response.status, expected, "{}", response.text());
    };
    check("connect-protocol-version: 1", 200).await;
    check("", 400).await;
    check("connect-protocol-version: 2", 400).await;
}

#[tokio::test]
async fn streams_use_envelopes() {
    let a_and_b =
        [envelope(0, br#"{"text":"a","count":1}"#), envelope(0, br#"{"text":"b","count":1}"#)].concat();
    let response = post("Fold", STREAM, a_and_b.clone()).await;
    assert_eq!(response.head(), "200 content-type: application/connect+json");
    assert_eq!(envelopes(&response.body), r#"0 {"text":"ab","count":2} | 2 {}"#);
    let response = post("Many", STREAM, envelope(0, br#"{"text":"a","count":2}"#)).await;
    assert_eq!(envelopes(&response.body), r#"0 {"text":"a","count":2} | 0 {"text":"a","count":1} | 2 {}"#);
    let response = post("Chat", &format!("{STREAM}\nx-a: 1"), a_and_b).await;
    assert_eq!(response.head(), "200 content-type: application/connect+json, x-a: 1");
    let end = r#"2 {"metadata":{"x-a":["1"]}}"#;
    assert_eq!(
        envelopes(&response.body),
        format!("0 {{\"text\":\"a\",\"count\":1}} | 0 {{\"text\":\"b\",\"count\":1}} | {end}")
    );
    let proto = post("Chat", "content-type: application/connect+proto", envelope(0, &order("a", 1))).await;
    assert_eq!(proto.body, [envelope(0, &order("a", 1)), envelope(2, b"{}")].concat());
}

#[tokio::test]
async fn streams_of_messagepack() {
    let headers = "content-type: application/connect+msgpack";
    let message = |text: &str, count: u8| {
        [&b"\x82\xa4text"[..], &[0xa0 | text.len() as u8], text.as_bytes(), b"\xa5count", &[count]].concat()
    };
    let check = async |method: &str, requests: &[Vec<u8>], responses: &[Vec<u8>], end: &str| {
        let all = |messages: &[Vec<u8>]| messages.iter().flat_map(|message| envelope(0, message)).collect();
        let body: Vec<u8> = all(requests);
        let response = post(method, headers, body).await;
        assert_eq!(response.head(), format!("200 {headers}"), "{method}");
        let responses: Vec<u8> = all(responses);
        assert_eq!(response.body, [responses, envelope(2, end.as_bytes())].concat(), "{method}");
    };
    let a_and_b = [message("a", 1), message("b", 1)];
    check("Fold", &a_and_b, &[message("ab", 2)], "{}").await;
    check("Many", &[message("a", 2)], &[message("a", 2), message("a", 1)], "{}").await;
    check("Chat", &a_and_b, &a_and_b, "{}").await;
    // Errors remain JSON.
    let why = "the request is not a valid echo.Order: at byte 7: count: `a` is not a whole number";
    let end = format!(r#"{{"error":{{"code":"invalid_argument","message":"{why}"}}}}"#);
    let broken = b"\x81\xa5count\xa1a".to_vec();
    check("Chat", &[message("a", 1), broken], &[message("a", 1)], &end).await;
}

#[tokio::test]
async fn stream_failure_is_in_the_end_envelope() {
    let error = "{\"error\":{\"code\":\"aborted\",\"message\":\"ganz: ü\",\"details\":[{\"type\":\"echo.Order\",\
                 \"value\":\"CgN3aHk\",\"debug\":{\"text\":\"why\"}}]},\"metadata\":{\"x-why\":[\"tired\"]}}";
    let check = async |method: &str, body: Vec<u8>, expected: &str| {
        let response = post(method, STREAM, body).await;
        assert_eq!((response.status, envelopes(&response.body).as_str()), (200, expected), "{method}");
    };
    check("Fold", envelope(0, br#"{"text":"fail"}"#), &format!("2 {error}")).await;
    check(
        "Many",
        envelope(0, br#"{"text":"late","count":1}"#),
        &format!(r#"0 {{"text":"late","count":1}} | 2 {error}"#),
    )
    .await;
    check("Chat", envelope(0, br#"{"text":"fail"}"#), &format!("2 {error}")).await;
    let detail = "line 1, column 10: text: expected a string, found a number";
    let detail = format!(
        r#"{{"error":{{"code":"invalid_argument","message":"the request is not a valid echo.Order: {detail}"}}}}"#
    );
    let bad = [envelope(0, br#"{"text":"a"}"#), envelope(0, br#"{"text": 1}"#)].concat();
    check("Chat", bad, &format!(r#"0 {{"text":"a"}} | 2 {detail}"#)).await;
    let cut = r#"{"error":{"code":"internal","message":"the stream ended inside a message, 3 bytes after its start"}}"#;
    check("Chat", vec![0, 0, 0], &format!("2 {cut}")).await;
    // An unprintable message ends the call and its handler.
    let response = post("Chat", STREAM, envelope(0, br#"{"text":"broken"}"#)).await;
    assert!(
        envelopes(&response.body).starts_with(
            r#"2 {"error":{"code":"internal","message":"failed to write the response, echo.Order"#
        )
    );
}

#[tokio::test]
async fn responses_arrive_before_requests_end() {
    let (service, counters) = serve(Web::new().descriptors(descriptors()), &ServiceOptions::default());
    let body = pieces([Some(envelope(0, br#"{"text":"a"}"#)), Some(envelope(0, br#"{"text":"b"}"#))]);
    let response = in_time(service.call(request(&format!("POST /echo.Echo/Chat\n{STREAM}"), body))).await;
    let mut body = response.into_body();
    assert_eq!(envelopes(&ready_piece(&mut body).unwrap()), r#"0 {"text":"a"} | 0 {"text":"b"}"#);
    assert!(ready_piece(&mut body).is_none());
    assert_eq!(counters.dropped.load(Ordering::SeqCst), 0);
    drop(body);
    assert_eq!(counters.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn dropped_response_cancels_the_handler() {
    let (service, counters) = serve(Web::new().descriptors(descriptors()), &ServiceOptions::default());
    let body = Bytes::from_static(br#"{"text":"sleep "}"#);
    let mut response = Box::pin(service.call(request(&format!("POST /echo.Echo/One\n{JSON}"), body)));
    tokio::time::timeout(Duration::from_millis(1), &mut response).await.unwrap_err();
    let count = || (counters.started.load(Ordering::SeqCst), counters.dropped.load(Ordering::SeqCst));
    assert_eq!(count(), (1, 0));
    drop(response);
    assert_eq!(count(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn deadlines() {
    let late = async |method: &str, headers: &str, body: Body| {
        let response = post(method, &format!("{headers}\nconnect-timeout-ms: 2000"), body).await;
        (response.status, String::from_utf8_lossy(&response.body).into_owned())
    };
    let (status, body) = late("One", JSON, Bytes::from_static(br#"{"text":"sleep "}"#).into()).await;
    assert_eq!((status, body.contains("deadline_exceeded")), (504, true), "{body}");
    // The request never ends.
    let (status, body) = late("One", JSON, pieces([Some(b"{".to_vec())])).await;
    assert_eq!((status, body.contains("the request was not complete")), (504, true), "{body}");
    let (status, body) = late("Chat", STREAM, pieces([])).await;
    assert_eq!((status, body.contains("deadline_exceeded")), (200, true), "{body}");
    let (_, body) = late("One", JSON, Bytes::from_static(br#"{"text":"timeout "}"#).into()).await;
    assert!(body.contains("Some(1900)") || body.contains("Some(2000)"), "{body}");
    let response = post("One", &format!("{JSON}\nconnect-timeout-ms: soon"), Bytes::from_static(b"{}")).await;
    assert_eq!(response.status, 400);
}

#[tokio::test]
async fn message_sizes_are_limited() {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 40;
    options.max_encoding_message_size = 60;
    let (service, counters) = serve(Web::new().descriptors(descriptors()), &options);
    let check = async |method: &str, headers: &str, body: Body, expected: &str| {
        let response = send(&service, request(&format!("POST /echo.Echo/{method}\n{headers}"), body)).await;
        assert!(String::from_utf8_lossy(&response.body).contains(expected), "{response:?}");
    };
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(40));
    let too_large = "received message larger than max (51 vs. 40)";
    check("One", JSON, Bytes::from(long.clone()).into(), too_large).await;
    check("One", JSON, pieces([Some(long.clone().into_bytes())]), too_large).await;
    check("Chat", STREAM, Bytes::from(envelope(0, long.as_bytes())).into(), too_large).await;
    // The prefix suffices to detect it.
    check("Chat", STREAM, pieces([Some(vec![0, 0, 0, 0, 51])]), too_large).await;
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(format!("{{{}}}", " ".repeat(39)).as_bytes()).unwrap();
    let bomb = Bytes::from(bomb.finish().unwrap());
    check("One", &format!("{JSON}\ncontent-encoding: gzip"), bomb.into(), "resource_exhausted").await;
    assert_eq!(counters.started.load(Ordering::SeqCst), 2);
    check("One", JSON, Bytes::from_static(br#"{"text":"size 90"}"#).into(), "resource_exhausted").await;
    // It would fit in wire format.
    check("One", JSON, Bytes::from_static(br#"{"text":"size 50"}"#).into(), "the output exceeds 60 bytes")
        .await;
}

#[tokio::test]
async fn compression_works_in_both_directions() {
    let mut options = ServiceOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    options.compression_threshold = 20;
    let (service, _) = serve(Web::new().descriptors(descriptors()), &options);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(br#"{"text":"size 100"}"#).unwrap();
    let gzip = gzip.finish().unwrap();
    let head = format!("POST /echo.Echo/One\n{JSON}\ncontent-encoding: gzip\naccept-encoding: br, gzip");
    let response = send(&service, request(&head, gzip.clone())).await;
    assert_eq!(response.head(), "200 content-encoding: gzip, content-type: application/json");
    assert!(response.body.len() < 60);
    let head = format!("POST /echo.Echo/One\n{JSON}\naccept-encoding: br");
    let response = send(&service, request(&head, Bytes::from_static(br#"{"text":"size 100"}"#))).await;
    assert_eq!(response.head(), "200 content-type: application/json");
    let head = "POST /echo.Echo/Fold\ncontent-type: application/connect+json\n\
                connect-content-encoding: gzip\nconnect-accept-encoding: gzip";
    let response = send(&service, request(head, envelope(1, &gzip))).await;
    let head = "200 connect-content-encoding: gzip, content-type: application/connect+json";
    assert_eq!((response.head().as_str(), response.body[0]), (head, 1));
    // Responses are compressed only if the server is configured to do so.
    let response = post(
        "One",
        &format!("{JSON}\naccept-encoding: gzip"),
        Bytes::from_static(br#"{"text":"size 2000"}"#),
    )
    .await;
    assert_eq!(response.head(), "200 content-type: application/json");
    let head = format!("{JSON}\ncontent-encoding: rot13");
    assert_eq!(post("One", &head, Bytes::new()).await.status, 501);
}

#[tokio::test]
async fn without_descriptors_messages_are_wire_bytes() {
    let (service, _) = serve(Web::new(), &ServiceOptions::default());
    let head = "POST /echo.Echo/One\ncontent-type: application/proto";
    assert_eq!(send(&service, request(head, order("a", 0))).await.body, order("a", 0));
    let response =
        send(&service, request(&format!("POST /echo.Echo/One\n{JSON}"), Bytes::from_static(b"{}"))).await;
    assert_eq!(response.status, 501);
    assert!(response.text().contains("needs the descriptors of its service"), "{}", response.text());
}
