//! What a client's own errors say, over real sockets: what happened, of which call, to where, how far it was, and what
//! to do. docs/errors.md has them all.

use std::time::Duration;

use crate::support::peer::{HEAD, OK, Peer, connected};
use crate::support::{
    COUNT, ECHO, Echo, REPEAT, Receiver, chat, connect, echo, items, raw, soon, spawn_echo, start, until,
};
use thalweg::http2::ErrorCode;
use thalweg::http2::frame::{Flags, Kind};
use thalweg::server::ServerBuilder;
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Server, Status, Streaming};
use tokio::net::TcpListener;

/// That the message is this, where `*` stands for anything.
#[track_caller]
fn check(status: &Status, code: Code, expected: &str) {
    let message = status.message();
    let mut rest = Some(message);
    let mut parts = expected.split('*');
    let first = parts.next().unwrap_or_default();
    rest = rest.and_then(|rest| rest.strip_prefix(first));
    for part in parts {
        rest = match part {
            "" => Some(""),
            part => rest.and_then(|rest| rest.split_once(part)).map(|(_, behind)| behind),
        };
    }
    assert!(
        status.code() == code && rest == Some(""),
        "{:?}: {message}\nis not\n{code:?}: {expected}",
        status.code()
    );
}

fn server() -> ServerBuilder {
    Server::builder().add_service(Echo::default())
}

/// An address at which nobody listens.
async fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn lazy(target: &str) -> Channel {
    Channel::builder(target).connect_lazy().expect("a target")
}

fn within(timeout: Duration) -> CallOptions {
    let mut options = CallOptions::default();
    options.timeout = Some(timeout);
    options
}

async fn call(channel: &Channel, message: &str, options: &CallOptions) -> Result<Response<Raw>, Status> {
    soon(channel.unary(&ECHO, Request::new(raw(message)), options)).await
}

#[tokio::test]
async fn nobody_listens() {
    let target = nowhere().await;
    let channel = lazy(&target);
    let status = echo(&channel, raw("x")).await.expect_err("nobody is there");
    let refused = format!(
        "can't connect to {target}: Connection refused (os error 111) (is the server running?); the next is due in \
         * s [/test.Echo/Echo to {target}, connecting]"
    );
    check(&status, Code::Unavailable, &refused);
    let status = chat(&channel, items(vec![raw("x")])).await.expect_err("nobody is there");
    check(&status, Code::Unavailable, &refused.replace("Echo to", "Chat to"));
    // A call that waits has its deadline, and is told what it waited for.
    let mut patient = within(Duration::from_millis(2500));
    patient.wait_for_ready = true;
    let status = call(&channel, "x", &patient).await.expect_err("nobody comes");
    let late = format!(
        "the deadline of the call has passed: there was no connection yet: can't connect to {target}: Connection \
         refused (os error 111) (is the server running?); * attempts have failed in * s, the next is due in * s \
         [/test.Echo/Echo to {target}]"
    );
    check(&status, Code::DeadlineExceeded, &late);
}

#[tokio::test]
async fn a_name_that_nobody_has() {
    let target = "thalweg.invalid:50051";
    let status = echo(&lazy(target), raw("x")).await.expect_err("RFC 6761: it has no address");
    check(
        &status,
        Code::Unavailable,
        "can't resolve thalweg.invalid:50051: * (is the name right, and has it an address?); the next is due in * s \
         [/test.Echo/Echo to thalweg.invalid:50051, connecting]",
    );
}

#[tokio::test]
async fn a_listener_that_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let channel = Channel::builder(&target).connect_timeout(Duration::from_millis(200));
    let channel = channel.connect_lazy().expect("a target");
    let status = echo(&channel, raw("x")).await.expect_err("it says nothing");
    check(
        &status,
        Code::Unavailable,
        &format!(
            "no connection to {target} within 200ms: {target} had not sent its HTTP/2 SETTINGS (is it a gRPC server, \
             and without TLS?); the next is due in * s [/test.Echo/Echo to {target}, connecting]"
        ),
    );
}

const LATE: &str = "the deadline of the call has passed:";

