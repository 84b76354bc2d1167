//! Content subtypes of messages other than Protobuf.

use std::sync::Arc;

use crate::support::peer::{Frame, OK, Peer, client_of, connected};
use crate::support::{Echo, connect, raw, serve, soon};
use thalweg::interceptor::{Call, Next};
use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Caller, Channel, DecodeError, Message, Method, Raw, Request, Response, ServiceOptions,
    Status, Streaming,
};
use thalweg_engine::http2::frame::Kind;

/// Text with its own content subtype.
#[derive(Debug, PartialEq)]
struct Text(String);

impl Message for Text {
    const CONTENT_SUBTYPE: &'static str = "text";

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        String::from_utf8(wire.to_vec()).map(Text).map_err(DecodeError::new)
    }
}

static ECHO_TEXT: Method = Method::new("/test.Texts/Say").with_content_subtype(Text::CONTENT_SUBTYPE);
static PLAIN: Method = Method::new("/test.Texts/Say");

struct Texts;

impl Service for Texts {
    const NAME: &'static str = "test.Texts";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Say", &service, &options, |_, request: Request<Text>| async move {
            match request.get_ref().0.as_str() {
                "fail" => Err(Status::not_found("nothing")),
                _ => Ok(Response::new(request.into_inner())),
            }
        });
        methods.bidi_streaming(
            "Talk",
            &service,
            &options,
            |_, request: Request<Streaming<Text>>| async move {
                Ok::<_, Status>(Response::new(request.into_inner()))
            },
        );
    }
}

/// Returns the response headers for a request with this content type.
async fn respond(mut peer: Peer, path: &str, content_type: &str, message: &str) -> Frame {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "test"),
        ("content-type", content_type),
    ];
    peer.headers(1, false, &fields).message(1, true, message.as_bytes()).send().await;
    soon(peer.next_of(Kind::Headers)).await
}

#[tokio::test]
async fn response_content_type_matches_request() {
    let check = async |path: &str, content_type: &str, message: &str, expected: &[&str]| {
        let headers = respond(client_of(Texts).await, path, content_type, message).await.text();
        for part in expected {
            assert!(headers.contains(part), "{path} {content_type} {message}: {part} is not in\n{headers}");
        }
    };
    let (plain, text) = ("content-type: application/grpc\n", "content-type: application/grpc+text\n");
    for path in ["/test.Texts/Say", "/test.Texts/Talk"] {
        check(path, "application/grpc", "x", &[plain]).await;
        check(path, "application/grpc;x=y", "x", &[plain]).await;
        check(path, "application/grpc+text", "x", &[text]).await;
        check(path, "application/grpc+TEXT; charset=utf-8", "x", &[text]).await;
        let other = "grpc-message: content-type \"application/grpc+proto\" is not supported; accepted are \
                     application/grpc and application/grpc+text\n";
        check(path, "application/grpc+proto", "x", &[plain, "grpc-status: 12", other]).await;
        check(path, "text/html", "x", &[":status: 415"]).await;
    }
    check("/test.Texts/Say", "application/grpc+text", "fail", &[text, "grpc-status: 5"]).await;
    check("/test.Texts/None", "application/grpc+text", "x", &[plain, "grpc-status: 12"]).await;
}

#[tokio::test]
async fn method_without_subtype_accepts_any() {
    for content_type in ["application/grpc", "application/grpc+proto", "application/grpc+text"] {
        let headers = respond(client_of(Echo::default()).await, "/test.Echo/Echo", content_type, "x").await;
        assert!(
            headers.text().contains("content-type: application/grpc\n") && !headers.end_stream,
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn call_uses_content_type_of_method() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let intercepted = channel.with_interceptor(|call: Call, next: Next| next.run(call));
    // The cached headers of the two methods stay separate.
    for _ in 0..2 {
        let call = tokio::spawn(call_method(channel.clone(), ECHO_TEXT.clone()));
        check_request_headers(&mut peer, "application/grpc+text").await;
        soon(call).await.expect("no panic").expect("a response");
        let call = tokio::spawn(call_method(intercepted.clone(), ECHO_TEXT.clone()));
        check_request_headers(&mut peer, "application/grpc+text").await;
        soon(call).await.expect("no panic").expect("a response");
        let call = tokio::spawn(call_method(channel.clone(), PLAIN.clone()));
        check_request_headers(&mut peer, "application/grpc").await;
        soon(call).await.expect("no panic").expect("a response");
    }
    // A different method with the same path.
    let other = PLAIN.clone().with_content_subtype("other");
    let call = tokio::spawn(call_method(channel.clone(), other));
    check_request_headers(&mut peer, "application/grpc+other").await;
    soon(call).await.expect("no panic").expect("a response");
}

async fn call_method(caller: impl Caller, method: Method) -> Result<Response<Text>, Status> {
    caller.unary(&method, Request::new(Text("x".into())), &CallOptions::default()).await
}

/// Checks the headers of a call and responds.
async fn check_request_headers(peer: &mut Peer, content_type: &str) {
    let headers = soon(peer.next_of(Kind::Headers)).await;
    let line = format!("content-type: {content_type}\n");
    assert!(headers.text().contains(&line), "{line} is not in\n{}", headers.text());
    let respond = [(":status", "200"), ("content-type", content_type)];
    peer.headers(headers.stream, false, &respond).message(headers.stream, false, b"x");
    peer.headers(headers.stream, true, OK).send().await;
}

#[tokio::test]
async fn client_and_server_with_same_subtype() {
    let channel: Channel = connect(&serve(Texts).await).await;
    for method in [&ECHO_TEXT, &PLAIN] {
        let respond = call_method(channel.clone(), method.clone()).await.expect("a response");
        assert_eq!(respond.into_inner(), Text("x".into()));
    }
    let other = Method::new("/test.Texts/Say").with_content_subtype("json");
    let refused = channel.unary::<Raw, Raw>(&other, Request::new(raw("x")), &CallOptions::default()).await;
    let message = refused.expect_err("it takes no JSON").message().to_owned();
    assert!(message.contains("application/grpc and application/grpc+text"), "{message}");
}

#[test]
#[should_panic(expected = "a content subtype can only have letters")]
fn invalid_content_subtype_panics() {
    let _ = Method::new("/a.B/C").with_content_subtype("text; x");
}
