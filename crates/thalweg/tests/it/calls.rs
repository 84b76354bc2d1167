//! The four call types over a real socket, and how they end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{CHAT, COUNT, ECHO, Echo, REPEAT, Receiver, connect, items, raw, serve, until};
use thalweg::{CallOptions, Code, Encoding, Raw, Request, Response, Status};

const SIZES: [usize; 9] = [0, 1, 5, 1000, 16_383, 16_384, 16_385, 100_000, 3_000_000];

fn large() -> CallOptions {
    let mut options = CallOptions::default();
    options.max_decoding_message_size = 8 << 20;
    options
}

#[tokio::test]
async fn unary_call_echoes_all_sizes() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    for size in SIZES {
        let sent = raw(vec![size as u8; size]);
        let response: Response<Raw> =
            channel.unary(&ECHO, Request::new(sent.clone()), &large()).await.expect("a response");
        assert!(response.get_ref() == &sent, "size {size}");
    }
}

#[tokio::test]
async fn unary_call_carries_metadata() {
    let channel = connect(&serve(Echo::default()).await).await;
    let mut request = Request::new(raw("hello"));
    request.metadata_mut().insert("x-echo", "value".parse().expect("ASCII"));
    let response: Response<Raw> =
        channel.unary(&ECHO, request, &CallOptions::default()).await.expect("a response");
    assert_eq!(response.metadata().get("x-echo").expect("echoed"), "value");
}

static NO_METHOD: thalweg::Method = thalweg::Method::new("/test.Echo/Nothing");
static NO_SERVICE: thalweg::Method = thalweg::Method::new("/test.Nothing/Nothing");

#[tokio::test]
async fn unary_call_returns_status_of_server() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let check = async |order: &'static str, method: &'static thalweg::Method, code: Code, text: &str| {
        let outcome: Result<Response<Raw>, Status> =
            channel.unary(method, Request::new(raw(order)), &CallOptions::default()).await;
        let status = outcome.expect_err(order);
        assert_eq!((status.code(), status.message()), (code, text), "{order}");
    };
    check("fail", &ECHO, Code::NotFound, "nichts: ü %").await;
    check("panic", &ECHO, Code::Internal, "the handler panicked").await;
    check("", &NO_METHOD, Code::Unimplemented, "unknown method Nothing for service test.Echo").await;
    check("", &NO_SERVICE, Code::Unimplemented, "unknown service test.Nothing").await;
    let response: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw("yield")), &CallOptions::default()).await;
    assert!(response.is_ok(), "the connection is as good as before: {response:?}");
}

#[tokio::test]
async fn message_over_limit_is_resource_exhausted() {
    let channel = connect(&serve(Echo::default()).await).await;
    let outcome: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw(vec![0; (4 << 20) + 1])), &CallOptions::default()).await;
    let status = outcome.expect_err("too large for the server");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(
        status.message(),
        "received message larger than max (4194305 vs. 4194304): see the receiver's max_decoding_message_size"
    );

    let mut options = CallOptions::default();
    options.max_decoding_message_size = 10;
    let outcome: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw(vec![0; 11])), &options).await;
    let status = outcome.expect_err("too large for the client");
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn client_streaming() {
    let channel = connect(&serve(Echo::default()).await).await;
    for (messages, size) in [(0, 0), (1, 0), (10_000, 0), (1000, 1000), (20, 1_000_000), (3, 3_000_000)] {
        let source = items(vec![raw(vec![1; size]); messages]);
        let response: Response<Raw> =
            channel.client_streaming(&COUNT, Request::new(source), &large()).await.expect("ok");
        assert_eq!(response.get_ref(), &raw(format!("{messages} {}", messages * size)));
    }
}

