//! Cancellation from both sides (RFC 9113 §8.1, §5.4.2): CANCEL ends handlers, and keeps others from starting.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::server::{Handler, ServerMethod, StreamingCall, StreamingHandler};
use thalweg_engine::{CallOptions, Code, RequestHead, ServiceOptions, Source, Status};
use tokio::sync::mpsc;

use crate::support::peer::{OK_HEADERS, REQUEST};
use crate::support::{
    BoxFuture, CHAT, Echo, Message, Messages, REPEAT, Receiver, Served, chat, client_of, client_with,
    connected, count, echo, in_flight, items, raw, request_at, routes, server_config, settled, soon,
    spawn_echo, stream, until,
};

/// Dropping a call ends its handler, for all call types.
#[tokio::test(start_paused = true)]
async fn dropped_call_ends_its_handler() {
    let service = Echo::default();
    let channel = Served::echo(&service).channel(|_| {}).await;

    let call = spawn_echo(&channel, "sleep");
    until(|| service.started() == 1).await;
    call.abort();
    until(|| service.cancelled() == 1).await;

    let (requests, source) = mpsc::unbounded_channel();
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { count(&channel, Receiver(source), &CallOptions::default()).await }
    });
    until(|| service.started() == 2).await;
    call.abort();
    until(|| service.cancelled() == 2 && requests.is_closed()).await;

    // Responses that are not read completely.
    let options = CallOptions::default();
    let mut responses =
        soon(stream(&channel, &REPEAT, items(vec![raw("1000 10000")]), &options)).await.expect("headers");
    assert!(soon(responses.message()).await.expect("a message").is_some());
    drop(responses);
    until(|| service.cancelled() == 3).await;

    let (requests, source) = mpsc::unbounded_channel();
    let responses = soon(chat(&channel, Receiver(source))).await.expect("headers");
    until(|| service.started() == 4).await;
    drop(responses);
    until(|| service.cancelled() == 4 && requests.is_closed()).await;
    assert_eq!(in_flight(&channel), 0);
    assert_eq!(soon(echo(&channel, raw("x"))).await.expect("a response"), raw("x"));
}

/// RFC 9113 §8.1: END_STREAM would mean that the request is complete; a cancelled call is reset with CANCEL.
#[tokio::test(start_paused = true)]
async fn cancelling_sends_reset_without_end_stream() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let (requests, source) = mpsc::unbounded_channel();
    requests.send(raw("x")).expect("open");
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { chat(&channel, Receiver(source)).await.map(drop) }
    });
    let headers = soon(peer.next_of(Kind::Headers)).await;
    let data = soon(peer.next_of(Kind::Data)).await;
    assert!(!headers.end_stream && !data.end_stream);
    call.abort();
    drop(requests);
    let reset = soon(peer.next()).await.expect("the connection is open");
    assert_eq!(
        (reset.kind, reset.stream, reset.code()),
        (Kind::RstStream, headers.stream, ErrorCode::Cancel)
    );

    let call = spawn_echo(&channel, "x");
    let data = soon(peer.next_of(Kind::Data)).await;
    call.abort();
    let reset = soon(peer.next()).await.expect("the connection is open");
    assert_eq!((reset.kind, reset.stream, reset.code()), (Kind::RstStream, data.stream, ErrorCode::Cancel));
    assert_eq!(in_flight(&channel), 0);
}

/// A call reset in the read that started it does not run, whether complete or not.
#[tokio::test(start_paused = true)]
async fn call_reset_in_the_same_read_does_not_start() {
    let service = Echo::default();
    let mut peer = client_of(&service).await;
    let streaming = request_at("/test.Echo/Chat");
    for stream in (1..200).step_by(8) {
        peer.headers(stream, false, REQUEST).message(stream, true, b"x").reset(stream, ErrorCode::Cancel);
        peer.headers(stream + 2, false, REQUEST)
            .data(stream + 2, false, &[0, 0])
            .reset(stream + 2, ErrorCode::Cancel);
        peer.headers(stream + 4, false, &streaming).message(stream + 4, false, b"x");
        peer.reset(stream + 4, ErrorCode::Cancel);
        peer.headers(stream + 6, false, REQUEST).data(stream + 6, false, &[0, 0, 0, 0, 1]);
        peer.data(stream + 6, true, b"x").reset(stream + 6, ErrorCode::Cancel);
    }
    let frames = settled(&mut peer).await;
    assert!(frames.is_empty(), "{frames:?}");
    assert_eq!(service.started(), 0);
    peer.headers(1001, false, REQUEST).message(1001, true, b"x");
    assert_eq!(settled(&mut peer).await.len(), 3);
}