/// Enough for a call to be sent, in a test whose time is not paused.
const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn no_stream_is_free_in_time() {
    let target = start(server().max_concurrent_streams(1)).await;
    let channel = Channel::builder(&target).lanes(1).connect().await.expect("a server");
    let sleeping = spawn_echo(&channel, "sleep");
    until(|| channel.lanes()[0].in_flight == 1).await;
    let status = call(&channel, "x", &within(SHORT)).await.expect_err("no stream is free");
    let expected = format!(
        "{LATE} no stream was free yet: other calls have as many as the server allows [/test.Echo/Echo to {target}]"
    );
    check(&status, Code::DeadlineExceeded, &expected);
    sleeping.abort();
}

/// By a server that has no clock of its own: ours says itself that it is late.
#[tokio::test]
async fn a_deadline_says_how_far_the_call_was() {
    let late = |what: &str| format!("{LATE} {what} [/test.Echo/Echo to memory:1]");
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let status = call(&channel, "x", &within(SHORT)).await.expect_err("too late");
    check(&status, Code::DeadlineExceeded, &late("it was sent, and not answered in time"));

    // Its head has come, and ten bytes of a message of 99.
    let calling = tokio::spawn({
        let channel = channel.clone();
        async move { call(&channel, "y", &within(SHORT)).await }
    });
    soon(peer.next_of(Kind::RstStream)).await;
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.headers(stream, false, HEAD).data(stream, false, &[&[0, 0, 0, 0, 99][..], &[7; 10]].concat());
    peer.send().await;
    let status = calling.await.expect("no panic").expect_err("too late");
    let begun = late("its answer had begun, with * bytes of its message, and was not whole");
    check(&status, Code::DeadlineExceeded, &begun);

    // The peer's windows are 64 KiB.
    let (large, options) = ("z".repeat(100_000), within(SHORT));
    let (status, ()) = tokio::join!(call(&channel, &large, &options), async {
        // It reads, and grants no more.
        while soon(peer.next())
            .await
            .is_some_and(|frame| frame.kind != Kind::RstStream || frame.stream == stream)
        {}
    });
    let unsent = late("* bytes of its message were not sent: the server takes no more (flow control)");
    check(&status.expect_err("too late"), Code::DeadlineExceeded, &unsent);
}

#[tokio::test]
async fn a_deadline_says_how_far_a_stream_was() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let (_requests, source) = tokio::sync::mpsc::unbounded_channel::<Raw>();
    let requests = Request::new(Receiver(source));
    let outcome: Result<Response<Raw>, _> =
        soon(channel.client_streaming(&COUNT, requests, &within(SHORT))).await;
    let status = outcome.expect_err("it never ends");
    let unsent = "its requests were not all sent, and not answered";
    check(&status, Code::DeadlineExceeded, &format!("{LATE} {unsent} [/test.Echo/Count to memory:1]"));

    let options = within(SHORT);
    let responses = channel.server_streaming(&REPEAT, Request::new(raw("x")), &options);
    let (responses, ()) = tokio::join!(responses, async {
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.headers(stream, false, HEAD).message(stream, false, b"1").send().await;
    });
    let responses: Response<Streaming<Raw>> = responses.expect("it begins");
    let mut responses = responses.into_inner();
    assert_eq!(soon(responses.message()).await.expect("the first"), Some(raw("1")));
    let status = soon(responses.message()).await.expect_err("there is no second");
    let responding = "its responses had not ended";
    check(&status, Code::DeadlineExceeded, &format!("{LATE} {responding} [/test.Echo/Repeat to memory:1]"));
}

#[tokio::test]
async fn messages_that_are_too_large() {
    let target = start(server()).await;
    let channel = connect(&target).await;
    let mut options = CallOptions::default();
    options.max_encoding_message_size = 3;
    let status = call(&channel, "12345", &options).await.expect_err("too large");
    check(
        &status,
        Code::ResourceExhausted,
        &format!(
            "trying to send message larger than max (5 vs. 3): the sender's max_encoding_message_size \
             [/test.Echo/Echo to {target}, not sent]"
        ),
    );
    let mut options = CallOptions::default();
    options.max_decoding_message_size = 3;
    let status = call(&channel, "12345", &options).await.expect_err("too large");
    let received = "received message larger than max (5 vs. 3): the receiver's max_decoding_message_size";
    let context = format!("[/test.Echo/Echo to {target}, receiving the response]");
    check(&status, Code::ResourceExhausted, &format!("{received} {context}"));
    let order = Request::new(raw("1 5"));
    let responses: Result<Response<Streaming<Raw>>, _> =
        channel.server_streaming(&REPEAT, order, &options).await;
    let status = responses.expect("it begins").into_inner().message().await.expect_err("too large");
    check(
        &status,
        Code::ResourceExhausted,
        &format!("{received} {}", context.replace("Echo to", "Repeat to")),
    );
    // What the server says is the server's: nothing is added to it.
    let mut echo = Echo::default();
    echo.options.max_decoding_message_size = 3;
    let channel = connect(&start(Server::builder().add_service(echo)).await).await;
    let status = call(&channel, "12345", &CallOptions::default()).await.expect_err("too large");
    check(&status, Code::ResourceExhausted, received);
}

