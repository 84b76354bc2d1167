//! Responses at the client: valid gRPC responses, and the handling of all others (PROTOCOL-HTTP2).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{CallOptions, Channel, Code, EndpointList, Keepalive, Method, Status};
use tokio::sync::mpsc;

use crate::support::peer::{OK, OK_HEADERS, Peer};
use crate::support::{
    CHAT, COUNT, ECHO, Echo, Message, Messages, NO_METADATA, Receiver, Served, call_options, channel_config,
    connected, count, echo, fields, in_flight, items, raw, server_config, settled, soon, spawn_echo,
    spawn_echo_with, stream, unary, until,
};

/// Returns the outcomes of a unary call and of a stream that the server answers with the frames of `say`.
async fn outcomes(say: impl Fn(&mut Peer, u32)) -> [Result<Vec<Message>, Status>; 2] {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let unary = spawn_echo(&channel, "x");
    let data = soon(peer.next_of(Kind::Data)).await;
    say(&mut peer, data.stream);
    peer.send().await;
    let unary = soon(unary).await.expect("no panic").map(|message| vec![message]);
    let streaming = tokio::spawn({
        let channel = channel.clone();
        async move {
            let options = CallOptions::default();
            let responses = stream(&channel, &CHAT, items(vec![raw("x")]), &options).await?;
            responses.rest().await.map(|(messages, _)| messages)
        }
    });
    let data = soon(peer.next_of(Kind::Data)).await;
    say(&mut peer, data.stream);
    peer.send().await;
    let outcomes = [unary, soon(streaming).await.expect("no panic")];
    settled(&mut peer).await;
    assert_eq!(in_flight(&channel), 0);
    outcomes
}

async fn check_failed(say: impl Fn(&mut Peer, u32), code: Code, text: &str) {
    for outcome in outcomes(say).await {
        let status = outcome.expect_err("it is no response");
        assert_eq!(status.code(), code, "{status:?}");
        assert!(status.message().contains(text), "{text} is not in\n{}", status.message());
    }
}

#[tokio::test(start_paused = true)]
async fn response_ends_with_trailers() {
    let complete = outcomes(|peer, stream| {
        peer.headers(stream, false, OK_HEADERS).message(stream, false, b"y").headers(stream, true, OK);
    });
    for outcome in complete.await {
        assert_eq!(outcome.expect("a response"), [raw("y")]);
    }
    // END_STREAM on DATA, or on headers without a status.
    let cut = |peer: &mut Peer, stream: u32| {
        peer.headers(stream, false, OK_HEADERS).message(stream, true, b"y");
    };
    check_failed(cut, Code::Internal, "without trailers").await;
    check_failed(
        |peer, stream| {
            peer.headers(stream, true, OK_HEADERS);
        },
        Code::Unknown,
        "",
    )
    .await;
    // Trailers without a status.
    check_failed(
        |peer, stream| {
            peer.headers(stream, false, OK_HEADERS).message(stream, false, b"y");
            peer.headers(stream, true, &[("x-other", "1")]);
        },
        Code::Unknown,
        "",
    )
    .await;
}

/// Trailers-Only: one header block with the status. With OK, there is no message.
#[tokio::test(start_paused = true)]
async fn trailers_only_response_has_a_status_and_no_message() {
    check_failed(
        |peer, stream| {
            let failed = [("grpc-status", "5"), ("grpc-message", "nichts: %C3%BC %25")];
            peer.headers(stream, true, &[OK_HEADERS, &failed].concat());
        },
        Code::NotFound,
        "nichts: ü %",
    )
    .await;
    let [unary, streaming] = outcomes(|peer, stream| {
        peer.headers(stream, true, &[OK_HEADERS, OK].concat());
    })
    .await;
    assert_eq!(unary.expect_err("no message").code(), Code::Unimplemented);
    assert_eq!(streaming.expect("an empty stream"), []);
}

