//! gRPC-Web calls, and gRPC calls with other codecs, from request to response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use thalweg_engine::{Encoding, EncodingSet, ServiceOptions};
use thalweg_web::Web;
use thalweg_web::body::Body;

use crate::echo::{
    FullResponse, descriptors, envelope, envelopes, header_list, order, pieces, request, send, serve, service,
};

const WEB: &str = "content-type: application/grpc-web+json";
const GRPC: &str = "content-type: application/grpc+json\nte: trailers";

async fn post(method: &str, headers: &str, body: impl Into<Body>) -> FullResponse {
    send(&service(), request(&format!("POST /echo.Echo/{method}\n{headers}"), body)).await
}

/// The feature `zstd` adds an encoding.
fn accepts() -> String {
    format!("grpc-accept-encoding: {}", EncodingSet::ALL.value())
}

#[tokio::test]
async fn grpc_web_of_all_four_kinds() {
    let one = envelope(0, br#"{"text":"a","count":1}"#);
    let two = [&one[..], &one[..]].concat();
    let check = async |method: &str, body: &[u8], expected: &str| {
        let response = post(method, WEB, body.to_vec()).await;
        assert_eq!(response.head(), format!("200 content-type: application/grpc-web+json, {}", accepts()));
        assert_eq!(envelopes(&response.body), format!("{expected} | 128 grpc-status: 0\r\n"), "{method}");
    };
    check("One", &one, r#"0 {"text":"a","count":1}"#).await;
    check("Fold", &two, r#"0 {"text":"aa","count":2}"#).await;
    check("Many", &two, r#"0 {"text":"aa","count":2} | 0 {"text":"aa","count":1}"#).await;
    check("Chat", &two, r#"0 {"text":"a","count":1} | 0 {"text":"a","count":1}"#).await;
    let response = post("One", "content-type: application/grpc-web", envelope(0, &order("a", 1))).await;
    assert_eq!(response.head(), format!("200 content-type: application/grpc-web, {}", accepts()));
    assert_eq!(response.body, [envelope(0, &order("a", 1)), envelope(128, b"grpc-status: 0\r\n")].concat());
}

#[tokio::test]
async fn messagepack_of_all_four_kinds() {
    let message = |text: &str, count: u8| {
        let len = 0xa0 | text.len() as u8;
        envelope(0, &[&b"\x82\xa4text"[..], &[len], text.as_bytes(), b"\xa5count", &[count]].concat())
    };
    let trailers = envelope(128, b"grpc-status: 0\r\n");
    let check = async |method: &str, requests: &[Vec<u8>], responses: &[Vec<u8>]| {
        for (content_type, end) in
            [("application/grpc-web+msgpack", &trailers[..]), ("application/grpc+msgpack", b"")]
        {
            let response = post(method, &format!("content-type: {content_type}"), requests.concat()).await;
            assert_eq!(
                response.head(),
                format!("200 content-type: {content_type}, {}", accepts()),
                "{method}"
            );
            assert_eq!(response.body, [&responses.concat(), end].concat(), "{method} {content_type}");
            let expected = end.is_empty().then(|| "grpc-status: 0".to_owned());
            assert_eq!(response.trailers.as_ref().map(header_list), expected, "{method} {content_type}");
        }
    };
    let (one, two) = ([message("a", 1)], [message("a", 1), message("b", 1)]);
    check("One", &one, &one).await;
    check("Fold", &two, &[message("ab", 2)]).await;
    check("Many", &[message("a", 2)], &[message("a", 2), message("a", 1)]).await;
    check("Chat", &two, &two).await;
}

#[tokio::test]
async fn text_body_is_base64_in_pieces() {
    let text = STANDARD.encode(envelope(0, &order("a", 1)));
    let (front, back) = text.split_at(7);
    let body = pieces([Some(front.into()), Some(back.into()), None]);
    let response = post("One", "content-type: application/grpc-web-text", body).await;
    assert_eq!(response.headers["content-type"], "application/grpc-web-text");
    let message = STANDARD.encode(envelope(0, &order("a", 1)));
    assert!(response.text().starts_with(&message), "{}", response.text());
    let trailers = STANDARD.encode(envelope(128, b"grpc-status: 0\r\n"));
    assert_eq!(&response.text()[message.len()..], trailers);
}

#[tokio::test]
async fn grpc_web_failure_is_in_the_body() {
    let status = "x-why: tired\r\ngrpc-status: 10\r\ngrpc-message: ganz: %C3%BC\r\n\
                  grpc-status-details-bin: CAoaJwoedHlwZS5nb29nbGVhcGlzLmNvbS9lY2hvLk9yZGVyEgUKA3doeQ\r\n";
    let check = async |method: &str, body: Vec<u8>, expected: &str| {
        let response = post(method, WEB, body).await;
        assert_eq!((response.status, envelopes(&response.body).as_str()), (200, expected), "{method}");
    };
    check("One", envelope(0, br#"{"text":"fail"}"#), &format!("128 {status}")).await;
    check("Fold", envelope(0, br#"{"text":"fail"}"#), &format!("128 {status}")).await;
    let late = envelope(0, br#"{"text":"late","count":1}"#);
    check("Many", late, &format!(r#"0 {{"text":"late","count":1}} | 128 {status}"#)).await;
    let none = "128 grpc-status: 12\r\ngrpc-message: expected one message, received none\r\n";
    check("One", Vec::new(), none).await;
    let two = "128 grpc-status: 12\r\ngrpc-message: expected one message, received more than one\r\n";
    check("One", [envelope(0, b"{}"), envelope(0, b"{}")].concat(), two).await;
    check(
        "Nothing",
        envelope(0, b"{}"),
        "128 grpc-status: 12\r\ngrpc-message: nothing is called /echo.Echo/Nothing\r\n",
    )
    .await;
    let detail = "128 grpc-status: 3\r\ngrpc-message: the request is not a valid echo.Order: line 1, column 2: \
                 echo.Order has no field `x`\r\n";
    check("One", envelope(0, b"{\"x\":1}"), detail).await;
}

#[tokio::test]
async fn metadata_and_compression_of_grpc_web() {
    let mut options = ServiceOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    options.compression_threshold = 1;
    let (service, _) = serve(Web::new().descriptors(descriptors()), &options);
    let head = format!("POST /echo.Echo/One HTTP/1.1\n{WEB}\ngrpc-accept-encoding: gzip\nx-a: 1");
    let response = send(&service, request(&head, envelope(0, br#"{"text":"size 100"}"#))).await;
    assert_eq!(response.headers["grpc-encoding"], "gzip");
    assert_eq!(response.body[0], 1);
    let response = post("One", &format!("{WEB}\nx-a: 1"), envelope(0, br#"{"text":"metadata "}"#)).await;
    assert_eq!(response.headers["x-a"], "1");
    assert!(envelopes(&response.body).ends_with("128 x-a-t: 1\r\ngrpc-status: 0\r\n"));
}

#[tokio::test(start_paused = true)]
async fn deadlines_of_grpc_web() {
    let headers = format!("{WEB}\ngrpc-timeout: 2S");
    for (method, body) in [
        ("One", Body::from(Bytes::from(envelope(0, br#"{"text":"sleep "}"#)))),
        ("One", pieces([])),
        ("Chat", pieces([])),
    ] {
        let response = post(method, &headers, body).await;
        assert!(
            envelopes(&response.body).contains("grpc-status: 4"),
            "{method}: {}",
            envelopes(&response.body)
        );
    }
}

#[tokio::test]
async fn grpc_with_other_codec_ends_with_trailers() {
    let one = envelope(0, br#"{"text":"a","count":1}"#);
    let two = [&one[..], &one[..]].concat();
    let check = async |method: &str, body: &[u8], expected: &str| {
        let response = post(method, GRPC, body.to_vec()).await;
        assert_eq!(response.head(), format!("200 content-type: application/grpc+json, {}", accepts()));
        assert_eq!(envelopes(&response.body), expected, "{method}");
        assert_eq!(header_list(&response.trailers.unwrap()), "grpc-status: 0");
    };
    check("One", &one, r#"0 {"text":"a","count":1}"#).await;
    check("Fold", &two, r#"0 {"text":"aa","count":2}"#).await;
    check("Many", &two, r#"0 {"text":"aa","count":2} | 0 {"text":"aa","count":1}"#).await;
    check("Chat", &two, r#"0 {"text":"a","count":1} | 0 {"text":"a","count":1}"#).await;
    let packed = b"\x81\xa4text\xa1a";
    let response = post("One", "content-type: application/grpc+msgpack", envelope(0, packed)).await;
    assert_eq!(response.headers["content-type"], "application/grpc+msgpack");
    assert_eq!(response.body, envelope(0, packed));
    // A failure is in the headers.
    let response = post("One", GRPC, envelope(0, br#"{"text":"fail"}"#)).await;
    let expected = format!(
        "200 content-type: application/grpc+json, {}, grpc-message: ganz: %C3%BC, \
         grpc-status-details-bin: CAoaJwoedHlwZS5nb29nbGVhcGlzLmNvbS9lY2hvLk9yZGVyEgUKA3doeQ, \
         grpc-status: 10, x-why: tired",
        accepts()
    );
    assert_eq!((response.head(), response.body.len()), (expected, 0));
    let response = post("Many", GRPC, envelope(0, br#"{"text":"late","count":1}"#)).await;
    assert_eq!(response.trailers.unwrap()["grpc-status"], "10");
}
