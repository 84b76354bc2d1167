//! Streaming calls that no application has seen begin anew by themselves; those that one may have seen don't.

use crate::support::peer::{HEAD, OK, Peer, connected, envelope};
use crate::support::{Receiver, chat, items, raw, soon};
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Status, Streaming};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

fn spawn_chat(channel: &Channel, messages: &[&str]) -> JoinHandle<Result<Streaming<Raw>, Status>> {
    let (channel, messages) =
        (channel.clone(), items(messages.iter().map(|&message| raw(message)).collect()));
    tokio::spawn(async move { chat(&channel, messages).await })
}

/// What comes on the next stream, up to its end: its number and its DATA.
async fn next_request(peer: &mut Peer) -> (u32, Vec<u8>) {
    let head = soon(peer.next_of(Kind::Headers)).await;
    let mut bytes = Vec::new();
    loop {
        let data = soon(peer.next_of(Kind::Data)).await;
        assert_eq!(data.stream, head.stream);
        bytes.extend_from_slice(&data.payload);
        if data.end_stream {
            return (head.stream, bytes);
        }
    }
}

/// Answers with one message, and takes care that it arrives.
async fn answer(peer: &mut Peer, stream: u32, call: JoinHandle<Result<Streaming<Raw>, Status>>) {
    peer.headers(stream, false, HEAD)
        .message(stream, false, b"answer")
        .headers(stream, true, OK)
        .send()
        .await;
    let mut responses = soon(call).await.expect("no panic").expect("an answer");
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("answer")));
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
}

fn messages(of: &[&str]) -> Vec<u8> {
    of.iter().flat_map(|message| envelope(message.as_bytes())).collect()
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_with_all_its_messages() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_chat(&channel, &["a", "bc", ""]);
    let (first, bytes) = next_request(&mut peer).await;
    assert_eq!(bytes, messages(&["a", "bc", ""]));
    peer.reset(first, ErrorCode::RefusedStream).send().await;
    let (second, bytes) = next_request(&mut peer).await;
    assert!(second > first);
    assert_eq!(bytes, messages(&["a", "bc", ""]));
    answer(&mut peer, second, call).await;
    assert_eq!(channel.lanes()[0].in_flight, 0);
}

#[tokio::test]
async fn a_stream_beyond_goaway_goes_elsewhere_and_goes_on() {
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
    answer(&mut second, again.stream, call).await;
}

#[tokio::test]
async fn one_request_with_many_responses_is_sent_again_too() {
    static METHOD: thalweg::Method = thalweg::Method::new("/test.Echo/Repeat");
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn(async move {
        let options = CallOptions::default();
        let reply: Result<Response<Streaming<Raw>>, Status> =
            channel.server_streaming(&METHOD, Request::new(raw("x")), &options).await;
        reply.map(Response::into_inner)
    });
    let (first, _) = next_request(&mut peer).await;
    peer.reset(first, ErrorCode::RefusedStream).send().await;
    let (second, bytes) = next_request(&mut peer).await;
    assert_eq!(bytes, messages(&["x"]));
    answer(&mut peer, second, call).await;
}

#[tokio::test]
async fn what_is_not_tried_again() {
    async fn fails(call: JoinHandle<Result<Streaming<Raw>, Status>>, code: Code) {
        let status = soon(call).await.expect("no panic").expect_err("the call has failed");
        assert_eq!(status.code(), code, "{status:?}");
    }

    // Twice refused.
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

    // It has answered.
    let call = spawn_chat(&channel, &["a"]);
    let (stream, _) = next_request(&mut peer).await;
    peer.headers(stream, false, HEAD).reset(stream, ErrorCode::RefusedStream).send().await;
    let mut responses = soon(call).await.expect("no panic").expect("a head");
    let status = soon(responses.message()).await.expect_err("it was reset");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");

    // More has gone than is kept.
    let long = "x".repeat(20_000);
    let call = spawn_chat(&channel, &[&long, &long, &long]);
    let (stream, bytes) = next_request_with_window(&mut peer).await;
    assert_eq!(bytes.len(), 60_015);
    peer.reset(stream, ErrorCode::RefusedStream).send().await;
    let (stream, bytes) = next_request_with_window(&mut peer).await;
    assert_eq!(bytes.len(), 60_015, "so much is kept");
    peer.headers(stream, true, &[HEAD[0], HEAD[1], ("grpc-status", "9")]).send().await;
    fails(call, Code::FailedPrecondition).await;
    let call = spawn_chat(&channel, &[&long, &long, &long, &long]);
    let (stream, bytes) = next_request_with_window(&mut peer).await;
    assert_eq!(bytes.len(), 80_020);
    peer.reset(stream, ErrorCode::RefusedStream).send().await;
    fails(call, Code::Unavailable).await;
}

/// As [`next_request`], with window for as much as comes.
async fn next_request_with_window(peer: &mut Peer) -> (u32, Vec<u8>) {
    let head = soon(peer.next_of(Kind::Headers)).await;
    for stream in [0, head.stream] {
        let stream = thalweg_engine::http2::StreamId::new(stream);
        thalweg_engine::http2::frame::window_update(stream, 1 << 20, &mut peer.out);
    }
    peer.send().await;
    let mut bytes = Vec::new();
    loop {
        let data = soon(peer.next_of(Kind::Data)).await;
        bytes.extend_from_slice(&data.payload);
        if data.end_stream {
            return (head.stream, bytes);
        }
    }
}
