//! Deadlines (`grpc-timeout`) are transmitted, and expire on both sides in any state of the call.

use std::time::Duration;

use http::HeaderMap;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Kind, Setting};
use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{CallOptions, Channel, ChannelConfig, Code, EndpointList, Status};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::raw as raw_calls;
use crate::support::peer::{OK, OK_HEADERS, REQUEST, envelope};
use crate::support::{
    CHAT, COUNT, Echo, Message, NO_METADATA, Receiver, Served, call_options, channel_config, channel_to_test,
    client_of, client_with, connected, fields, in_flight, items, raw, request_at, server_config, settled,
    soon, spawn_echo, spawn_echo_with, stream, unary, until, within,
};

/// The server's own timer ends a call, with Trailers-Only, or with trailers after the headers.
#[tokio::test(start_paused = true)]
async fn deadline_fires_on_the_server() {
    let echo = Echo::default();
    let mut peer = client_of(&echo).await;
    let started = Instant::now();
    peer.headers(1, false, &[REQUEST, &[("grpc-timeout", "500m")]].concat())
        .message(1, true, b"sleep")
        .send()
        .await;
    let response = soon(peer.next_of(Kind::Headers)).await;
    assert_eq!(started.elapsed().as_millis(), 500);
    assert!(response.end_stream && response.text().contains("grpc-status: 4\n"), "{}", response.text());
    assert!(response.text().contains("the handler was still running"), "{}", response.text());
    until(|| echo.cancelled() == 1).await;

    let chat = request_at("/test.Echo/Chat");
    let started = Instant::now();
    peer.headers(3, false, &[&chat[..], &[("grpc-timeout", "2S")]].concat())
        .message(3, false, b"x")
        .send()
        .await;
    let headers = soon(peer.next_of(Kind::Headers)).await;
    assert!(!headers.end_stream && headers.text().contains(":status: 200\n"));
    let trailers = soon(peer.next_of(Kind::Headers)).await;
    assert_eq!(started.elapsed().as_millis(), 2000);
    assert!(trailers.end_stream && trailers.text().contains("grpc-status: 4\n"), "{}", trailers.text());
    assert!(!trailers.text().contains(":status"), "{}", trailers.text());
    // The request has not ended.
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::NoError);
    until(|| echo.cancelled() == 2).await;

    let count = request_at("/test.Echo/Count");
    peer.headers(5, false, &[&count[..], &[("grpc-timeout", "2S")]].concat())
        .message(5, false, b"x")
        .send()
        .await;
    let response = soon(peer.next_of(Kind::Headers)).await;
    assert!(response.end_stream && response.text().contains("grpc-status: 4\n"), "{}", response.text());
}

/// The deadline counts from the headers. A request that is complete only after it is rejected, and no handler starts.
#[tokio::test(start_paused = true)]
async fn request_completed_after_deadline_is_refused() {
    let check = async |pauses: [u64; 2], expected: u64, text: &str, starts: usize| {
        let echo = Echo::default();
        let mut peer = client_of(&echo).await;
        let started = Instant::now();
        peer.headers(1, false, &[REQUEST, &[("grpc-timeout", "900m")]].concat()).send().await;
        let envelope = envelope(b"sleep");
        sleep(Duration::from_millis(pauses[0])).await;
        peer.data(1, false, &envelope[..3]).send().await;
        sleep(Duration::from_millis(pauses[1])).await;
        peer.data(1, true, &envelope[3..]).send().await;
        let ended = soon(peer.next_of(Kind::Headers)).await;
        assert!(ended.end_stream && ended.text().contains("grpc-status: 4\n"), "{}", ended.text());
        assert!(ended.text().contains(text), "{}", ended.text());
        assert_eq!(started.elapsed().as_millis(), u128::from(expected));
        assert_eq!(echo.started(), starts, "{pauses:?}");
    };
    check([300, 300], 900, "the handler was still running", 1).await;
    check([300, 601], 901, "the request was not complete", 0).await;
    check([100, 800], 900, "the request was not complete", 0).await;
}

