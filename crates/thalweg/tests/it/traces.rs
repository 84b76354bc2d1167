//! Spans of real calls, by gRFC A72.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SpanData;
use thalweg::channel::policy::PolicyConfig;
use thalweg::channel::{ConnectivityState, EndpointList};
use thalweg::interceptor::{Call, Next};
use thalweg::{CallOptions, Channel, Code, Encoding, Method, Raw, Request, Server};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use tokio::io::duplex;

use crate::support::peer::{HEAD, OK, PIPE, Peer, REQUEST, channel_to_test, connected_by};
use crate::support::spans::{Spans, Traced, check, peer_of, read_all, traceparent};
use crate::support::{
    CHAT, COUNT, ECHO, Echo, Items, REPEAT, chat, echo, items, poll_once, raw, soon, start, until,
};

#[tokio::test]
async fn unary_call_has_three_spans() {
    let traced = Traced::new().await;
    echo(&traced.channel, raw("12345")).await.expect("an echo");
    traced
        .check(&[
            "Sent.test.Echo.Echo Client OK",
            "  Attempt.test.Echo.Echo Internal OK FIRST",
            "    - Outbound message 0: 5",
            "    - Inbound message 0: 5",
            "    Recv.test.Echo.Echo Server OK",
            "      - Inbound message 0: 5",
            "      - Outbound message 0: 5",
        ])
        .await;
    let spans = traced.spans.ended().await;
    let scope = &spans[0].instrumentation_scope;
    assert_eq!((scope.name(), scope.version()), ("thalweg", Some(env!("CARGO_PKG_VERSION"))));
    assert!(spans.iter().all(|span| span.span_context.trace_id() == spans[0].span_context.trace_id()));
}

#[tokio::test]
async fn stream_spans_have_message_events() {
    let traced = Traced::new().await;
    let (channel, options) = (&traced.channel, CallOptions::default());
    let requests: Items<Raw> = items(["a", "bc"].map(raw).into());
    let count = channel.client_streaming::<_, Raw>(&COUNT, Request::new(requests), &options).await;
    assert_eq!(count.expect("a response").into_inner(), raw("2 3"));
    traced
        .check(&[
            "Sent.test.Echo.Count Client OK",
            "  Attempt.test.Echo.Count Internal OK FIRST",
            "    - Outbound message 0: 1",
            "    - Outbound message 1: 2",
            "    - Inbound message 0: 3",
            "    Recv.test.Echo.Count Server OK",
            "      - Inbound message 0: 1",
            "      - Inbound message 1: 2",
            "      - Outbound message 0: 3",
        ])
        .await;

    let traced = Traced::new().await;
    let responses = traced.channel.server_streaming(&REPEAT, Request::new(raw("3 70000")), &options).await;
    read_all(responses.expect("a stream")).await.expect("messages");
    traced
        .check(&[
            "Sent.test.Echo.Repeat Client OK",
            "  Attempt.test.Echo.Repeat Internal OK FIRST",
            "    - Outbound message 0: 7",
            "    - Inbound message 0: 70000",
            "    - Inbound message 1: 70000",
            "    - Inbound message 2: 70000",
            "    Recv.test.Echo.Repeat Server OK",
            "      - Inbound message 0: 7",
            "      - Outbound message 0: 70000",
            "      - Outbound message 1: 70000",
            "      - Outbound message 2: 70000",
        ])
        .await;

    let traced = Traced::new().await;
    let requests: Items<Raw> = items(vec![raw("a")]);
    let responses = traced.channel.bidi_streaming(&CHAT, Request::new(requests), &options).await;
    read_all(responses.expect("a stream")).await.expect("messages");
    traced
        .check(&[
            "Sent.test.Echo.Chat Client OK",
            "  Attempt.test.Echo.Chat Internal OK FIRST",
            "    - Outbound message 0: 1",
            "    - Inbound message 0: 1",
            "    Recv.test.Echo.Chat Server OK",
            "      - Inbound message 0: 1",
            "      - Outbound message 0: 1",
        ])
        .await;
}