/// gRPC's "HTTP to gRPC Status Code Mapping".
#[tokio::test(start_paused = true)]
async fn http_status_becomes_a_status() {
    for (status, code) in [
        ("400", Code::Internal),
        ("401", Code::Unauthenticated),
        ("403", Code::PermissionDenied),
        ("404", Code::Unimplemented),
        ("429", Code::Unavailable),
        ("502", Code::Unavailable),
        ("503", Code::Unavailable),
        ("504", Code::Unavailable),
        ("500", Code::Unknown),
    ] {
        let html = [(":status", status), ("content-type", "text/html")];
        check_failed(
            |peer, stream| {
                peer.headers(stream, false, &html).data(stream, true, b"<html>");
            },
            code,
            status,
        )
        .await;
        check_failed(
            |peer, stream| {
                peer.headers(stream, true, &html);
            },
            code,
            status,
        )
        .await;
    }
}

/// An invalid response is reset, so that the server can stop.
#[tokio::test(start_paused = true)]
async fn useless_response_is_reset() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let mut stream = 1;
    let mut check = async |headers: &[(&str, &str)], body: &[u8]| {
        let call = spawn_echo(&channel, "x");
        soon(peer.next_of(Kind::Data)).await;
        peer.headers(stream, false, headers).data(stream, false, body).send().await;
        soon(call).await.expect("no panic").expect_err("it is no response");
        let reset = soon(peer.next_of(Kind::RstStream)).await;
        assert_eq!((reset.stream, reset.code()), (stream, ErrorCode::Cancel));
        stream += 2;
    };
    check(&[(":status", "200"), ("content-type", "text/html")], b"").await;
    check(&[OK_HEADERS, &[("grpc-encoding", "snappy")]].concat(), b"").await;
    check(OK_HEADERS, b"\x09\0\0\0\x01x").await;
    // A stream is reset at once, before its reader is dropped.
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { stream_of(&channel).await }
    });
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.headers(stream, false, OK_HEADERS).send().await;
    let mut responses = soon(call).await.expect("no panic").expect("headers");
    peer.data(stream, false, b"\0\xff\xff\xff\xff").send().await;
    let reset = soon(peer.next_of(Kind::RstStream)).await;
    assert_eq!((reset.stream, reset.code()), (stream, ErrorCode::Cancel));
    assert_eq!(soon(responses.message()).await.expect_err("too large").code(), Code::ResourceExhausted);
}

async fn stream_of(channel: &Channel) -> Result<Messages, Status> {
    stream(channel, &CHAT, items(vec![raw("x")]), &CallOptions::default()).await
}

/// Unary calls and calls with one response require exactly one message.
#[tokio::test(start_paused = true)]
async fn response_of_several_messages_or_none_fails_a_call_for_one() {
    for (messages, is_well) in [(0, false), (1, true), (2, false)] {
        let say = |peer: &mut Peer, stream: u32| {
            peer.headers(stream, false, OK_HEADERS);
            for _ in 0..messages {
                peer.message(stream, false, b"y");
            }
            peer.headers(stream, true, OK);
        };
        let [unary, streaming] = outcomes(say).await;
        assert_eq!(unary.is_ok(), is_well, "{messages}: {unary:?}");
        assert_eq!(streaming.expect("a stream").len(), messages);
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call =
            tokio::spawn(
                async move { count(&channel, items(vec![raw("x")]), &CallOptions::default()).await },
            );
        let data = soon(peer.next_of(Kind::Data)).await;
        say(&mut peer, data.stream);
        peer.send().await;
        let counted = soon(call).await.expect("no panic");
        assert_eq!(counted.as_ref().is_ok(), is_well, "{messages}: {counted:?}");
        if let Err(status) = counted {
            assert_eq!(status.code(), Code::Unimplemented);
        }
    }
}

/// RFC 9113 §8.1: informational headers precede the response and are ignored.
#[tokio::test(start_paused = true)]
async fn informational_headers_are_skipped() {
    let outcomes = outcomes(|peer, stream| {
        peer.headers(stream, false, &[(":status", "103"), ("link", "x")]);
        peer.headers(stream, false, OK_HEADERS).message(stream, false, b"y").headers(stream, true, OK);
    });
    for outcome in outcomes.await {
        assert_eq!(outcome.expect("a response"), [raw("y")]);
    }
}

