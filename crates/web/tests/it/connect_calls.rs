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
    Answered, ask, descriptors, envelope, envelopes, order, piece_now, pieces, request, serve, service, soon,
};

const JSON: &str = "content-type: application/json\nconnect-protocol-version: 1";
const STREAM: &str = "content-type: application/connect+json";

async fn post(method: &str, headers: &str, body: impl Into<Body>) -> Answered {
    ask(&service(), request(&format!("POST /echo.Echo/{method}\n{headers}"), body)).await
}

#[tokio::test]
async fn unary_calls_have_messages_of_each_codec() {
    let answer = post("One", JSON, Bytes::from_static(b" { \"text\" : \"a\", \"big\": \"7\" } ")).await;
    assert_eq!(answer.head(), "200 content-type: application/json");
    assert_eq!(answer.text(), r#"{"text":"a","big":"7"}"#);
    let answer = post("One", "content-type: application/proto", order("a", 2)).await;
    assert_eq!(answer.head(), "200 content-type: application/proto");
    assert_eq!(answer.body, order("a", 2));
    let answer = post("One", "content-type: application/msgpack", b"\x81\xa4text\xa1a".to_vec()).await;
    assert_eq!(answer.head(), "200 content-type: application/msgpack");
    assert_eq!(answer.body, b"\x81\xa4text\xa1a");
    let answer =
        post("One", "content-type: application/json; charset=utf-8", Bytes::from_static(b"{}")).await;
    assert_eq!((answer.head().as_str(), answer.text()), ("200 content-type: application/json", "{}"));
}

#[tokio::test]
async fn a_body_may_come_in_pieces() {
    let body = pieces([Some(b"{\"text\"".to_vec()), Some(Vec::new()), Some(b":\"a\"}".to_vec()), None]);
    assert_eq!(post("One", JSON, body).await.text(), r#"{"text":"a"}"#);
}

#[tokio::test]
async fn metadata_and_trailers() {
    let body = Bytes::from_static(br#"{"text":"metadata "}"#);
    let answer =
        post("One", &format!("{JSON}\nx-a: 1\nx-b-bin: YQ==\naccept-encoding: identity"), body).await;
    let expected =
        "200 content-type: application/json, trailer-x-a-t: 1, trailer-x-b-bin-t: YQ, x-a: 1, x-b-bin: YQ";
    assert_eq!(answer.head(), expected);
}

#[tokio::test]
async fn failures_say_all_there_is() {
    let answer = post("One", JSON, Bytes::from_static(br#"{"text":"fail"}"#)).await;
    assert_eq!(answer.head(), "409 content-type: application/json, trailer-x-why: tired");
    let expected = "{\"code\":\"aborted\",\"message\":\"ganz: ü\",\
                    \"details\":[{\"type\":\"echo.Order\",\"value\":\"CgN3aHk\",\"debug\":{\"text\":\"why\"}}]}";
    assert_eq!(answer.text(), expected);
    // A handler's panic does not affect others.
    let answer = post("One", JSON, Bytes::from_static(br#"{"text":"panic"}"#)).await;
    assert_eq!(
        (answer.status, answer.text()),
        (500, r#"{"code":"internal","message":"the handler panicked"}"#)
    );
}

#[tokio::test]
async fn bad_messages_are_told_with_their_place() {
    let check = async |method: &str, headers: &str, body: &'static [u8], expected: &str| {
        let answer = post(method, headers, Bytes::from_static(body)).await;
        assert_eq!((answer.status, answer.text()), (400, expected));
    };
    let no_order = |why: &str| {
        format!(r#"{{"code":"invalid_argument","message":"the request is no echo.Order: {why}"}}"#)
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
    let answer = post("One", JSON, Bytes::from_static(br#"{"text":"broken"}"#)).await;
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("the answer, echo.Order, can't be written as json"), "{}", answer.text());
}

#[tokio::test]
async fn gets_are_for_methods_without_side_effects() {
    let get = async |target: &str| ask(&service(), request(&format!("GET {target}"), Body::empty())).await;
    let answer = get("/echo.Echo/Look?connect=v1&encoding=json&message=%7B%22text%22%3A%22a%22%7D").await;
    assert_eq!(answer.head(), "200 content-type: application/json, vary: accept-encoding");
    assert_eq!(answer.text(), r#"{"text":"a"}"#);
    let answer = get("/echo.Echo/Look?encoding=proto&base64=1&message=CgFh").await;
    assert_eq!(answer.body, order("a", 0));
    let answer = get("/echo.Echo/One?connect=v1&encoding=json&message=%7B%7D").await;
    assert_eq!(answer.status, 405);
    assert_eq!(answer.headers["allow"], "POST");
    let answer = get("/echo.Echo/Look").await;
    assert_eq!((answer.status, answer.headers["allow"].to_str().unwrap()), (405, "GET, POST"));
    let answer = get("/echo.Echo/Look?connect=v2&encoding=json&message=%7B%7D").await;
    assert_eq!(answer.status, 400);
}

/// A repeated header costs a client a few bytes, so its decompressed size has its own limit.
#[tokio::test]
async fn gets_become_no_large_messages() {
    let check = async |len: usize, expected: u16| {
        let mut compressed = Vec::new();
        Encoding::Gzip.compress(&order(&"a".repeat(len), 0), &mut compressed);
        let message = URL_SAFE_NO_PAD.encode(compressed);
        let target = format!("/echo.Echo/Look?encoding=proto&base64=1&compression=gzip&message={message}");
        let answer = ask(&service(), request(&format!("GET {target}"), Body::empty())).await;
        assert_eq!(answer.status, expected, "{len}: {}", answer.text());
    };
    check(60_000, 200).await;
    check(70_000, 429).await;
}

#[tokio::test]
async fn the_version_may_be_required() {
    let (service, _) = serve(
        Web::new().descriptors(descriptors()).requires_connect_version(true).transcoding(false),
        &ServiceOptions::default(),
    );
    let check = async |headers: &str, expected: u16| {
        let head = format!("POST /echo.Echo/One\ncontent-type: application/proto\n{headers}");
        let answer = ask(&service, request(&head, order("a", 0))).await;
        assert_eq!(answer.status, expected, "{}", answer.text());
    };
    check("connect-protocol-version: 1", 200).await;
    check("", 400).await;
    check("connect-protocol-version: 2", 400).await;
}

#[tokio::test]
async fn streams_are_read_and_written_as_envelopes() {
    let a_and_b =
        [envelope(0, br#"{"text":"a","count":1}"#), envelope(0, br#"{"text":"b","count":1}"#)].concat();
    let answer = post("Fold", STREAM, a_and_b.clone()).await;
    assert_eq!(answer.head(), "200 content-type: application/connect+json");
    assert_eq!(envelopes(&answer.body), r#"0 {"text":"ab","count":2} | 2 {}"#);
    let answer = post("Many", STREAM, envelope(0, br#"{"text":"a","count":2}"#)).await;
    assert_eq!(envelopes(&answer.body), r#"0 {"text":"a","count":2} | 0 {"text":"a","count":1} | 2 {}"#);
    let answer = post("Chat", &format!("{STREAM}\nx-a: 1"), a_and_b).await;
    assert_eq!(answer.head(), "200 content-type: application/connect+json, x-a: 1");
    let end = r#"2 {"metadata":{"x-a":["1"]}}"#;
    assert_eq!(
        envelopes(&answer.body),
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
    let check = async |method: &str, requests: &[Vec<u8>], answers: &[Vec<u8>], end: &str| {
        let all = |messages: &[Vec<u8>]| messages.iter().flat_map(|message| envelope(0, message)).collect();
        let body: Vec<u8> = all(requests);
        let answer = post(method, headers, body).await;
        assert_eq!(answer.head(), format!("200 {headers}"), "{method}");
        let answers: Vec<u8> = all(answers);
        assert_eq!(answer.body, [answers, envelope(2, end.as_bytes())].concat(), "{method}");
    };
    let a_and_b = [message("a", 1), message("b", 1)];
    check("Fold", &a_and_b, &[message("ab", 2)], "{}").await;
    check("Many", &[message("a", 2)], &[message("a", 2), message("a", 1)], "{}").await;
    check("Chat", &a_and_b, &a_and_b, "{}").await;
    // Errors remain JSON.
    let why = "the request is no echo.Order: at byte 7: count: `a` is not a whole number";
    let end = format!(r#"{{"error":{{"code":"invalid_argument","message":"{why}"}}}}"#);
    let broken = b"\x81\xa5count\xa1a".to_vec();
    check("Chat", &[message("a", 1), broken], &[message("a", 1)], &end).await;
}

#[tokio::test]
async fn streams_end_with_their_failures() {
    let error = "{\"error\":{\"code\":\"aborted\",\"message\":\"ganz: ü\",\"details\":[{\"type\":\"echo.Order\",\
                 \"value\":\"CgN3aHk\",\"debug\":{\"text\":\"why\"}}]},\"metadata\":{\"x-why\":[\"tired\"]}}";
    let check = async |method: &str, body: Vec<u8>, expected: &str| {
        let answer = post(method, STREAM, body).await;
        assert_eq!((answer.status, envelopes(&answer.body).as_str()), (200, expected), "{method}");
    };
    check("Fold", envelope(0, br#"{"text":"fail"}"#), &format!("2 {error}")).await;
    check(
        "Many",
        envelope(0, br#"{"text":"late","count":1}"#),
        &format!(r#"0 {{"text":"late","count":1}} | 2 {error}"#),
    )
    .await;
    check("Chat", envelope(0, br#"{"text":"fail"}"#), &format!("2 {error}")).await;
    let place = "line 1, column 10: text: expected a string, found a number";
    let place = format!(
        r#"{{"error":{{"code":"invalid_argument","message":"the request is no echo.Order: {place}"}}}}"#
    );
    let bad = [envelope(0, br#"{"text":"a"}"#), envelope(0, br#"{"text": 1}"#)].concat();
    check("Chat", bad, &format!(r#"0 {{"text":"a"}} | 2 {place}"#)).await;
    let cut = r#"{"error":{"code":"internal","message":"the stream ended inside a message, 3 bytes after its start"}}"#;
    check("Chat", vec![0, 0, 0], &format!("2 {cut}")).await;
    // An unprintable message ends the call and its handler.
    let answer = post("Chat", STREAM, envelope(0, br#"{"text":"broken"}"#)).await;
    assert!(
        envelopes(&answer.body)
            .starts_with(r#"2 {"error":{"code":"internal","message":"the answer, echo.Order"#)
    );
}

#[tokio::test]
async fn answers_come_while_requests_go_on() {
    let (service, told) = serve(Web::new().descriptors(descriptors()), &ServiceOptions::default());
    let body = pieces([Some(envelope(0, br#"{"text":"a"}"#)), Some(envelope(0, br#"{"text":"b"}"#))]);
    let answer = soon(service.call(request(&format!("POST /echo.Echo/Chat\n{STREAM}"), body))).await;
    let mut body = answer.into_body();
    assert_eq!(envelopes(&piece_now(&mut body).unwrap()), r#"0 {"text":"a"} | 0 {"text":"b"}"#);
    assert!(piece_now(&mut body).is_none());
    assert_eq!(told.dropped.load(Ordering::SeqCst), 0);
    drop(body);
    assert_eq!(told.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_goes_away_cancels_the_handler() {
    let (service, told) = serve(Web::new().descriptors(descriptors()), &ServiceOptions::default());
    let body = Bytes::from_static(br#"{"text":"sleep "}"#);
    let mut answer = Box::pin(service.call(request(&format!("POST /echo.Echo/One\n{JSON}"), body)));
    tokio::time::timeout(Duration::from_millis(1), &mut answer).await.unwrap_err();
    let count = || (told.begun.load(Ordering::SeqCst), told.dropped.load(Ordering::SeqCst));
    assert_eq!(count(), (1, 0));
    drop(answer);
    assert_eq!(count(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn deadlines() {
    let late = async |method: &str, headers: &str, body: Body| {
        let answer = post(method, &format!("{headers}\nconnect-timeout-ms: 2000"), body).await;
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
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
    let answer = post("One", &format!("{JSON}\nconnect-timeout-ms: soon"), Bytes::from_static(b"{}")).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn sizes_are_bounded() {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 40;
    options.max_encoding_message_size = 60;
    let (service, told) = serve(Web::new().descriptors(descriptors()), &options);
    let check = async |method: &str, headers: &str, body: Body, expected: &str| {
        let answer = ask(&service, request(&format!("POST /echo.Echo/{method}\n{headers}"), body)).await;
        assert!(String::from_utf8_lossy(&answer.body).contains(expected), "{answer:?}");
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
    assert_eq!(told.begun.load(Ordering::SeqCst), 2);
    check("One", JSON, Bytes::from_static(br#"{"text":"size 90"}"#).into(), "resource_exhausted").await;
    // It would fit in wire format.
    check("One", JSON, Bytes::from_static(br#"{"text":"size 50"}"#).into(), "longer than 60 bytes").await;
}

#[tokio::test]
async fn compression_both_ways() {
    let mut options = ServiceOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    options.compression_threshold = 20;
    let (service, _) = serve(Web::new().descriptors(descriptors()), &options);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(br#"{"text":"size 100"}"#).unwrap();
    let gzip = gzip.finish().unwrap();
    let head = format!("POST /echo.Echo/One\n{JSON}\ncontent-encoding: gzip\naccept-encoding: br, gzip");
    let answer = ask(&service, request(&head, gzip.clone())).await;
    assert_eq!(answer.head(), "200 content-encoding: gzip, content-type: application/json");
    assert!(answer.body.len() < 60);
    let head = format!("POST /echo.Echo/One\n{JSON}\naccept-encoding: br");
    let answer = ask(&service, request(&head, Bytes::from_static(br#"{"text":"size 100"}"#))).await;
    assert_eq!(answer.head(), "200 content-type: application/json");
    let head = "POST /echo.Echo/Fold\ncontent-type: application/connect+json\n\
                connect-content-encoding: gzip\nconnect-accept-encoding: gzip";
    let answer = ask(&service, request(head, envelope(1, &gzip))).await;
    let head = "200 connect-content-encoding: gzip, content-type: application/connect+json";
    assert_eq!((answer.head().as_str(), answer.body[0]), (head, 1));
    // Responses are compressed only if the server is configured to do so.
    let answer = post(
        "One",
        &format!("{JSON}\naccept-encoding: gzip"),
        Bytes::from_static(br#"{"text":"size 2000"}"#),
    )
    .await;
    assert_eq!(answer.head(), "200 content-type: application/json");
    let head = format!("{JSON}\ncontent-encoding: rot13");
    assert_eq!(post("One", &head, Bytes::new()).await.status, 501);
}

#[tokio::test]
async fn without_descriptors_messages_are_wire_bytes() {
    let (service, _) = serve(Web::new(), &ServiceOptions::default());
    let head = "POST /echo.Echo/One\ncontent-type: application/proto";
    assert_eq!(ask(&service, request(head, order("a", 0))).await.body, order("a", 0));
    let answer =
        ask(&service, request(&format!("POST /echo.Echo/One\n{JSON}"), Bytes::from_static(b"{}"))).await;
    assert_eq!(answer.status, 501);
    assert!(answer.text().contains("needs the descriptors of its service"), "{}", answer.text());
}