#[tokio::test]
async fn compressed_message_events_have_two_sizes() {
    let service = || {
        let mut echo = Echo::default();
        echo.options.send_compressed = Some(Encoding::Gzip);
        echo
    };
    let mut options = CallOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    let traced = Traced::with(Spans::new(), service()).await;
    let message = raw(vec![0; 50_000]);
    let response = traced.channel.unary::<_, Raw>(&ECHO, Request::new(message.clone()), &options).await;
    assert_eq!(response.expect("an echo").into_inner(), message);
    traced
        .check(&[
            "Sent.test.Echo.Echo Client OK",
            "  Attempt.test.Echo.Echo Internal OK FIRST",
            "    - Outbound message 0: 50000 compressed",
            "    - Inbound message 0: 50000 compressed",
            "    Recv.test.Echo.Echo Server OK",
            "      - Inbound message 0: 50000 compressed",
            "      - Outbound message 0: 50000 compressed",
        ])
        .await;

    let traced = Traced::with(Spans::new(), service()).await;
    let requests: Items<Raw> = items(vec![message, raw("short")]);
    let responses = traced.channel.bidi_streaming(&CHAT, Request::new(requests), &options).await;
    read_all(responses.expect("a stream")).await.expect("messages");
    traced
        .check(&[
            "Sent.test.Echo.Chat Client OK",
            "  Attempt.test.Echo.Chat Internal OK FIRST",
            "    - Outbound message 0: 50000 compressed",
            "    - Outbound message 1: 5",
            "    - Inbound message 0: 50000 compressed",
            "    - Inbound message 1: 5",
            "    Recv.test.Echo.Chat Server OK",
            "      - Inbound message 0: 50000 compressed",
            "      - Outbound message 0: 50000 compressed",
            "      - Inbound message 1: 5",
            "      - Outbound message 1: 5",
        ])
        .await;
}

#[tokio::test]
async fn failed_span_has_description() {
    let traced = Traced::new().await;
    echo(&traced.channel, raw("fail")).await.expect_err("asked to");
    traced
        .check(&[
            "Sent.test.Echo.Echo Client [NOT_FOUND, nichts: ü %]",
            "  Attempt.test.Echo.Echo Internal [NOT_FOUND, nichts: ü %] FIRST",
            "    - Outbound message 0: 4",
            "    Recv.test.Echo.Echo Server [NOT_FOUND, nichts: ü %]",
            "      - Inbound message 0: 4",
        ])
        .await;

    let traced = Traced::new().await;
    let status = echo(&traced.channel, raw("panic")).await.expect_err("asked to");
    let panicked = format!("[{:?}, {}]", status.code(), status.message()).to_uppercase();
    let tree = soon(traced.spans.tree(3)).await;
    assert_eq!(tree.to_uppercase().matches(&panicked).count(), 3, "{tree}");

    // The handler succeeds, but its response cannot be sent.
    let mut service = Echo::default();
    service.options.max_encoding_message_size = 3;
    let traced = Traced::with(Spans::new(), service).await;
    echo(&traced.channel, raw("12345")).await.expect_err("too large");
    let requests: Items<Raw> = items(vec![raw("12345"); 10]);
    let options = CallOptions::default();
    let status = traced.channel.client_streaming::<_, Raw>(&COUNT, Request::new(requests), &options).await;
    status.expect_err("too large");
    let tree = soon(traced.spans.tree(6)).await;
    let too_large = "Server [RESOURCE_EXHAUSTED, trying to send message larger than max (5 vs. 3): see the sender's \
                     max_encoding_message_size]";
    assert_eq!(tree.matches(too_large).count(), 2, "{tree}");
    assert!(!tree.contains("      - Outbound"), "{tree}");
}