/// A request that never completes ends at the next maintenance pass.
#[tokio::test(start_paused = true)]
async fn incomplete_request_ends_at_its_deadline() {
    let echo = Echo::default();
    let mut peer = client_of(&echo).await;
    let started = Instant::now();
    peer.headers(1, false, &[REQUEST, &[("grpc-timeout", "3S")]].concat())
        .data(1, false, &[0, 0])
        .send()
        .await;
    let ended = soon(peer.next_of(Kind::Headers)).await;
    assert!(ended.end_stream && ended.text().contains("grpc-status: 4\n"), "{}", ended.text());
    assert!((3..=4).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    assert_eq!(echo.started(), 0);
}

async fn deadline_of(call: JoinHandle<Result<Message, Status>>) -> String {
    let status = soon(call).await.expect("no panic").expect_err("it takes too long");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    status.message().to_owned()
}

/// The client ends a call in time in any state, and reports that state. A call with a stream is reset with CANCEL.
#[tokio::test(start_paused = true)]
async fn client_deadline_names_the_incomplete_step() {
    const TIME: Duration = Duration::from_secs(3);
    let check = async |call: JoinHandle<Result<Message, Status>>, text: &str| {
        let started = Instant::now();
        let message = deadline_of(call).await;
        assert_eq!(started.elapsed(), TIME, "{text}");
        assert!(message.contains(text), "{text} is not in\n{message}");
        assert!(message.contains("/test.Echo/Echo to memory:1"), "{message}");
    };
    // Without a connection.
    let (channel, _accepted) = channel_to_test(channel_config(|_| {}));
    check(spawn_echo_with(&channel, raw("x"), within(TIME)), "no connection was ready").await;

    let settings = [Setting::MaxConcurrentStreams(1), Setting::InitialWindowSize(6)];
    let (channel, mut peer, _accepted) = connected(&settings).await;
    let under_way = spawn_echo(&channel, "x");
    soon(peer.next_of(Kind::Data)).await;
    check(spawn_echo_with(&channel, raw("x"), within(TIME)), "no stream was free").await;
    assert_eq!(channel.waiting(), 0);
    under_way.abort();
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);

    let reset = async |peer: &mut crate::support::peer::Peer| {
        assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
    };
    check(
        spawn_echo_with(&channel, raw("longer"), within(TIME)),
        "5 bytes of the request message were not sent",
    )
    .await;
    reset(&mut peer).await;
    check(spawn_echo_with(&channel, raw("x"), within(TIME)), "no response arrived in time").await;
    reset(&mut peer).await;
    let call = spawn_echo_with(&channel, raw("x"), within(TIME));
    let headers = soon(peer.next_of(Kind::Headers)).await;
    assert!(headers.text().contains("grpc-timeout: "), "{}", headers.text());
    peer.headers(headers.stream, false, OK_HEADERS)
        .data(headers.stream, false, b"\0\0\0\0\x09abc")
        .send()
        .await;
    check(call, "the response was incomplete, with 8 bytes of its message").await;
    reset(&mut peer).await;
    assert_eq!(in_flight(&channel), 0);
}

/// The value of `grpc-timeout` has at most eight digits, and never exceeds the remaining time.
#[tokio::test(start_paused = true)]
async fn grpc_timeout_is_the_remaining_time() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    for (timeout, expected) in [
        (Duration::from_secs(10), "grpc-timeout: 10S\n"),
        (Duration::from_millis(1500), "grpc-timeout: 1500m\n"),
        (Duration::from_micros(1_234_567), "grpc-timeout: 1234567u\n"),
    ] {
        let call = spawn_echo_with(&channel, raw("x"), within(timeout));
        let headers = soon(peer.next_of(Kind::Headers)).await;
        assert!(headers.text().contains(expected), "{expected} is not in\n{}", headers.text());
        call.abort();
    }
    // Even if given in the call's own metadata.
    let metadata = fields(&[("grpc-timeout", "2S")]);
    let started = Instant::now();
    let outcome = unary(&channel, &metadata, raw("x"), &CallOptions::default()).await;
    assert_eq!(outcome.expect_err("it takes too long").code(), Code::DeadlineExceeded);
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

