//! Transparent retries (gRFC A6): calls that no application has seen are retried automatically, once; others are not.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::{CallOptions, Channel, Code, Source, Status};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::peer::{OK, OK_HEADERS, Peer, envelope};
use crate::support::{
    Message, Messages, REPEAT, Receiver, chat, connected, echo, in_flight, items, raw, soon, spawn_echo,
    stream,
};

/// Messages that must not be polled after their end.
struct Ending(Option<VecDeque<Message>>);

impl Stream for Ending {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.as_mut().expect("it has not ended").pop_front();
        if next.is_none() {
            self.0 = None;
        }
        Poll::Ready(next.map(Ok))
    }
}

impl Source for Ending {
    type Message = Message;
}

fn spawn_chat(channel: &Channel, messages: &[&str]) -> JoinHandle<Result<Messages, Status>> {
    let channel = channel.clone();
    let messages = Ending(Some(messages.iter().map(|&message| raw(message)).collect()));
    tokio::spawn(async move { chat(&channel, messages).await })
}

/// Returns the number and the DATA of the next stream, up to its end.
async fn next_request(peer: &mut Peer) -> (u32, Vec<u8>) {
    let headers = soon(peer.next_of(Kind::Headers)).await;
    let mut bytes = Vec::new();
    loop {
        let data = soon(peer.next_of(Kind::Data)).await;
        assert_eq!(data.stream, headers.stream);
        bytes.extend_from_slice(&data.payload);
        if data.end_stream {
            return (headers.stream, bytes);
        }
    }
}

/// Responds with one message and checks that it arrives.
async fn respond(peer: &mut Peer, stream: u32, call: JoinHandle<Result<Messages, Status>>) {
    peer.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"answer")
        .headers(stream, true, OK)
        .send()
        .await;
    let mut responses = soon(call).await.expect("no panic").expect("a response");
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("answer")));
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
}

fn messages(of: &[&str]) -> Vec<u8> {
    of.iter().flat_map(|message| envelope(message.as_bytes())).collect()
}