#[tokio::test]
async fn unknown_method_has_span() {
    static NOWHERE: Method = Method::new("/test.Echo/Nowhere");
    let traced = Traced::new().await;
    let options = CallOptions::default();
    let response = traced.channel.unary::<Raw, Raw>(&NOWHERE, Request::new(raw("x")), &options);
    assert_eq!(response.await.expect_err("it is not there").code(), Code::Unimplemented);
    traced
        .check(&[
            "Sent.test.Echo.Nowhere Client [UNIMPLEMENTED, unknown method Nowhere for service test.Echo]",
            "  Attempt.test.Echo.Nowhere Internal [UNIMPLEMENTED, unknown method Nowhere for service test.Echo] FIRST",
            "    - Outbound message 0: 1",
            "    Recv.test.Echo.Nowhere Server [UNIMPLEMENTED, unknown method Nowhere for service test.Echo]",
        ])
        .await;
}

/// Connects a test's client to a server that reports to these spans and accepts messages of up to 100 bytes.
async fn client_of_traced(spans: &Spans) -> Peer {
    let (near, far) = duplex(PIPE);
    let mut service = Echo::default();
    service.options.max_decoding_message_size = 100;
    let server = Server::builder().add_service(service).traces(spans.traces());
    tokio::spawn(server.serve_connection(far));
    Peer::client(near).await
}

#[tokio::test(start_paused = true)]
async fn rejected_call_has_span() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    // Sends frames after the headers and frames after a while; `goes` disconnects the client then.
    let check = async |fields: &[(&str, &str)],
                       first: &dyn Fn(&mut Peer),
                       then: &dyn Fn(&mut Peer),
                       goes: bool,
                       expected: &str| {
        let spans = Spans::new();
        let mut peer = client_of_traced(&spans).await;
        peer.headers(1, false, &[REQUEST, &[("traceparent", &traceparent)], fields].concat());
        first(&mut peer);
        peer.send().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        then(&mut peer);
        peer.send().await;
        let peer = (!goes).then_some(peer);
        let tree = soon(spans.tree(1)).await;
        let is_expected = tree.starts_with(&format!("Recv.test.Echo.Echo Server [{expected}"));
        assert!(is_expected && tree.lines().count() == 1, "{fields:?} {expected}: {tree}");
        let span = &spans.ended().await[0];
        assert_eq!(span.span_context.trace_id().to_string(), TRACE);
        assert_eq!(span.parent_span_id.to_string(), PARENT);
        drop(peer);
    };
    let nothing = |_: &mut Peer| ();
    let cancelled = "CANCELLED, the call was cancelled";
    check(&[], &nothing, &nothing, true, cancelled).await;
    let reset = |peer: &mut Peer| _ = peer.reset(1, ErrorCode::Cancel);
    check(&[], &nothing, &reset, false, cancelled).await;
    let whole = |peer: &mut Peer| _ = peer.message(1, true, b"hello");
    let whole_and_reset = |peer: &mut Peer| _ = peer.message(1, true, b"hello").reset(1, ErrorCode::Cancel);
    check(&[], &whole_and_reset, &nothing, false, cancelled).await;
    let large = |peer: &mut Peer| _ = peer.message(1, true, &[0; 101]);
    let too_large = "RESOURCE_EXHAUSTED, received message larger than max (101 vs. 100)";
    check(&[], &large, &nothing, false, too_large).await;
    let timeout = [("grpc-timeout", "1m")];
    let in_pieces = |peer: &mut Peer| _ = peer.message(1, false, b"hello").data(1, true, b"");
    let late = "DEADLINE_EXCEEDED, deadline exceeded: the request was not complete";
    check(&timeout, &nothing, &in_pieces, false, late).await;
    check(&timeout, &nothing, &nothing, false, late).await;
    let unknown = "UNIMPLEMENTED, grpc-encoding \"x\" is not supported";
    check(&[("grpc-encoding", "x")], &whole, &nothing, false, unknown).await;
    let malformed = "INTERNAL, malformed binary metadata in \"a-bin\"";
    check(&[("a-bin", "?")], &whole, &nothing, false, malformed).await;
}