/// Streams: before their headers, between two messages, and with a single response.
#[tokio::test(start_paused = true)]
async fn stream_deadline_fires_at_any_point() {
    let service = Echo::default();
    let channel = Served::echo(&service).channel(|_| {}).await;
    let options = within(Duration::from_secs(2));

    let (requests, source) = mpsc::unbounded_channel();
    let started = Instant::now();
    let mut responses = soon(stream(&channel, &CHAT, Receiver(source), &options)).await.expect("headers");
    requests.send(raw("x")).expect("open");
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("x")));
    let status = soon(responses.message()).await.expect_err("it goes on too long");
    assert_eq!((status.code(), started.elapsed().as_secs()), (Code::DeadlineExceeded, 2), "{status:?}");
    assert_eq!(soon(responses.message()).await.expect("it said so already"), None);

    let (_requests, source) = mpsc::unbounded_channel();
    let called = soon(channel.stream(&COUNT, &NO_METADATA, Receiver(source), &options)).await;
    assert_eq!(called.map(drop).expect_err("no head comes").code(), Code::DeadlineExceeded);
    until(|| service.cancelled() == 2).await;
    assert_eq!(in_flight(&channel), 0);

    // By the client's own timer.
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn({
        let (channel, options) = (channel.clone(), options.clone());
        async move { stream(&channel, &CHAT, items(vec![raw("x")]), &options).await?.message().await }
    });
    soon(peer.next_of(Kind::Data)).await;
    let started = Instant::now();
    peer.headers(1, false, OK_HEADERS).send().await;
    let status = soon(call).await.expect("no panic").expect_err("no message comes");
    assert_eq!((status.code(), started.elapsed().as_secs()), (Code::DeadlineExceeded, 2), "{status:?}");
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);

    // After the headers, but before the single response.
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { crate::support::count(&channel, items(vec![raw("x")]), &options).await }
    });
    soon(peer.next_of(Kind::Data)).await;
    peer.headers(1, false, OK_HEADERS).send().await;
    deadline_of(call).await;
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
    assert_eq!(in_flight(&channel), 0);
}

/// The caller gets DEADLINE_EXCEEDED even if the server's clock ends the call first.
#[tokio::test(start_paused = true)]
async fn reset_after_deadline_is_deadline_exceeded() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo_with(&channel, raw("x"), within(Duration::from_secs(1)));
    soon(peer.next_of(Kind::Data)).await;
    sleep(Duration::from_millis(999)).await;
    peer.headers(1, true, &[OK_HEADERS, &[("grpc-status", "4"), ("grpc-message", "theirs")]].concat())
        .send()
        .await;
    assert!(deadline_of(call).await.contains("theirs"));
    // A response in time succeeds.
    let call = spawn_echo_with(&channel, raw("x"), within(Duration::from_secs(1)));
    soon(peer.next_of(Kind::Data)).await;
    sleep(Duration::from_millis(999)).await;
    peer.headers(3, false, OK_HEADERS).message(3, false, b"y").headers(3, true, OK).send().await;
    assert_eq!(soon(call).await.expect("no panic").expect("a response"), raw("y"));
}