/// A failure includes the metadata of headers that preceded it.
#[tokio::test(start_paused = true)]
async fn failure_has_metadata_of_headers_and_trailers() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    soon(peer.next_of(Kind::Data)).await;
    peer.headers(1, false, &[OK_HEADERS, &[("x-head", "1")]].concat());
    peer.headers(1, true, &[("grpc-status", "9"), ("x-trailer", "2"), ("grpc-status-details-bin", "ZAA")]);
    peer.send().await;
    let status = soon(call).await.expect("no panic").expect_err("it failed");
    assert_eq!((status.code(), status.details()), (Code::FailedPrecondition, &b"d\0"[..]));
    assert_eq!(*status.metadata().as_ref(), fields(&[("x-head", "1"), ("x-trailer", "2")]));
}

/// The headers of a stream are available before its first message, and messages as they arrive.
#[tokio::test(start_paused = true)]
async fn stream_returns_headers_and_messages_as_they_arrive() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let (requests, source) = mpsc::unbounded_channel();
    let call = tokio::spawn({
        let channel = channel.clone();
        async move {
            let options = CallOptions::default();
            let (exchange, headers) = channel.stream(&CHAT, &NO_METADATA, Receiver(source), &options).await?;
            Ok::<_, Status>((Messages(exchange.into_responses()), headers))
        }
    });
    let stream = soon(peer.next_of(Kind::Headers)).await.stream;
    peer.headers(stream, false, &[OK_HEADERS, &[("x-head", "1")]].concat()).send().await;
    let (mut responses, headers) = soon(call).await.expect("no panic").expect("headers");
    assert_eq!(headers, fields(&[("x-head", "1")]));
    // Requests continue in the background.
    requests.send(raw("late")).expect("open");
    assert!(soon(peer.next_of(Kind::Data)).await.payload.ends_with(b"late"));
    for piece in [&b"\0\0\0"[..], b"\0\x02a", b"b\0\0\0\0\x01c"] {
        peer.data(stream, false, piece).send().await;
    }
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("ab")));
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("c")));
    peer.headers(stream, true, &[OK, &[("x-trailer", "2")]].concat()).send().await;
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    assert_eq!(responses.0.take_trailers(), Some(fields(&[("x-trailer", "2")])));
    assert!(responses.0.is_finished());
    // A call that has ended drops its requests.
    until(|| requests.is_closed()).await;
    assert_eq!(in_flight(&channel), 0);
}

/// A truncated message is an error, not an end.
#[tokio::test(start_paused = true)]
async fn truncated_message_is_an_error() {
    check_failed(
        |peer, stream| {
            peer.headers(stream, false, OK_HEADERS)
                .data(stream, false, b"\0\0\0\0\x05abc")
                .headers(stream, true, OK);
        },
        Code::Internal,
        "",
    )
    .await;
}

/// A call without a connection fails at once with the reason, or waits for a connection with wait-for-ready.
#[tokio::test(start_paused = true)]
async fn call_without_a_connection_fails_or_waits() {
    let refuse = Arc::new(AtomicBool::new(true));
    let service = Echo::default();
    let served = Arc::new(Served::echo(&service));
    let config = channel_config(|config| {
        let refuse = Arc::clone(&refuse);
        config.set_connector(move || {
            let pipe = if refuse.load(Ordering::SeqCst) {
                Err(std::io::Error::other("asked to refuse"))
            } else {
                Ok(served.pipe())
            };
            async move { pipe }
        });
    });
    let channel = Channel::new("memory:1", config).expect("a target");
    let status = soon(echo(&channel, raw("x"))).await.expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("asked to refuse"), "{}", status.message());
    let waiting = tokio::spawn({
        let channel = channel.clone();
        let options = call_options(|options| options.wait_for_ready = Some(true));
        async move { unary(&channel, &NO_METADATA, raw("x"), &options).await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!waiting.is_finished());
    refuse.store(false, Ordering::SeqCst);
    let outcome = tokio::time::timeout(Duration::from_secs(200), waiting).await;
    outcome.expect("in time").expect("no panic").expect("a response");
}

/// Metadata beyond the server's limit fails before it is sent.
#[tokio::test(start_paused = true)]
async fn metadata_beyond_the_limit_is_not_sent() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxHeaderListSize(1000)]).await;
    let mut metadata = fields(&[]);
    metadata.insert("x-long", "v".repeat(1000).parse().expect("text"));
    let status =
        unary(&channel, &metadata, raw("x"), &CallOptions::default()).await.expect_err("it is too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("accepts 1000"), "{}", status.message());
    let options = CallOptions::default();
    let called = channel.stream(&COUNT, &metadata, items(vec![]), &options).await;
    assert_eq!(called.map(|_| ()).expect_err("it is too large").code(), Code::ResourceExhausted);
    assert!(settled(&mut peer).await.is_empty(), "nothing was sent");
}