#[tokio::test]
async fn non_grpc_request_has_no_span() {
    for (name, value) in [(":method", "GET"), ("content-type", "text/plain")] {
        let spans = Spans::new();
        let mut peer = client_of_traced(&spans).await;
        let mut headers = REQUEST.to_vec();
        headers.iter_mut().filter(|field| field.0 == name).for_each(|field| field.1 = value);
        peer.headers(1, true, &headers).send().await;
        soon(peer.next_of(Kind::Headers)).await;
        drop(peer);
        let mut peer = client_of_traced(&spans).await;
        peer.headers(1, false, REQUEST).message(1, true, b"a").send().await;
        soon(peer.next_of(Kind::Data)).await;
        assert_eq!(soon(spans.tree(1)).await.matches("Recv").count(), 1, "{name}");
    }
}

#[tokio::test]
async fn lost_connection_ends_spans_of_calls() {
    let spans = Spans::new();
    let mut peer = client_of_traced(&spans).await;
    let chat: Vec<_> = REQUEST
        .iter()
        .map(|field| if field.0 == ":path" { (":path", "/test.Echo/Chat") } else { *field })
        .collect();
    peer.headers(1, false, REQUEST).message(1, true, b"sleep");
    peer.headers(3, false, &chat).headers(5, false, REQUEST).send().await;
    until(|| spans.open() == 2).await;
    drop(peer);
    let tree = soon(spans.tree(3)).await;
    assert_eq!(tree.matches("[CANCELLED, the call was cancelled]").count(), 3, "{tree}");
}

#[tokio::test]
async fn dropped_call_span_is_cancelled() {
    let traced = Traced::new().await;
    let channel = traced.channel.clone();
    let call = tokio::spawn(async move { echo(&channel, raw("sleep")).await });
    until(|| traced.spans.open() == 3).await;
    call.abort();
    traced
        .check(&[
            "Sent.test.Echo.Echo Client [CANCELLED]",
            "  Attempt.test.Echo.Echo Internal [CANCELLED] FIRST",
            "    - Outbound message 0: 5",
            "    Recv.test.Echo.Echo Server [CANCELLED, the call was cancelled]",
            "      - Inbound message 0: 5",
        ])
        .await;

    // A stream that is not read to its end, and one whose headers are not awaited.
    let traced = Traced::new().await;
    let options = CallOptions::default();
    let order = Request::new(raw("1000 100000"));
    let mut responses = traced
        .channel
        .server_streaming::<_, Raw>(&REPEAT, order, &options)
        .await
        .expect("a stream")
        .into_inner();
    soon(responses.message()).await.expect("a message");
    drop(responses);
    let mut started = Box::pin(chat(&traced.channel, items(vec![raw("a")])));
    assert!(poll_once(started.as_mut()).is_none());
    drop(started);
    let tree = soon(traced.spans.tree(5)).await;
    assert!(!tree.contains("OK"), "{tree}");
    assert!(tree.matches("[CANCELLED").count() >= 5, "{tree}");
}

/// Sets an attribute on the span that is current when it is dropped.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        Context::current().span().set_attribute(KeyValue::new("dropped", "here"));
    }
}

#[tokio::test]
async fn handler_drops_values_in_its_span() {
    let spans = Spans::new();
    let server = Server::builder().interceptor(|call: Call, next: Next| async move {
        let _last = Last;
        next.run(call).await
    });
    let target = start(server.add_service(Echo::default()).traces(spans.traces())).await;
    let channel = Channel::builder(&target).connect().await.expect("a server");
    for order in ["sleep", "a"] {
        let channel = channel.clone();
        let call = tokio::spawn(async move { echo(&channel, raw(order)).await });
        if order == "sleep" {
            until(|| spans.open() == 1).await;
            call.abort();
        } else {
            soon(call).await.expect("no panic").expect("an echo");
        }
    }
    check(
        &spans,
        &[
            "Recv.test.Echo.Echo Server [CANCELLED, the call was cancelled] dropped=here",
            "  - Inbound message 0: 5",
            "Recv.test.Echo.Echo Server OK dropped=here",
            "  - Inbound message 0: 1",
            "  - Outbound message 0: 1",
        ],
    )
    .await;
}