#[tokio::test]
async fn a_server_that_resets() {
    let check_reset = async |code: ErrorCode, expected: Code, says: &str| {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.reset(stream, code).send().await;
        let status = soon(call).await.expect("no panic").expect_err("it was reset");
        check(&status, expected, &format!("the stream was reset with {says}"));
    };
    let context = "[/test.Echo/Echo to memory:1, waiting for the response]";
    let says = format!("INTERNAL_ERROR: the peer reset the stream {context}");
    check_reset(ErrorCode::InternalError, Code::Internal, &says).await;
    let says = format!("CANCEL: the peer reset the stream (it gave the call up) {context}");
    check_reset(ErrorCode::Cancel, Code::Cancelled, &says).await;
    let says = format!("ENHANCE_YOUR_CALM: the peer reset the stream (it wants fewer calls) {context}");
    check_reset(ErrorCode::EnhanceYourCalm, Code::ResourceExhausted, &says).await;
}

/// A call that was refused was made again: the second attempt fails.
#[tokio::test]
async fn the_attempt_is_named() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    for _ in 0..2 {
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.reset(stream, ErrorCode::RefusedStream).send().await;
    }
    let status = soon(call).await.expect("no panic").expect_err("refused twice");
    check(
        &status,
        Code::Unavailable,
        "the stream was reset with REFUSED_STREAM: the peer reset the stream (it has more calls than it wants) \
         [/test.Echo/Echo to memory:1, attempt 2, waiting for the response]",
    );
}

#[tokio::test]
async fn a_server_that_goes_away() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    let mut farewell = vec![0, 0, 0, stream as u8, 0, 0, 0, 11];
    farewell.extend(b"too much");
    peer.headers(stream, false, HEAD).frame(Kind::GoAway, Flags::NONE, 0, &farewell).send().await;
    drop(peer);
    let status = soon(call).await.expect("no panic").expect_err("it is gone");
    check(
        &status,
        Code::Unavailable,
        "memory:1 closed the connection after GOAWAY, ENHANCE_YOUR_CALM: too much [/test.Echo/Echo to memory:1, \
         receiving the response]",
    );
}

/// What an application has said stays as it has said it.
#[tokio::test]
async fn the_servers_own_words_are_left_alone() {
    let channel = connect(&start(server()).await).await;
    let status = echo(&channel, raw("fail")).await.expect_err("asked to");
    check(&status, Code::NotFound, "nichts: ü %");
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    let trailers = [OK[0], ("grpc-message", "fine")].map(|(name, value)| match name {
        "grpc-status" => (name, "14"),
        _ => (name, value),
    });
    peer.headers(stream, false, HEAD).headers(stream, true, &trailers).send().await;
    let status = soon(call).await.expect("no panic").expect_err("UNAVAILABLE");
    check(&status, Code::Unavailable, "fine");
}

#[tokio::test]
async fn a_web_server() {
    let answer = async |peer: &mut Peer, http: &str| {
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.headers(stream, false, &[(":status", http), ("content-type", "text/html")]);
        peer.data(stream, true, b"<html>").send().await;
    };
    for (http, code, hint) in [
        ("404", Code::Unimplemented, "is it a gRPC server, and at this port?"),
        ("503", Code::Unavailable, "a proxy on the way has no server for it"),
        ("403", Code::PermissionDenied, "a proxy on the way may want credentials"),
    ] {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        answer(&mut peer, http).await;
        let status = soon(call).await.expect("no panic").expect_err("no gRPC");
        check(
            &status,
            code,
            &format!(
                "not a gRPC response: HTTP status {http}, content type text/html ({hint}) [/test.Echo/Echo to \
                 memory:1, waiting for the response]"
            ),
        );
    }
}