/// The deadline also applies while a call waits on a full connection for other responses to be sent.
#[tokio::test(start_paused = true)]
async fn deadline_fires_while_the_call_waits_for_room() {
    let echo = Echo::default();
    let config = server_config(|config| config.http2.buffer_budget = 1 << 20);
    let mut peer = client_with(config, echo.router()).await;
    for stream in (1..12).step_by(2) {
        peer.headers(stream, false, REQUEST).message(stream, true, b"size 1000000");
    }
    settled(&mut peer).await;
    let repeat = request_at("/test.Echo/Repeat");
    let started = Instant::now();
    peer.headers(21, false, &[&repeat[..], &[("grpc-timeout", "500m")]].concat())
        .message(21, true, b"1 1")
        .send()
        .await;
    loop {
        let frame = soon(peer.next_of(Kind::Headers)).await;
        if frame.stream == 21 {
            assert!(frame.end_stream && frame.text().contains("grpc-status: 4\n"), "{}", frame.text());
            assert!(frame.text().contains("the response waited for memory"), "{}", frame.text());
            break;
        }
    }
    assert_eq!(started.elapsed().as_millis(), 500);
}

/// Each handler gets its own call's timeout, although identical header blocks are parsed once. The same holds for large
/// requests, which are decoded in a task.
#[tokio::test(start_paused = true)]
async fn handler_gets_timeout_of_its_call() {
    let large = raw(format!("timeout{}", " ".repeat(300_000)));
    let (some, other) = (Some(1_234_567), Some(2_345_678));
    for timeouts in [[None, some, other, other, Some(9_000_000), None], [some, None, other, None, some, None]]
    {
        let channel = Served::echo(&Echo::default()).channel(|_| {}).await;
        // From the second round on, the headers consist of indices.
        for timeout in [timeouts; 3].concat() {
            let timeout = timeout.map(Duration::from_micros);
            let options = call_options(|options| options.timeout = timeout);
            for message in [raw("timeout"), large.clone()] {
                let (message, _) =
                    soon(unary(&channel, &NO_METADATA, message, &options)).await.expect("a response");
                assert_eq!(message, raw(format!("{timeout:?}")));
            }
        }
    }
}

/// A timeout of zero, or one that has passed before the call starts, fails it, however fast the server is.
#[tokio::test]
async fn expired_call_is_never_sent() {
    let service = Echo::default();
    let config =
        |timeout: &str| format!(r#"{{ "methodConfig": [{{ "name": [{{}}], "timeout": "{timeout}" }}] }}"#);
    let plain = Served::echo(&service).channel(|_| {}).await;
    let of_config = Served::echo(&service).channel(|to| to.service_config = Some(config("0s").into())).await;
    let balanced = |to: &mut ChannelConfig| {
        to.load_balancing = PolicyConfig::RoundRobin;
        to.set_resolver(EndpointList::new([std::net::SocketAddr::from(([10, 0, 0, 1], 1))]));
        to.service_config = Some(config("0.000000001s").into());
    };
    let balanced = Served::echo(&service).channel(balanced).await;
    let check = async |channel: &Channel, timeout: Option<Duration>, metadata: &HeaderMap| {
        let options = call_options(|options| options.timeout = timeout);
        for _ in 0..20 {
            let error = unary(channel, metadata, raw("x"), &options).await.expect_err("no time");
            assert_eq!(error.code(), Code::DeadlineExceeded);
            let expected = "deadline exceeded: the request was not sent yet [/test.Echo/Echo to ";
            assert!(error.message().starts_with(expected), "{error}");
            let started = channel.stream(&CHAT, metadata, items(vec![raw("x")]), &options).await;
            let error = started.err().expect("no time");
            assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        }
    };
    check(&plain, Some(Duration::ZERO), &NO_METADATA).await;
    check(&plain, Some(Duration::from_nanos(1)), &NO_METADATA).await;
    check(&plain, None, &fields(&[("grpc-timeout", "0n")])).await;
    check(&of_config, None, &NO_METADATA).await;
    check(&of_config, Some(Duration::from_secs(9)), &NO_METADATA).await;
    check(&balanced, None, &NO_METADATA).await;
    let request =
        raw_calls::request("/test.Echo/Echo", "application/grpc", raw_calls::Pieces::of([b"\0\0\0\0\x01x"]));
    let error = raw_calls::send(&of_config, request).await.expect_err("no time");
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    sleep(Duration::from_millis(20)).await;
    assert_eq!(service.started(), 0);
}