#[tokio::test]
async fn deadline_is_recorded_on_both_sides() {
    let traced = Traced::new().await;
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_millis(50));
    let call = traced.channel.unary::<_, Raw>(&ECHO, Request::new(raw("sleep")), &options);
    assert_eq!(call.await.expect_err("it sleeps").code(), Code::DeadlineExceeded);
    let tree = soon(traced.spans.tree(3)).await;
    // Either the server's deadline or the client's cancellation may come first.
    let (of_client, of_server) = tree.split_once("Recv.").expect("a span of the server's");
    assert_eq!(of_client.matches("[DEADLINE_EXCEEDED, ").count(), 2, "{tree}");
    assert!(
        ["[DEADLINE_EXCEEDED, ", "[CANCELLED, "].iter().any(|outcome| of_server.contains(outcome)),
        "{tree}"
    );
}

#[tokio::test]
async fn retry_has_its_own_span() {
    let spans = Spans::new();
    let (builder, mut accepted) = channel_to_test();
    let channel = builder.traces(spans.traces()).connect_lazy().expect("a target");
    let unary = {
        let channel = channel.clone();
        tokio::spawn(async move { echo(&channel, raw("abc")).await })
    };
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    let first = soon(peer.next_of(Kind::Headers)).await;
    peer.reset(first.stream, ErrorCode::RefusedStream).send().await;
    let second = soon(peer.next_of(Kind::Headers)).await;
    assert_ne!(traceparent(&first.text()), traceparent(&second.text()));
    peer.headers(second.stream, false, HEAD).message(second.stream, false, b"abc");
    peer.headers(second.stream, true, OK).send().await;
    soon(unary).await.expect("no panic").expect("a response");
    let ended_spans = spans.ended().await;
    let sent_by = |headers: &str| {
        let (trace, span) = traceparent(headers);
        let has_id = |ended: &&SpanData| ended.span_context.span_id().to_string() == span;
        let ended = ended_spans.iter().find(has_id).expect("its span");
        assert_eq!(ended.span_context.trace_id().to_string(), trace);
        ended.name.clone()
    };
    assert_eq!(sent_by(&first.text()), "Attempt.test.Echo.Echo");
    assert_eq!(sent_by(&second.text()), "Attempt.test.Echo.Echo");
    assert_eq!(ended_spans.iter().filter_map(peer_of).collect::<Vec<_>>(), ["memory:1", "memory:1"]);
    check(
        &spans,
        &[
            "Sent.test.Echo.Echo Client OK",
            "  Attempt.test.Echo.Echo Internal [UNAVAILABLE, REFUSED_STREAM] FIRST",
            "    - Delayed LB pick complete",
            "    - Outbound message 0: 3",
            "  Attempt.test.Echo.Echo Internal OK RETRY",
            "    - Outbound message 0: 3",
            "    - Inbound message 0: 3",
        ],
    )
    .await;
}

#[tokio::test]
async fn hedged_attempts_have_their_own_spans() {
    for is_stream in [false, true] {
        check_hedged(is_stream).await;
    }
}

async fn check_hedged(is_stream: bool) {
    let spans = Spans::new();
    let (builder, mut accepted) = channel_to_test();
    let hedging = r#"{ "methodConfig": [{ "name": [{}], "hedgingPolicy": { "maxAttempts": 3 } }] }"#;
    let channel = builder.traces(spans.traces()).service_config(hedging).connect_lazy().expect("a target");
    let call = {
        let channel = channel.clone();
        tokio::spawn(async move {
            if !is_stream {
                return echo(&channel, raw("abc")).await.map(drop);
            }
            let mut responses = chat(&channel, items(vec![raw("abc")])).await?;
            while responses.message().await?.is_some() {}
            Ok(())
        })
    };
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    let (mut attempts, mut complete) = (Vec::new(), 0);
    while complete < 3 {
        let frame = soon(peer.next()).await.expect("a frame");
        if frame.kind == Kind::Headers {
            attempts.push((frame.stream, frame.text()));
        }
        complete += usize::from(frame.end_stream);
    }
    let stream = attempts[2].0;
    peer.headers(stream, false, HEAD).message(stream, false, b"abc").headers(stream, true, OK).send().await;
    soon(call).await.expect("no panic").expect("a response");
    let ended = spans.ended().await;
    assert_eq!(ended.len(), 4, "the call and its attempts: {ended:?}");
    for (number, (_, headers)) in attempts.iter().enumerate() {
        let (_, id) = traceparent(headers);
        let span = ended.iter().find(|ended| ended.span_context.span_id().to_string() == id);
        let span = span.expect("its span");
        let previous =
            span.attributes.iter().find(|attribute| attribute.key.as_str() == "previous-rpc-attempts");
        assert_eq!(previous.map(|previous| previous.value.to_string()), Some(number.to_string()));
        let events = span.events.iter().map(|event| event.name.clone()).collect::<Vec<_>>();
        assert!(events.iter().any(|name| name == "Outbound message"), "{events:?}");
        assert_eq!(events.iter().any(|name| name == "Inbound message"), number == 2, "{events:?}");
        let sent = (number > 0).then(|| format!("grpc-previous-rpc-attempts: {number}"));
        assert!(sent.is_none_or(|sent| headers.contains(&sent)), "{headers}");
    }
}