/// A reset ends the handler in any state and frees the stream, so more calls than the limit fit.
#[tokio::test(start_paused = true)]
async fn reset_ends_handler_at_any_point() {
    let service = Echo::default();
    let mut peer = client_of(&service).await;
    let (count, chat) = (request_at("/test.Echo/Count"), request_at("/test.Echo/Chat"));
    let mut stream = 1;
    for round in 1..=100 {
        let first = stream;
        peer.headers(stream, false, REQUEST).message(stream, true, b"sleep");
        peer.headers(stream + 2, false, &count).message(stream + 2, false, b"x");
        peer.headers(stream + 4, false, &chat).message(stream + 4, false, b"x");
        peer.headers(stream + 6, false, REQUEST);
        stream += 8;
        settled(&mut peer).await;
        assert_eq!(service.started(), 3 * round);
        for stream in (first..stream).step_by(2) {
            peer.reset(stream, ErrorCode::Cancel);
        }
        let frames = settled(&mut peer).await;
        assert!(frames.is_empty(), "{frames:?}");
        assert_eq!(service.cancelled(), 3 * round);
    }
    peer.headers(stream, false, REQUEST).message(stream, true, b"x");
    assert_eq!(settled(&mut peer).await.len(), 3);
}

/// A lost connection ends all its handlers and calls.
#[tokio::test(start_paused = true)]
async fn lost_connection_ends_handlers_and_calls() {
    let service = Echo::default();
    let mut peer = client_of(&service).await;
    peer.headers(1, false, REQUEST).message(1, true, b"sleep");
    peer.headers(3, false, &request_at("/test.Echo/Chat")).message(3, false, b"x");
    settled(&mut peer).await;
    drop(peer);
    until(|| service.cancelled() == 2).await;

    let (channel, mut peer, _accepted) = connected(&[]).await;
    let unary = spawn_echo(&channel, "x");
    let streaming = tokio::spawn({
        let channel = channel.clone();
        async move { chat(&channel, items(vec![raw("x")])).await?.rest().await }
    });
    let headers = soon(peer.next_of(Kind::Headers)).await;
    let other = soon(peer.next_of(Kind::Headers)).await;
    for stream in [headers.stream, other.stream] {
        peer.headers(stream, false, OK_HEADERS);
    }
    peer.send().await;
    settled(&mut peer).await;
    drop(peer);
    for status in [
        soon(unary).await.expect("no panic").map(drop).expect_err("lost"),
        soon(streaming).await.expect("no panic").map(drop).expect_err("lost"),
    ] {
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().starts_with("memory:1 closed the connection"), "{}", status.message());
    }
    assert_eq!(in_flight(&channel), 0);
}

/// RFC 9113 §7, gRPC's "HTTP2 Error to gRPC Status": maps the server's reset codes to statuses.
#[tokio::test(start_paused = true)]
async fn reset_becomes_a_status() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    for (code, expected, hint) in [
        (ErrorCode::Cancel, Code::Cancelled, "it cancelled the call"),
        (ErrorCode::EnhanceYourCalm, Code::ResourceExhausted, "it limits the rate of calls"),
        (ErrorCode::InternalError, Code::Internal, ""),
        (ErrorCode::ProtocolError, Code::Internal, ""),
        (ErrorCode::InadequateSecurity, Code::PermissionDenied, "stronger TLS"),
        (ErrorCode::NoError, Code::Internal, "did not finish"),
    ] {
        for is_streaming in [false, true] {
            let channel = channel.clone();
            let call = tokio::spawn(async move {
                if is_streaming {
                    let options = CallOptions::default();
                    stream(&channel, &CHAT, items(vec![raw("x")]), &options).await?.rest().await.map(drop)
                } else {
                    echo(&channel, raw("x")).await.map(drop)
                }
            });
            let stream = soon(peer.next_of(Kind::Headers)).await.stream;
            soon(peer.next_of(Kind::Data)).await;
            peer.headers(stream, false, OK_HEADERS).reset(stream, code).send().await;
            let status = soon(call).await.expect("no panic").expect_err("it was reset");
            assert_eq!(status.code(), expected, "{code}: {status:?}");
            assert!(status.message().contains(hint), "{}", status.message());
        }
    }
    assert_eq!(in_flight(&channel), 0);
}

