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

static SAY: Method = Method::new("/test.Texts/Say").with_content_subtype(Text::CONTENT_SUBTYPE);
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
async fn answer(mut peer: Peer, path: &str, content_type: &str, message: &str) -> Frame {
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
async fn answers_say_what_their_requests_said() {
    let check = async |path: &str, content_type: &str, message: &str, expected: &[&str]| {
        let head = answer(client_of(Texts).await, path, content_type, message).await.text();
        for part in expected {
            assert!(head.contains(part), "{path} {content_type} {message}: {part} is not in\n{head}");
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
async fn a_method_that_says_nothing_takes_what_comes() {
    for content_type in ["application/grpc", "application/grpc+proto", "application/grpc+text"] {
        let head = answer(client_of(Echo::default()).await, "/test.Echo/Echo", content_type, "x").await;
        assert!(
            head.text().contains("content-type: application/grpc\n") && !head.end_stream,
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn calls_say_what_their_method_does() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let intercepted = channel.with_interceptor(|call: Call, next: Next| next.run(call));
    // The cached headers of the two methods stay separate.
    for _ in 0..2 {
        let call = tokio::spawn(say(channel.clone(), SAY.clone()));
        check_head(&mut peer, "application/grpc+text").await;
        soon(call).await.expect("no panic").expect("an answer");
        let call = tokio::spawn(say(intercepted.clone(), SAY.clone()));
        check_head(&mut peer, "application/grpc+text").await;
        soon(call).await.expect("no panic").expect("an answer");
        let call = tokio::spawn(say(channel.clone(), PLAIN.clone()));
        check_head(&mut peer, "application/grpc").await;
        soon(call).await.expect("no panic").expect("an answer");
    }
    // A different method with the same path.
    let other = PLAIN.clone().with_content_subtype("other");
    let call = tokio::spawn(say(channel.clone(), other));
    check_head(&mut peer, "application/grpc+other").await;
    soon(call).await.expect("no panic").expect("an answer");
}

async fn say(caller: impl Caller, method: Method) -> Result<Response<Text>, Status> {
    caller.unary(&method, Request::new(Text("x".into())), &CallOptions::default()).await
}

/// Checks the headers of a call and responds.
async fn check_head(peer: &mut Peer, content_type: &str) {
    let head = soon(peer.next_of(Kind::Headers)).await;
    let line = format!("content-type: {content_type}\n");
    assert!(head.text().contains(&line), "{line} is not in\n{}", head.text());
    let answer = [(":status", "200"), ("content-type", content_type)];
    peer.headers(head.stream, false, &answer).message(head.stream, false, b"x");
    peer.headers(head.stream, true, OK).send().await;
}

#[tokio::test]
async fn a_client_and_a_server_that_agree() {
    let channel: Channel = connect(&serve(Texts).await).await;
    for method in [&SAY, &PLAIN] {
        let answer = say(channel.clone(), method.clone()).await.expect("an answer");
        assert_eq!(answer.into_inner(), Text("x".into()));
    }
    let other = Method::new("/test.Texts/Say").with_content_subtype("json");
    let refused = channel.unary::<Raw, Raw>(&other, Request::new(raw("x")), &CallOptions::default()).await;
    let message = refused.expect_err("it takes no JSON").message().to_owned();
    assert!(message.contains("application/grpc and application/grpc+text"), "{message}");
}

#[test]
#[should_panic(expected = "a content subtype can only have letters")]
fn no_method_says_what_is_no_content_type() {
    let _ = Method::new("/a.B/C").with_content_subtype("text; x");
}