/// OpenTelemetry's `network.peer.address` and `network.peer.port`.
#[tokio::test]
async fn attempt_names_the_server_it_was_sent_to() {
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(start(Server::builder().add_service(Echo::default())).await);
    }
    let list = servers.iter().map(|server| server.parse::<SocketAddr>().expect("an address"));
    let hedging = r#"{ "methodConfig": [{
        "name": [{ "service": "test.Echo", "method": "Echo" }], "hedgingPolicy": { "maxAttempts": 2 }
    }] }"#;
    let spans = Spans::new();
    let channel = Channel::builder("dns:///a-fleet.test:1").resolver(EndpointList::new(list));
    let channel = channel.load_balancing(PolicyConfig::RoundRobin).service_config(hedging);
    let channel = channel.traces(spans.traces()).connect().await.expect("servers");
    let is_ready =
        || channel.snapshot().endpoints.iter().all(|server| server.state == ConnectivityState::Ready);
    until(is_ready).await;
    let peers_of = async |name: &str| {
        let ended = spans.ended().await;
        assert!(ended.iter().all(|span| peer_of(span).is_some() == span.name.starts_with("Attempt")));
        let of_method = |span: &&SpanData| span.name == format!("Attempt.test.Echo.{name}");
        let mut peers: Vec<_> = ended.iter().filter(of_method).filter_map(peer_of).collect();
        peers.sort();
        peers
    };
    servers.sort();

    soon(echo(&channel, raw("abc"))).await.expect("an echo");
    assert_eq!(peers_of("Echo").await, servers, "hedged");
    for _ in 0..2 {
        let options = CallOptions::default();
        let request = Request::new(raw("1 1"));
        let responses = channel.server_streaming::<_, Raw>(&REPEAT, request, &options).await;
        read_all(responses.expect("a stream")).await.expect("messages");
        let mut responses = soon(chat(&channel, items(vec![raw("a")]))).await.expect("a stream");
        while soon(responses.message()).await.expect("messages").is_some() {}
    }
    // Calls go in turn: both servers get two of the four.
    let mut peers = [peers_of("Repeat").await, peers_of("Chat").await].concat();
    peers.sort();
    assert_eq!(peers, [&servers[0], &servers[0], &servers[1], &servers[1]].map(String::as_str));
}

#[tokio::test]
async fn retried_stream_repeats_message_events() {
    let spans = Spans::new();
    let (builder, accepted) = channel_to_test();
    let (channel, mut peer, _accepted) = connected_by(builder.traces(spans.traces()), accepted, &[]).await;
    let call = tokio::spawn(async move { chat(&channel, items(vec![raw("a"), raw("bc")])).await });
    let mut contexts = Vec::new();
    for is_last in [false, true] {
        let headers = soon(peer.next_of(Kind::Headers)).await;
        while !soon(peer.next_of(Kind::Data)).await.end_stream {}
        if is_last {
            peer.headers(headers.stream, false, HEAD).headers(headers.stream, true, OK).send().await;
        } else {
            peer.reset(headers.stream, ErrorCode::RefusedStream).send().await;
        }
        contexts.push(traceparent(&headers.text()));
    }
    assert_ne!(contexts[0], contexts[1]);
    let mut responses = soon(call).await.expect("no panic").expect("a stream");
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    check(
        &spans,
        &[
            "Sent.test.Echo.Chat Client OK",
            "  Attempt.test.Echo.Chat Internal [UNAVAILABLE, REFUSED_STREAM] FIRST",
            "    - Outbound message 0: 1",
            "    - Outbound message 1: 2",
            "  Attempt.test.Echo.Chat Internal OK RETRY",
            "    - Outbound message 0: 1",
            "    - Outbound message 1: 2",
        ],
    )
    .await;
}