/// A handler that dropped its requests lets them pass; the call continues.
#[tokio::test(start_paused = true)]
async fn unread_requests_do_not_block_the_call() {
    let service = Echo::default();
    let channel = Served::echo(&service).channel(|_| {}).await;
    let (requests, source) = mpsc::unbounded_channel();
    requests.send(raw("5000 100")).expect("open");
    for _ in 0..100 {
        requests.send(raw(vec![1; 100_000])).expect("open");
    }
    let options = CallOptions::default();
    let mut responses = soon(stream(&channel, &REPEAT, Receiver(source), &options)).await.expect("headers");
    for _ in 0..5000 {
        assert!(soon(responses.message()).await.expect("a message").is_some());
    }
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    until(|| requests.is_closed()).await;
    assert_eq!(in_flight(&channel), 0);
}

/// Responds at once or never, and spawns a task that reads the requests and reports how they ended.
struct ReadsOn {
    responds: bool,
    ended: mpsc::UnboundedSender<Code>,
}

impl StreamingHandler for ReadsOn {
    fn start(&self, _: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        let (ended, mut requests) = (self.ended.clone(), Messages(call.requests()));
        tokio::spawn(async move {
            let code = loop {
                match requests.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break Code::Ok,
                    Err(status) => break status.code(),
                }
            };
            ended.send(code)
        });
        let responds = self.responds;
        Box::pin(async move {
            if !responds {
                std::future::pending::<()>().await;
            }
            call.fail(&Status::new(Code::Aborted, "enough"));
        })
    }
}

/// A task that outlives its call finds it cancelled, whether it was answered or dropped.
#[tokio::test(start_paused = true)]
async fn task_reading_after_the_end_gets_cancelled() {
    for responds in [false, true] {
        let (ended, mut codes) = mpsc::unbounded_channel();
        let handler = Handler::streaming(ReadsOn { responds, ended });
        let method = ServerMethod::new("test.Echo/Chat", ServiceOptions::default(), handler);
        let mut peer = client_with(server_config(|_| {}), routes([method])).await;
        peer.headers(1, false, &request_at("/test.Echo/Chat")).message(1, false, b"x");
        settled(&mut peer).await;
        if !responds {
            peer.reset(1, ErrorCode::Cancel).send().await;
        }
        assert_eq!(soon(codes.recv()).await, Some(Code::Cancelled), "answers: {responds}");
    }
}

/// Requests that panic or fail during the call.
struct Breaks(mpsc::UnboundedReceiver<Message>, bool);

impl Stream for Breaks {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(self.0.poll_recv(cx)) {
            Some(message) => Poll::Ready(Some(Ok(message))),
            None if self.1 => panic!("asked to"),
            None => Poll::Ready(Some(Err(Status::new(Code::DataLoss, "broken")))),
        }
    }
}

impl Source for Breaks {
    type Message = Message;
}

/// Requests that fail end their call with CANCEL, before and after the response headers.
#[tokio::test(start_paused = true)]
async fn failing_request_stream_ends_its_call() {
    for (panics, has_head, code) in
        [(true, true, Code::Internal), (false, true, Code::DataLoss), (false, false, Code::DataLoss)]
    {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let (requests, source) = mpsc::unbounded_channel();
        let call = tokio::spawn({
            let channel = channel.clone();
            async move { chat(&channel, Breaks(source, panics)).await }
        });
        let headers = soon(peer.next_of(Kind::Headers)).await;
        if has_head {
            peer.headers(headers.stream, false, OK_HEADERS).send().await;
            settled(&mut peer).await;
        }
        requests.send(raw("x")).expect("open");
        soon(peer.next_of(Kind::Data)).await;
        drop(requests);
        // The reset does not wait for a reader.
        assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
        let status = match soon(call).await.expect("a panic is another task's") {
            Ok(mut responses) => soon(responses.message()).await.expect_err("it can't go on"),
            Err(status) => status,
        };
        assert_eq!(status.code(), code, "{status:?}");
        assert_eq!(in_flight(&channel), 0);
    }
}
