//! Calls of all types, from the engine's client to its server.

use std::time::Duration;

use http::HeaderMap;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::server::{Handler, MessageResponse, ServerMethod, UnaryHandler};
use thalweg_engine::{
    CallOptions, Channel, Code, Encode, Envelope, Method, RequestHead, ServiceOptions, Status,
};
use tokio::sync::mpsc;

use crate::support::peer::{OK, OK_HEADERS, REQUEST};
use crate::support::{
    CHAT, COUNT, Echo, EchoResponse, Messages, REPEAT, Receiver, Served, chat, client_of, client_with,
    connected, count, echo, failure, fields, in_flight, items, raw, request_at, response_of, routes,
    server_config, settled, soon, stream, unary,
};

async fn channel(service: &Echo) -> Channel {
    Served::echo(service).channel(|_| {}).await
}

/// Small requests are handled in the read buffer; those of more than 256 KiB are decoded in a task.
#[tokio::test(start_paused = true)]
async fn unary_call_returns_its_message() {
    let channel = channel(&Echo::default()).await;
    for len in [0, 1, 4095, 4096, 16_384, 70_000, 256 << 10, (256 << 10) + 1, (4 << 20) - 1] {
        let message = raw(vec![len as u8; len]);
        assert!(soon(echo(&channel, message.clone())).await.expect("a response") == message, "{len}");
    }
    assert_eq!(soon(echo(&channel, raw("yield"))).await.expect("a response"), raw("yield"));
    assert_eq!(in_flight(&channel), 0);
}