#[tokio::test(start_paused = true)]
async fn refused_stream_is_sent_again_with_all_its_messages() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_chat(&channel, &["a", "bc", ""]);
    let (first, bytes) = next_request(&mut peer).await;
    assert_eq!(bytes, messages(&["a", "bc", ""]));
    peer.reset(first, ErrorCode::RefusedStream).send().await;
    let (second, bytes) = next_request(&mut peer).await;
    assert!(second > first);
    assert_eq!(bytes, messages(&["a", "bc", ""]));
    respond(&mut peer, second, call).await;
    assert_eq!(channel.lanes()[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn stream_beyond_goaway_continues_on_another_connection() {
    let (channel, mut peer, mut accepted) = connected(&[]).await;
    let (requests, source) = mpsc::unbounded_channel();
    let call = tokio::spawn(async move { chat(&channel, Receiver(source)).await });
    requests.send(raw("before")).expect("it reads");
    assert_eq!(soon(peer.next_of(Kind::Data)).await.payload, messages(&["before"]));
    peer.go_away(0).send().await;
    let mut second = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
    let again = soon(second.next_of(Kind::Data)).await;
    assert_eq!(again.payload, messages(&["before"]));
    requests.send(raw("after")).expect("it reads");
    let more = soon(second.next_of(Kind::Data)).await;
    assert_eq!((more.payload, more.end_stream), (messages(&["after"]), false));
    drop(requests);
    let end = soon(second.next_of(Kind::Data)).await;
    assert!(end.end_stream && end.payload.is_empty());
    respond(&mut second, again.stream, call).await;
}

#[tokio::test(start_paused = true)]
async fn refused_request_with_many_responses_is_sent_again() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn(async move {
        stream(&channel, &REPEAT, items(vec![raw("x")]), &CallOptions::default()).await
    });
    let (first, _) = next_request(&mut peer).await;
    peer.reset(first, ErrorCode::RefusedStream).send().await;
    let (second, bytes) = next_request(&mut peer).await;
    assert_eq!(bytes, messages(&["x"]));
    respond(&mut peer, second, call).await;
}

#[tokio::test(start_paused = true)]
async fn processed_or_twice_refused_call_is_not_sent_again() {
    async fn fails(call: JoinHandle<Result<Messages, Status>>, code: Code) {
        let status = soon(call).await.expect("no panic").expect_err("the call has failed");
        assert_eq!(status.code(), code, "{status:?}");
    }

    // Refused twice.
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_chat(&channel, &["a"]);
    for _ in 0..2 {
        let (stream, _) = next_request(&mut peer).await;
        peer.reset(stream, ErrorCode::RefusedStream).send().await;
    }
    fails(call, Code::Unavailable).await;

    // An application may have seen it.
    let call = spawn_chat(&channel, &["a"]);
    let (stream, _) = next_request(&mut peer).await;
    peer.reset(stream, ErrorCode::InternalError).send().await;
    fails(call, Code::Internal).await;

    // It has responded.
    let call = spawn_chat(&channel, &["a"]);
    let (stream, _) = next_request(&mut peer).await;
    peer.headers(stream, false, OK_HEADERS).reset(stream, ErrorCode::RefusedStream).send().await;
    let mut responses = soon(call).await.expect("no panic").expect("headers");
    let status = soon(responses.message()).await.expect_err("it was reset");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");

    // More has been sent than is kept.
    let long = "x".repeat(20_000);
    let call = spawn_chat(&channel, &[&long, &long, &long]);
    let (stream, bytes) = next_request_with_window(&mut peer).await;
    assert_eq!(bytes.len(), 60_015);
    peer.reset(stream, ErrorCode::RefusedStream).send().await;
    let (stream, bytes) = next_request_with_window(&mut peer).await;
    assert_eq!(bytes.len(), 60_015, "so much is kept");
    peer.headers(stream, true, &[OK_HEADERS[0], OK_HEADERS[1], ("grpc-status", "9")]).send().await;
    fails(call, Code::FailedPrecondition).await;
    let call = spawn_chat(&channel, &[&long, &long, &long, &long]);
    let (stream, bytes) = next_request_with_window(&mut peer).await;
    assert_eq!(bytes.len(), 80_020);
    peer.reset(stream, ErrorCode::RefusedStream).send().await;
    fails(call, Code::Unavailable).await;
}

/// Like [`next_request`], with enough window for everything.
async fn next_request_with_window(peer: &mut Peer) -> (u32, Vec<u8>) {
    let headers = soon(peer.next_of(Kind::Headers)).await;
    for stream in [0, headers.stream] {
        let stream = thalweg_engine::http2::StreamId::new(stream);
        thalweg_engine::http2::frame::window_update(stream, 1 << 20, &mut peer.out);
    }
    peer.send().await;
    let mut bytes = Vec::new();
    loop {
        let data = soon(peer.next_of(Kind::Data)).await;
        bytes.extend_from_slice(&data.payload);
        if data.end_stream {
            return (headers.stream, bytes);
        }
    }
}

/// A unary call that is refused once is sent again on the same connection; after a second refusal it fails.
#[tokio::test(start_paused = true)]
async fn refused_unary_call_is_sent_again_once() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    let (first, bytes) = next_request(&mut peer).await;
    peer.reset(first, ErrorCode::RefusedStream).send().await;
    let (second, again) = next_request(&mut peer).await;
    assert!(second > first && bytes == again, "{bytes:?}, {again:?}");
    peer.headers(second, false, OK_HEADERS)
        .message(second, false, b"y")
        .headers(second, true, OK)
        .send()
        .await;
    assert_eq!(soon(call).await.expect("no panic").expect("a response"), raw("y"));

    let call = spawn_echo(&channel, "x");
    for _ in 0..2 {
        let (stream, _) = next_request(&mut peer).await;
        peer.reset(stream, ErrorCode::RefusedStream).send().await;
    }
    let status = soon(call).await.expect("no panic").expect_err("refused twice");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.message().contains("it accepts no more concurrent calls"), "{}", status.message());
    assert!(status.message().contains("attempt 2"), "{}", status.message());
    assert_eq!(in_flight(&channel), 0);

    // A call that may have been processed is not sent again.
    let call = spawn_echo(&channel, "x");
    let (stream, _) = next_request(&mut peer).await;
    peer.reset(stream, ErrorCode::Cancel).send().await;
    soon(call).await.expect("no panic").expect_err("cancelled");
}

/// RFC 9113 §6.8: streams above the last one of GOAWAY were not processed. Unary calls on them move to the next
/// connection; those at or below it finish where they are.
#[tokio::test(start_paused = true)]
async fn unary_call_beyond_goaway_moves_to_next_connection() {
    let (channel, mut peer, mut accepted) = connected(&[]).await;
    let seen = spawn_echo(&channel, "seen");
    let (first, _) = next_request(&mut peer).await;
    let unseen = spawn_echo(&channel, "unseen");
    next_request(&mut peer).await;
    peer.go_away(first).send().await;
    let mut next = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
    let (stream, bytes) = next_request(&mut next).await;
    assert_eq!(bytes, messages(&["unseen"]));
    next.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"y")
        .headers(stream, true, OK)
        .send()
        .await;
    assert_eq!(soon(unseen).await.expect("no panic").expect("a response"), raw("y"));
    peer.headers(first, false, OK_HEADERS).message(first, false, b"z").headers(first, true, OK).send().await;
    assert_eq!(soon(seen).await.expect("no panic").expect("a response"), raw("z"));
    // New calls use the new connection, and the old one is closed.
    let call = tokio::spawn(async move { echo(&channel, raw("more")).await });
    let (stream, _) = next_request(&mut next).await;
    next.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"y")
        .headers(stream, true, OK)
        .send()
        .await;
    soon(call).await.expect("no panic").expect("a response");
    soon(peer.rest()).await;
}