#[tokio::test]
async fn waiting_for_name_and_connection_is_recorded() {
    let spans = Spans::new();
    let target = start(Server::builder().add_service(Echo::default())).await;
    let port = target.rsplit(':').next().expect("a port");
    let channel = Channel::builder(format!("localhost:{port}")).traces(spans.traces());
    let channel = channel.connect_lazy().expect("a target");
    for _ in 0..2 {
        echo(&channel, raw("")).await.expect("an echo");
    }
    check(
        &spans,
        &[
            "Sent.test.Echo.Echo Client OK",
            "  - Delayed name resolution complete",
            "  Attempt.test.Echo.Echo Internal OK FIRST",
            "    - Delayed LB pick complete",
            "    - Outbound message 0: 0",
            "    - Inbound message 0: 0",
            "Sent.test.Echo.Echo Client OK",
            "  Attempt.test.Echo.Echo Internal OK FIRST",
            "    - Outbound message 0: 0",
            "    - Inbound message 0: 0",
        ],
    )
    .await;

    // An IP address needs no name resolution.
    let spans = Spans::new();
    let channel = Channel::builder(&target).traces(spans.traces()).connect_lazy().expect("a target");
    echo(&channel, raw("")).await.expect("an echo");
    let tree = soon(spans.tree(2)).await;
    assert!(tree.contains("Delayed LB pick") && !tree.contains("Delayed name"), "{tree}");
}

#[tokio::test]
async fn failed_connect_is_recorded() {
    let spans = Spans::new();
    let channel = Channel::builder("127.0.0.1:1").traces(spans.traces()).connect_lazy().expect("a target");
    let status = echo(&channel, raw("a")).await.expect_err("nobody listens");
    let described = format!("[UNAVAILABLE, {}]", status.message());
    check(
        &spans,
        &[
            &format!("Sent.test.Echo.Echo Client {described}"),
            &format!("  Attempt.test.Echo.Echo Internal {described} FIRST"),
        ],
    )
    .await;
    assert_eq!(spans.ended().await.iter().find_map(peer_of), None);
}

#[tokio::test]
async fn span_processor_may_call_the_channel() {
    thread_local! {
        static IN_HOOK: Cell<bool> = const { Cell::new(false) };
    }
    let traced = Traced::new().await;
    let (channel, times) = (traced.channel.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&times);
    traced.spans.set_span_hook(move || {
        if IN_HOOK.replace(true) {
            return;
        }
        let channel = channel.clone();
        let mut call = Box::pin(async move { echo(&channel, raw("on the side")).await.is_ok() });
        poll_once(call.as_mut());
        drop(call);
        count.fetch_add(1, Ordering::SeqCst);
        IN_HOOK.set(false);
    });
    soon(echo(&traced.channel, raw("a"))).await.expect("an echo");
    let status = soon(echo(&traced.channel, raw("fail"))).await.expect_err("asked to");
    assert_eq!(status.code(), Code::NotFound);
    let responses = chat(&traced.channel, items(vec![raw("a")]));
    let mut responses = soon(responses).await.expect("a stream");
    while soon(responses.message()).await.expect("messages").is_some() {}
    assert!(times.load(Ordering::SeqCst) >= 9, "{times:?}");
    // The target still serves.
    let other = Channel::builder(&traced.target).connect().await.expect("a server");
    soon(echo(&other, raw("b"))).await.expect("an echo");
}