#[tokio::test(start_paused = true)]
async fn concurrent_unary_calls_all_get_responses() {
    let channel = channel(&Echo::default()).await;
    let call = |number: usize| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let message = if number.is_multiple_of(7) { raw("yield") } else { raw(number.to_string()) };
            assert_eq!(echo(&channel, message.clone()).await.expect("a response"), message);
        })
    };
    for call in (0..1000).map(call).collect::<Vec<_>>() {
        soon(call).await.expect("no panic");
    }
    assert_eq!((in_flight(&channel), channel.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn metadata_goes_both_ways() {
    let channel = channel(&Echo::default()).await;
    let (initial, trailing) = (("x-echo", "initial"), ("x-trailer", "trailing"));
    for sent in [&[initial][..], &[trailing], &[initial, trailing], &[]] {
        for message in ["x", "yield"] {
            let (_, metadata) = unary(&channel, &fields(sent), raw(message), &CallOptions::default())
                .await
                .expect("a response");
            assert_eq!(metadata, fields(sent), "{message}");
        }
    }
    let sent = fields(&[initial, trailing]);
    for (method, order) in [(&COUNT, "x"), (&REPEAT, "1 1"), (&CHAT, "x")] {
        let options = CallOptions::default();
        let called = channel.stream(method, &sent, items(vec![raw(order)]), &options);
        let (exchange, initial) = soon(called).await.expect("headers");
        assert_eq!(initial, fields(&[("x-echo", "initial")]), "{}", method.path());
        let (messages, trailing) = Messages(exchange.into_responses()).rest().await.expect("the end");
        assert_eq!(
            (messages.len(), trailing),
            (1, fields(&[("x-trailer", "trailing")])),
            "{}",
            method.path()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn client_streaming_call_has_one_response() {
    let channel = channel(&Echo::default()).await;
    for (messages, expected) in [(vec![], "0 0"), (vec![raw("ab"), raw(""), raw("c")], "3 3")] {
        let response = soon(count(&channel, items(messages), &CallOptions::default())).await;
        assert_eq!(response.expect("a response"), raw(expected));
    }
    let large = vec![raw(vec![1; 1_000_000]); 5];
    let response = soon(count(&channel, items(large), &CallOptions::default())).await;
    assert_eq!(response.expect("a response"), raw("5 5000000"));
}

#[tokio::test(start_paused = true)]
async fn server_streaming_call_has_many_responses() {
    let channel = channel(&Echo::default()).await;
    let options = CallOptions::default();
    for (order, times, size) in [("0 0", 0, 0), ("1000 10", 1000, 10), ("3 1500000", 3, 1_500_000)] {
        let responses = stream(&channel, &REPEAT, items(vec![raw(order)]), &options);
        let (messages, _) = soon(responses).await.expect("headers").rest().await.expect("the end");
        assert_eq!(messages.len(), times);
        assert!(messages.iter().all(|message| message.0 == vec![7; size]), "{order}");
    }
}

#[tokio::test(start_paused = true)]
async fn bidi_streaming_call_responds_before_requests_end() {
    let channel = channel(&Echo::default()).await;
    let (requests, source) = mpsc::unbounded_channel();
    let mut responses = soon(chat(&channel, Receiver(source))).await.expect("headers");
    for message in ["a", "", "longer"].map(raw).into_iter().chain([raw(vec![1; 100_000]), raw("b")]) {
        requests.send(message.clone()).expect("it is read");
        assert!(soon(responses.message()).await.expect("a message") == Some(message));
    }
    drop(requests);
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    assert_eq!(soon(responses.message()).await.expect("still the end"), None);
    drop(responses);
    assert_eq!(in_flight(&channel), 0);
}

/// The status arrives complete, from handlers that complete at once and from tasks.
#[tokio::test(start_paused = true)]
async fn status_arrives_with_message_details_and_metadata() {
    let channel = channel(&Echo::default()).await;
    let check = |status: Status| {
        assert_eq!((status.code(), status.message()), (failure().code(), failure().message()));
        assert_eq!(
            (status.details(), status.metadata().get("x-why")),
            (&b"d\0"[..], failure().metadata().get("x-why"))
        );
    };
    check(soon(echo(&channel, raw("fail"))).await.expect_err("asked to fail"));
    let early = Method::new("/test.Echo/Early");
    let (order, options) = (fields(&[("x-order", "fail")]), CallOptions::default());
    let called = soon(channel.stream(&early, &order, items(vec![]), &options)).await;
    check(called.map(|_| ()).expect_err("asked to fail"));
}

#[tokio::test(start_paused = true)]
async fn handler_panic_is_internal_and_ends_only_its_call() {
    let service = Echo::default();
    let channel = channel(&service).await;
    let mut other = soon(chat(&channel, {
        let (requests, source) = mpsc::unbounded_channel();
        requests.send(raw("x")).expect("open");
        std::mem::forget(requests);
        Receiver(source)
    }))
    .await
    .expect("headers");
    let check = |status: Status| {
        assert_eq!((status.code(), status.message()), (Code::Internal, "the handler panicked"));
    };
    for order in ["panic", "panic in start", "panic later"] {
        check(soon(echo(&channel, raw(order))).await.expect_err("asked to panic"));
    }
    let options = CallOptions::default();
    let early = Method::new("/test.Echo/Early");
    let order = fields(&[("x-order", "panic")]);
    let called = soon(channel.stream(&early, &order, items(vec![]), &options)).await;
    check(called.map(|_| ()).expect_err("asked to panic"));
    // Panics before it returns a future.
    let order = fields(&[("x-panic", "1")]);
    let called = soon(channel.stream(&CHAT, &order, items(vec![]), &options)).await;
    check(called.map(|_| ()).expect_err("asked to panic"));
    assert_eq!(soon(other.message()).await.expect("a message"), Some(raw("x")));
    assert_eq!(soon(echo(&channel, raw("y"))).await.expect("a response"), raw("y"));
}

/// A handler that ends without a response resets the stream.
#[tokio::test(start_paused = true)]
async fn handler_without_response_resets_stream() {
    let channel = channel(&Echo::default()).await;
    let (order, options) = (fields(&[("x-order", "stop")]), CallOptions::default());
    let early = Method::new("/test.Echo/Early");
    let called = soon(channel.stream(&early, &order, items(vec![]), &options)).await;
    let status = called.map(|_| ()).expect_err("it is reset");
    assert_eq!(status.code(), Code::Cancelled, "{status:?}");
    assert_eq!(in_flight(&channel), 0);
}

/// PROTOCOL-HTTP2: Response-Headers, Length-Prefixed-Message, Trailers, and nothing after them.
#[tokio::test(start_paused = true)]
async fn server_sends_headers_message_and_trailers() {
    let mut peer = client_of(&Echo::default()).await;
    for (stream, message) in [(1, &b"x"[..]), (3, b"yield"), (5, b""), (7, b"size 10000")] {
        peer.headers(stream, false, REQUEST).message(stream, true, message);
        let frames = settled(&mut peer).await;
        assert_eq!(
            frames.iter().map(|frame| (frame.kind, frame.stream, frame.end_stream)).collect::<Vec<_>>(),
            [(Kind::Headers, stream, false), (Kind::Data, stream, false), (Kind::Headers, stream, true)]
        );
        let headers = frames[0].text();
        assert!(headers.starts_with(":status: 200\n"), "{headers}");
        assert!(headers.contains("content-type: application/grpc\n"), "{headers}");
        assert_eq!(frames[2].text(), "grpc-status: 0\n");
        let expected = if stream == 7 { 10_000 } else { message.len() };
        assert_eq!(frames[1].payload.len(), 5 + expected);
        assert_eq!(frames[1].payload[1..5], u32::try_from(expected).expect("small").to_be_bytes());
    }
}

/// PROTOCOL-HTTP2: Trailers-Only.
#[tokio::test(start_paused = true)]
async fn failure_without_a_message_is_trailers_only() {
    let mut peer = client_of(&Echo::default()).await;
    peer.headers(1, false, REQUEST).message(1, true, b"fail");
    let frames = settled(&mut peer).await;
    assert_eq!(frames.len(), 1, "{frames:?}");
    let text = frames[0].text();
    assert!(frames[0].end_stream && text.starts_with(":status: 200\n"), "{text}");
    assert!(text.contains("content-type: application/grpc\n"), "{text}");
    assert!(
        text.contains("grpc-status: 5\n") && text.contains("grpc-message: nichts: %C3%BC %25\n"),
        "{text}"
    );
    assert!(text.contains("grpc-status-details-bin: ZAA\n") && text.contains("x-why: asked\n"), "{text}");
}

/// PROTOCOL-HTTP2: Request-Headers, and END_STREAM on the last DATA.
#[tokio::test(start_paused = true)]
async fn client_sends_headers_and_messages() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = {
        let channel = channel.clone();
        let sent = fields(&[("x-own", "1")]);
        tokio::spawn(async move { unary(&channel, &sent, raw("x"), &CallOptions::default()).await })
    };
    let headers = soon(peer.next_of(Kind::Headers)).await;
    for field in [
        ":method: POST\n",
        ":scheme: http\n",
        ":path: /test.Echo/Echo\n",
        ":authority: memory",
        "te: trailers\n",
        "content-type: application/grpc\n",
        "user-agent: ",
        "grpc-accept-encoding: identity,",
        "x-own: 1\n",
    ] {
        assert!(headers.text().contains(field), "{field} is not in\n{}", headers.text());
    }
    assert!(!headers.end_stream && !headers.text().contains("grpc-timeout"), "{}", headers.text());
    let data = soon(peer.next_of(Kind::Data)).await;
    assert_eq!((data.end_stream, &data.payload[..]), (true, &b"\0\0\0\0\x01x"[..]));
    peer.headers(1, false, OK_HEADERS).message(1, false, b"y").headers(1, true, OK).send().await;
    assert_eq!(soon(call).await.expect("no panic").expect("a response"), (raw("y"), HeaderMap::new()));
    // No reset follows a completed call.
    assert!(settled(&mut peer).await.is_empty());
}

/// A call may outlive its channel.
#[tokio::test(start_paused = true)]
async fn dropped_channel_lets_its_calls_end() {
    let channel = channel(&Echo::default()).await;
    let (requests, source) = mpsc::unbounded_channel();
    let mut responses = soon(chat(&channel, Receiver(source))).await.expect("headers");
    drop(channel);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        requests.send(raw("x")).expect("it is read");
        assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("x")));
    }
    drop(requests);
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
}

/// Calls of two methods in one read run in order, each with its own handler.
#[tokio::test(start_paused = true)]
async fn one_read_may_bring_calls_of_several_methods() {
    let named = |name: &str| {
        ServerMethod::new(name, ServiceOptions::default(), Handler::unary(Named(name.to_owned())))
    };
    let mut peer = client_with(server_config(|_| {}), routes([named("a.A/One"), named("a.A/Two")])).await;
    for (stream, path) in [(1, "/a.A/One"), (3, "/a.A/Two"), (5, "/a.A/Two"), (7, "/a.A/One")] {
        peer.headers(stream, false, &request_at(path)).message(stream, true, b"x");
    }
    let frames = settled(&mut peer).await;
    let responses = frames.iter().filter(|frame| frame.kind == Kind::Data).map(|frame| &frame.payload[5..]);
    assert_eq!(responses.collect::<Vec<_>>(), [b"a.A/One", b"a.A/Two", b"a.A/Two", b"a.A/One"]);
}

/// Responds with its name.
struct Named(String);

impl UnaryHandler for Named {
    type Future = std::future::Ready<Self::Output>;
    type Output = Result<EchoResponse, Status>;

    fn start(&self, _: &RequestHead, _: Envelope<'_>) -> Result<Self::Future, Status> {
        let response =
            EchoResponse { metadata: HeaderMap::new(), message: raw(self.0.clone()), trailers: None };
        Ok(std::future::ready(Ok(response)))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        response_of(output)
    }
}
