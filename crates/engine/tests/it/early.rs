//! Responses before the end of their request (RFC 9113 §8.1): RST_STREAM with NO_ERROR asks the client to stop.

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};

use crate::support::peer::{Frame, OK, OK_HEADERS, Peer, REQUEST, envelope};
use crate::support::{
    CHAT, Echo, call_options, chat, client_of, client_with, connected, items, raw, request_at, server_config,
    settled, soon, spawn_echo, stream, until,
};

/// Kind, END_STREAM and, for resets, the code.
fn outline(frames: &[Frame]) -> Vec<(Kind, bool, Option<ErrorCode>)> {
    frames
        .iter()
        .map(|frame| (frame.kind, frame.end_stream, (frame.kind == Kind::RstStream).then(|| frame.code())))
        .collect()
}

const HEADERS: (Kind, bool, Option<ErrorCode>) = (Kind::Headers, false, None);
const DATA: (Kind, bool, Option<ErrorCode>) = (Kind::Data, false, None);
const END: (Kind, bool, Option<ErrorCode>) = (Kind::Headers, true, None);
const STOP: (Kind, bool, Option<ErrorCode>) = (Kind::RstStream, false, Some(ErrorCode::NoError));

/// A call answered before its request ends gets the complete response, and then the reset.
#[tokio::test(start_paused = true)]
async fn early_response_is_followed_by_a_no_error_reset() {
    let echo = Echo::default();
    let config = server_config(|_| {});
    let mut peer = client_with(config, echo.router()).await;
    let early = request_at("/test.Echo/Early");
    let with = |order| [&early[..], &[("x-order", order)]].concat();
    peer.headers(1, false, &with("10"));
    assert_eq!(outline(&settled(&mut peer).await), [HEADERS, DATA, END, STOP], "a handler's answer");
    peer.headers(3, false, &with("fail"));
    assert_eq!(outline(&settled(&mut peer).await), [END, STOP], "a handler's status");
    peer.headers(5, false, &with("panic"));
    assert_eq!(outline(&settled(&mut peer).await), [END, STOP], "a panic");
    peer.headers(7, false, &request_at("/test.Echo/Nothing"));
    assert_eq!(outline(&settled(&mut peer).await), [END, STOP], "no such method");
    let repeat = request_at("/test.Echo/Repeat");
    peer.headers(9, false, &repeat).message(9, false, b"2 5");
    assert_eq!(outline(&settled(&mut peer).await), [HEADERS, DATA, END, STOP], "a stream of answers");
    // A message that is too large, before it has arrived.
    peer.headers(11, false, REQUEST).data(11, false, b"\0\xff\0\0\0");
    assert_eq!(outline(&settled(&mut peer).await), [END, STOP], "a message that is too large");
    // Late data for these streams is ignored.
    for stream in [1, 3, 5, 7, 9, 11] {
        peer.data(stream, true, b"late");
    }
    assert_eq!(outline(&settled(&mut peer).await), []);
}

/// A complete request needs no reset, whatever the response.
#[tokio::test(start_paused = true)]
async fn response_to_complete_request_is_not_followed_by_reset() {
    let mut peer = client_of(&Echo::default()).await;
    for (stream, path, expected) in [
        (1, "/test.Echo/Echo", &[HEADERS, DATA, END][..]),
        (3, "/test.Echo/Chat", &[HEADERS, DATA, END]),
        (5, "/test.Echo/Count", &[HEADERS, DATA, END]),
        (7, "/test.Echo/Nothing", &[END]),
    ] {
        peer.headers(stream, false, &request_at(path)).message(stream, true, b"x");
        assert_eq!(outline(&settled(&mut peer).await), expected, "{path}");
    }
    peer.headers(9, false, REQUEST).message(9, true, b"fail");
    assert_eq!(outline(&settled(&mut peer).await), [END]);
}