/// Calls state their content subtype.
#[tokio::test(start_paused = true)]
async fn method_has_its_content_subtype() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let text = Method::new(ECHO.path()).with_content_subtype("text");
    for (stream, method, expected) in [
        (1, &text, "application/grpc+text\n"),
        (3, &ECHO, "application/grpc\n"),
        (5, &text, "application/grpc+text\n"),
    ] {
        let call = tokio::spawn({
            let (channel, method) = (channel.clone(), method.clone());
            async move { channel.unary(&method, &NO_METADATA, &raw("x"), &CallOptions::default()).await.map(drop) }
        });
        let headers = soon(peer.next_of(Kind::Headers)).await.text();
        assert!(headers.contains(&format!("content-type: {expected}")), "{headers}");
        peer.headers(stream, false, OK_HEADERS)
            .message(stream, false, b"y")
            .headers(stream, true, OK)
            .send()
            .await;
        soon(call).await.expect("no panic").expect("a response");
    }
}

/// If the server opens its window late, the remaining data is sent then.
#[tokio::test(start_paused = true)]
async fn message_waits_for_the_servers_window() {
    let (channel, mut peer, _accepted) = connected(&[Setting::InitialWindowSize(0)]).await;
    let call = spawn_echo(&channel, "waits");
    let stream = soon(peer.next_of(Kind::Headers)).await.stream;
    assert!(settled(&mut peer).await.is_empty());
    peer.frame(Kind::WindowUpdate, Flags::NONE, stream, &7_u32.to_be_bytes()).send().await;
    assert_eq!(soon(peer.next_of(Kind::Data)).await.payload, b"\0\0\0\0\x05wa");
    peer.frame(Kind::WindowUpdate, Flags::NONE, stream, &7_u32.to_be_bytes()).send().await;
    let data = soon(peer.next_of(Kind::Data)).await;
    assert_eq!((&data.payload[..], data.end_stream), (&b"its"[..], true));
    peer.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"y")
        .headers(stream, true, OK)
        .send()
        .await;
    soon(call).await.expect("no panic").expect("a response");
}

/// `Duration::MAX` stands for "unlimited" in settings of times.
#[tokio::test(start_paused = true)]
async fn longest_times_are_unlimited() {
    let unlimited = Duration::MAX;
    let keepalive = Some(Keepalive::every(unlimited).timeout(unlimited).without_calls(true));
    for policy in [PolicyConfig::default(), PolicyConfig::RoundRobin] {
        let server = server_config(|config| {
            (config.max_connection_idle, config.max_connection_age) = (Some(unlimited), Some(unlimited));
            (config.max_connection_age_grace, config.keepalive) = (Some(unlimited), keepalive);
            (config.header_timeout, config.request_timeout) = (unlimited, Some(unlimited));
            config.reply_timeout = Some(unlimited);
        });
        let served = Served::start(server, Echo::default().router());
        let channel = served.channel(|config| {
            config.load_balancing = policy.clone();
            config.set_resolver(EndpointList::new(["10.0.0.1:1".parse::<SocketAddr>().expect("an address")]));
            config.connect_timeout = unlimited;
            (config.idle_timeout, config.keepalive) = (Some(unlimited), keepalive);
            (config.backoff.base_delay, config.backoff.max_delay) = (unlimited, unlimited);
            (config.resolution_refresh, config.resolution_interval_min) = (Some(unlimited), unlimited);
            config.call_options.timeout = Some(unlimited);
        });
        let channel = channel.await;
        let options = channel.call_options().clone();
        let call = spawn_echo_with(&channel, raw("x"), options);
        soon(call).await.expect("no panic").expect("a response");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        soon(echo(&channel, raw("x"))).await.expect("a response");
    }
}