#[tokio::test]
async fn server_streaming() {
    let channel = connect(&serve(Echo::default()).await).await;
    for (messages, size) in [(0, 0), (1, 0), (10_000, 0), (1000, 1000), (20, 1_000_000), (3, 3_000_000)] {
        let order = Request::new(raw(format!("{messages} {size}")));
        let mut stream = channel
            .server_streaming::<Raw, Raw>(&REPEAT, order, &large())
            .await
            .expect("a stream")
            .into_inner();
        let mut received = 0;
        while let Some(Raw(message)) = stream.message().await.expect("a message") {
            assert_eq!(message.len(), size);
            received += 1;
        }
        assert_eq!(received, messages);
    }
}

#[tokio::test]
async fn bidi_streaming() {
    let channel = connect(&serve(Echo::default()).await).await;
    for (messages, size) in [(0, 0), (1, 0), (10_000, 0), (1000, 1000), (20, 1_000_000), (3, 3_000_000)] {
        let source = items((0..messages).map(|i| raw(vec![i as u8; size])).collect());
        let mut stream = channel
            .bidi_streaming::<_, Raw>(&CHAT, Request::new(source), &large())
            .await
            .expect("a stream")
            .into_inner();
        let mut received = 0;
        while let Some(Raw(message)) = stream.message().await.expect("a message") {
            assert!(
                message.len() == size && message.iter().all(|b| *b == received as u8),
                "message {received}"
            );
            received += 1;
        }
        assert_eq!(received, messages);
    }
}

#[tokio::test]
async fn concurrent_calls_succeed() {
    let channel = connect(&serve(Echo::default()).await).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..1000u32 {
        let channel = channel.clone();
        calls.spawn(async move {
            let sent = raw(number.to_be_bytes());
            let response: Response<Raw> = channel
                .unary(&ECHO, Request::new(sent.clone()), &CallOptions::default())
                .await
                .expect("a response");
            assert_eq!(response.get_ref(), &sent);
        });
    }
    while let Some(outcome) = calls.join_next().await {
        outcome.expect("no call failed");
    }
    assert_eq!(channel.lanes()[0].in_flight, 0);
}

/// Found by simulation: after the call that took the only slot, no one notified the next one of the free slot.
#[tokio::test]
async fn calls_wait_for_single_stream() {
    let channel = thalweg::Channel::builder("memory:1")
        .connector(|| async {
            let (client, server) = tokio::io::duplex(1 << 16);
            let one_slot = thalweg::Server::builder().max_concurrent_streams(1).add_service(Echo::default());
            tokio::spawn(one_slot.serve_connection(server));
            Ok(client)
        })
        .connect()
        .await
        .expect("a server");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let channel = channel.clone();
        calls.spawn(async move {
            channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("yield")), &CallOptions::default()).await
        });
    }
    let all = async {
        while let Some(outcome) = calls.join_next().await {
            outcome.expect("no panic").expect("a response");
        }
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.expect("no call waits for ever");
}

/// Found by simulation: the connection was established when nothing was left to close it.
#[tokio::test(start_paused = true)]
async fn channel_dropped_while_connecting_leaves_no_connection() {
    let (ended, mut is_finished) = tokio::sync::mpsc::unbounded_channel();
    let channel = thalweg::Channel::builder("memory:1")
        .connector(move || {
            let ended = ended.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let (client, server) = tokio::io::duplex(1 << 16);
                tokio::spawn(async move {
                    thalweg::Server::builder().serve_connection(server).await.expect("a configuration");
                    ended.send(()).expect("the test waits");
                });
                Ok(client)
            }
        })
        .connect_lazy()
        .expect("a good target");
    let call = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("early")), &large()).await_for(10).await;
    assert!(call.is_none(), "it still connects");
    drop(channel);
    tokio::time::timeout(Duration::from_secs(10), is_finished.recv()).await.expect("it closes");
}