/// While the response waits for flow control, a reset would discard it. No reset is sent, and the response arrives.
#[tokio::test(start_paused = true)]
async fn early_response_that_waits_for_window_is_not_reset() {
    let mut peer = client_of(&Echo::default()).await;
    peer.settings(&[Setting::InitialWindowSize(0)]);
    peer.headers(1, false, &[&request_at("/test.Echo/Early")[..], &[("x-order", "100")]].concat());
    assert_eq!(outline(&settled(&mut peer).await), [HEADERS]);
    peer.frame(Kind::WindowUpdate, Flags::NONE, 1, &1000_u32.to_be_bytes());
    let frames = settled(&mut peer).await;
    assert_eq!(outline(&frames[..2]), [DATA, END], "{frames:?}");
    assert_eq!(frames[0].payload, envelope(&[7; 100]));
}

/// An early response frees the stream for the next request.
#[tokio::test(start_paused = true)]
async fn early_responses_free_their_streams() {
    let http2 = thalweg_engine::http2::Config::default().max_concurrent_streams(1);
    let config = server_config(|config| config.http2 = http2);
    let mut peer = client_with(config, Echo::default().router()).await;
    for stream in (1..40).step_by(2) {
        peer.headers(stream, false, &request_at("/test.Echo/Nothing"));
        assert_eq!(outline(&settled(&mut peer).await), [END, STOP], "{stream}");
    }
}

async fn first_data(peer: &mut Peer) -> Frame {
    soon(peer.next_of(Kind::Data)).await
}

/// A client that gets the response before it has sent the whole message cancels the rest.
#[tokio::test(start_paused = true)]
async fn client_cancels_request_after_early_response() {
    let (channel, mut peer, _accepted) = connected(&[Setting::InitialWindowSize(10)]).await;
    let call = spawn_echo(&channel, "longer than the window");
    let data = first_data(&mut peer).await;
    assert!(!data.end_stream);
    let failed = [OK_HEADERS, &[("grpc-status", "7"), ("grpc-message", "no")]].concat();
    peer.headers(1, true, &failed).send().await;
    let status = soon(call).await.expect("no panic").expect_err("it was refused");
    assert_eq!((status.code(), status.message()), (thalweg_engine::Code::PermissionDenied, "no"));
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
}

/// NO_ERROR after a complete response is not a failure, for unary calls and streams.
#[tokio::test(start_paused = true)]
async fn no_error_reset_after_response_is_success() {
    let (channel, mut peer, _accepted) = connected(&[Setting::InitialWindowSize(10)]).await;
    let call = spawn_echo(&channel, "longer than the window");
    first_data(&mut peer).await;
    peer.headers(1, false, OK_HEADERS)
        .message(1, false, b"y")
        .headers(1, true, OK)
        .reset(1, ErrorCode::NoError);
    peer.send().await;
    assert_eq!(soon(call).await.expect("no panic").expect("a response"), raw("y"));

    let call = tokio::spawn({
        let channel = channel.clone();
        async move { chat(&channel, items(vec![raw("longer than the window")])).await?.rest().await }
    });
    first_data(&mut peer).await;
    peer.headers(3, false, OK_HEADERS)
        .message(3, false, b"y")
        .headers(3, true, OK)
        .reset(3, ErrorCode::NoError);
    peer.send().await;
    let (messages, _) = soon(call).await.expect("no panic").expect("a response");
    assert_eq!(messages, [raw("y")]);
    until(|| channel.lanes()[0].in_flight == 0).await;

    // In the middle of a response it is a failure.
    let call = tokio::spawn({
        let options = call_options(|_| {});
        async move { stream(&channel, &CHAT, items(vec![raw("x")]), &options).await?.rest().await }
    });
    first_data(&mut peer).await;
    peer.headers(5, false, OK_HEADERS).message(5, false, b"y").reset(5, ErrorCode::NoError).send().await;
    let status = soon(call).await.expect("no panic").expect_err("it was cut off");
    assert_eq!(status.code(), thalweg_engine::Code::Internal, "{status:?}");
}