/// Found by simulation: with full output, a status waited in its stream, and RST_STREAM(NO_ERROR) for the rest of the
/// request discarded it.
#[tokio::test]
async fn queued_statuses_arrive() {
    static NO_METHOD: thalweg::Method = thalweg::Method::new("/test.Echo/Nothing");
    let channel = thalweg::Channel::builder("memory:1")
        .connector(|| async {
            let (client, server) = tokio::io::duplex(1 << 16);
            let full_request = thalweg_engine::http2::Config::default().output_target(1);
            tokio::spawn(thalweg::Server::builder().http2(full_request).serve_connection(server));
            Ok(client)
        })
        .connect()
        .await
        .expect("a server");
    let options = large();
    let call = || {
        let (_, requests) = tokio::sync::mpsc::unbounded_channel::<Raw>();
        channel.bidi_streaming::<_, Raw>(&NO_METHOD, Request::new(Receiver(requests)), &options)
    };
    let (first, second) = tokio::join!(call(), call());
    for outcome in [first, second] {
        assert_eq!(outcome.expect_err("unknown method").code(), Code::Unimplemented);
    }
}

#[tokio::test]
async fn compressed_calls_succeed() {
    let mut echo = Echo::default();
    echo.options.send_compressed = Some(Encoding::Gzip);
    let channel = connect(&serve(echo).await).await;
    let mut options = CallOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    let sent = raw(vec![9; 100_000]);
    let response: Response<Raw> =
        channel.unary(&ECHO, Request::new(sent.clone()), &options).await.expect("a response");
    assert!(response.get_ref() == &sent);
}

#[tokio::test]
async fn dropped_call_cancels_handler() {
    let echo = Echo::default();
    let channel = connect(&serve(echo.clone()).await).await;
    let call = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("sleep")), &large()).await_for(500).await;
    assert!(call.is_none(), "it sleeps");
    until(|| echo.cancelled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(channel.lanes()[0].in_flight, 0);
}

#[tokio::test]
async fn deadline_expires_on_both_sides() {
    let echo = Echo::default();
    let channel = connect(&serve(echo.clone()).await).await;
    let mut request = Request::new(raw("sleep"));
    request.set_timeout(Duration::from_millis(500));
    let outcome: Result<Response<Raw>, Status> = channel.unary(&ECHO, request, &large()).await;
    assert_eq!(outcome.expect_err("it sleeps").code(), Code::DeadlineExceeded);
    until(|| echo.cancelled.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn call_without_server_is_unavailable() {
    let outcome = thalweg::Channel::builder("127.0.0.1:1").connect().await;
    let error = outcome.expect_err("nobody listens on port 1").to_string();
    assert!(error.contains("127.0.0.1:1") && error.contains("check that the server is running"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn graceful_shutdown_waits_for_calls() {
    let server = thalweg::Server::builder()
        .add_service(Echo::default())
        .bind(&["127.0.0.1:0".parse().expect("an address")])
        .await
        .expect("a free port");
    let target = server.local_addresses()[0].to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
    let channel = connect(&target).await;
    let (sender, source) = tokio::sync::mpsc::unbounded_channel::<Raw>();
    let mut stream = channel
        .bidi_streaming::<_, Raw>(&CHAT, Request::new(Receiver(source)), &large())
        .await
        .expect("a stream")
        .into_inner();
    stop.send(()).expect("it serves");
    tokio::time::sleep(Duration::from_millis(100)).await;
    sender.send(raw("still here")).expect("open");
    assert_eq!(stream.message().await.expect("a message"), Some(raw("still here")));
    drop(sender);
    assert_eq!(stream.message().await.expect("the end"), None);
    tokio::time::timeout(Duration::from_secs(10), serving)
        .await
        .expect("it stops")
        .expect("no panic")
        .expect("no error");
}

trait AwaitFor: Future + Sized {
    /// Returns the outcome if it is ready within `ms` milliseconds; otherwise drops the future.
    async fn await_for(self, ms: u64) -> Option<Self::Output> {
        tokio::time::timeout(Duration::from_millis(ms), self).await.ok()
    }
}

impl<F: Future> AwaitFor for F {}
