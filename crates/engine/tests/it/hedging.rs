//! Hedging by the policy of a service config (gRFC A6), of calls with one message and of streams.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use thalweg_engine::http2::frame::{self, Kind};
use thalweg_engine::http2::{ErrorCode, StreamId};
use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{Address, CallOptions, Channel, Code, EndpointList, Status};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::balance::{address, endpoints};
use crate::raw::Pieces;
use crate::retry_policy::Response::{self, Fails, FailsWithPushback, Ok as Succeeds, Refuses};
use crate::retry_policy::{Attempt, check_counts, config, serve};
use crate::support::peer::{Frame, OK, OK_HEADERS, PIPE, Peer, envelope};
use crate::support::{
    CHAT, Echo, Message, Messages, REPEAT, Receiver, Served, chat, connected_by, in_flight, items, raw,
    settled, soon, spawn_echo, stream, within,
};

/// At most three attempts, each 100 ms after the former.
const HEDGING: &str = r#""hedgingPolicy": { "maxAttempts": 3, "hedgingDelay": "0.1s",
    "nonFatalStatusCodes": ["UNAVAILABLE", "ABORTED"] }"#;

const UNAVAILABLE: Response = Fails(Code::Unavailable);

/// Returns the stream of the next attempt and its time in milliseconds.
async fn next_attempt(peer: &mut Peer, started: Instant) -> (u32, u128) {
    let stream = soon(peer.next_of(Kind::Headers)).await.stream;
    (stream, started.elapsed().as_millis())
}

/// Checks that this stream is cancelled next.
async fn cancelled(peer: &mut Peer, stream: u32) {
    let reset = soon(peer.next_of(Kind::RstStream)).await;
    assert_eq!((reset.stream, reset.code()), (stream, ErrorCode::Cancel));
}

/// Starts a call with a stream of requests that are sent later.
fn spawn_chat(channel: &Channel) -> (UnboundedSender<Message>, JoinHandle<Result<Messages, Status>>) {
    let (requests, source) = mpsc::unbounded_channel();
    let channel = channel.clone();
    (requests, tokio::spawn(async move { chat(&channel, Receiver(source)).await }))
}

/// Starts a call with two requests, as [`serve`] expects them.
fn spawn_two(channel: &Channel, options: CallOptions) -> JoinHandle<Result<Option<Message>, Status>> {
    let channel = channel.clone();
    tokio::spawn(async move {
        let mut responses = stream(&channel, &CHAT, items(vec![raw("w"), raw("x")]), &options).await?;
        let first = responses.message().await?;
        responses.message().await?;
        Ok(first)
    })
}

/// Returns the DATA that has arrived, as (stream, payload, END_STREAM).
fn data(frames: Vec<Frame>) -> Vec<(u32, Vec<u8>, bool)> {
    let data = frames.into_iter().filter(|frame| frame.kind == Kind::Data);
    data.map(|frame| (frame.stream, frame.payload, frame.end_stream)).collect()
}

/// Sends one response message and OK.
async fn respond(peer: &mut Peer, stream: u32) {
    peer.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"y")
        .headers(stream, true, OK)
        .send()
        .await;
}

#[tokio::test(start_paused = true)]
async fn hedged_call_takes_the_first_response_and_cancels_the_others() {
    let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
    let (started, call) = (Instant::now(), spawn_echo(&channel, "x"));
    let mut streams = Vec::new();
    for expected in [0, 100, 200] {
        let (stream, at) = next_attempt(&mut peer, started).await;
        assert_eq!(at, expected);
        streams.push(stream);
    }
    let answered = streams.remove(1);
    respond(&mut peer, answered).await;
    soon(call).await.expect("no panic").expect("a response");
    for stream in streams {
        cancelled(&mut peer, stream).await;
    }
    assert_eq!(channel.lanes()[0].in_flight, 0);
    check_counts(&channel, [0, 0, 2]);
}

/// Makes one unary call, and one call with two requests, and compares outcome and attempts: the times in milliseconds
/// after the call's start, and the number in the request header.
async fn check(responses: &[Response], expected: Result<(), Code>, attempts: &[(u128, Option<u32>)]) {
    for is_unary in [true, false] {
        let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
        let call = if is_unary {
            let call = spawn_echo(&channel, "x");
            tokio::spawn(async move { call.await.expect("no panic").map(Some) })
        } else {
            spawn_two(&channel, CallOptions::default())
        };
        let served = serve(&mut peer, responses).await;
        let outcome = soon(call).await.expect("no panic");
        assert_eq!(outcome.map(drop).map_err(|status| status.code()), expected, "unary: {is_unary}");
        assert_eq!(served.len(), attempts.len());
        for ((at, previous), (expected_at, expected_previous)) in served.iter().zip(attempts) {
            assert!((*expected_at..=*expected_at + 1).contains(at), "{served:?}, unary: {is_unary}");
            assert_eq!(*previous, expected_previous.map(|number| number.to_string()), "unary: {is_unary}");
        }
        let more = settled(&mut peer).await;
        assert!(more.iter().all(|frame| frame.kind != Kind::Headers), "another attempt, unary: {is_unary}");
        assert_eq!(in_flight(&channel), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn failure_of_an_attempt_starts_the_next_or_ends_the_call() {
    let (first, second, third) = ((0, None), (0, Some(1)), (0, Some(2)));
    check(&[UNAVAILABLE, Succeeds], Ok(()), &[first, second]).await;
    check(&[Fails(Code::NotFound)], Err(Code::NotFound), &[first]).await;
    check(&[UNAVAILABLE, Fails(Code::NotFound)], Err(Code::NotFound), &[first, second]).await;
    // All fail: the last status is the call's.
    let responses = [UNAVAILABLE, UNAVAILABLE, Fails(Code::Aborted)];
    check(&responses, Err(Code::Aborted), &[first, second, third]).await;
    // A transparent retry has the number of its attempt.
    check(&[Refuses, Succeeds], Ok(()), &[first, first]).await;
}

#[tokio::test(start_paused = true)]
async fn server_pushes_back() {
    let stop = FailsWithPushback(Code::Unavailable, "-1");
    check(&[stop], Err(Code::Unavailable), &[(0, None)]).await;
    let later = FailsWithPushback(Code::Unavailable, "3000");
    check(&[later, Succeeds], Ok(()), &[(0, None), (3000, Some(1))]).await;
}

/// The client of a server stream does not notice that one of three servers never responds.
#[tokio::test(start_paused = true)]
async fn stream_from_three_servers_does_not_wait_for_the_slow_one() {
    let (service, pipes) = (Echo::default(), mpsc::unbounded_channel());
    let (served, (slow, mut accepted)) = (Served::echo(&service), pipes);
    let mut config = config(HEDGING, "");
    config.load_balancing = PolicyConfig::RoundRobin;
    let connect = move |to| match to {
        Address::Tcp(to) if to == address(1) => {
            let (near, far) = tokio::io::duplex(PIPE);
            slow.send(far).expect("the test runs");
            near
        }
        _ => served.pipe(),
    };
    config.set_address_connector(move |to| {
        let pipe = connect(to);
        async move { Ok(pipe) }
    });
    config.set_resolver(EndpointList::new(endpoints(&[1, 2, 3])));
    let channel = Channel::new("fleet:1", config).expect("a target");
    channel.connect().await.expect("connected");
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    sleep(Duration::from_millis(10)).await;
    let mut waited = Vec::new();
    for _ in 0..12 {
        let started = Instant::now();
        let order = items(vec![raw("3 10")]);
        let mut responses =
            soon(stream(&channel, &REPEAT, order, &CallOptions::default())).await.expect("started");
        soon(responses.message()).await.expect("no error").expect("the first message");
        waited.push(started.elapsed().as_millis());
        assert_eq!(responses.rest().await.expect("OK").0.len(), 2);
    }
    let frames = settled(&mut peer).await;
    let of =
        |kind| frames.iter().filter(|frame| frame.kind == kind).map(|frame| frame.stream).collect::<Vec<_>>();
    // Each third attempt is sent there; it is the first of a call, whose second one goes to the next server.
    let slow = of(Kind::Headers);
    assert!((5..=7).contains(&slow.len()), "{slow:?}");
    assert_eq!(of(Kind::RstStream), slow, "the server learns that they are cancelled");
    assert_eq!(waited.iter().filter(|&&waited| waited >= 100).count(), slow.len(), "{waited:?}");
    assert!(waited.iter().all(|&waited| waited <= 101), "{waited:?}");
    assert_eq!((service.started(), in_flight(&channel)), (12, 0));
}

#[tokio::test(start_paused = true)]
async fn attempts_send_the_same_messages_until_one_responds() {
    let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
    let (started, (requests, call)) = (Instant::now(), spawn_chat(&channel));
    requests.send(raw("a")).expect("it reads");
    let (first, _) = next_attempt(&mut peer, started).await;
    assert_eq!(data(settled(&mut peer).await), [(first, envelope(b"a"), false)]);
    requests.send(raw("b")).expect("it reads");
    assert_eq!(data(settled(&mut peer).await), [(first, envelope(b"b"), false)]);
    let headers = soon(peer.next_of(Kind::Headers)).await;
    assert_eq!(started.elapsed().as_millis(), 100);
    assert!(headers.text().contains("grpc-previous-rpc-attempts: 1\n"), "{}", headers.text());
    let second = headers.stream;
    let both = [envelope(b"a"), envelope(b"b")].concat();
    assert_eq!(data(settled(&mut peer).await), [(second, both, false)]);
    requests.send(raw("c")).expect("it reads");
    let more = data(settled(&mut peer).await);
    assert_eq!(more, [(first, envelope(b"c"), false), (second, envelope(b"c"), false)]);

    peer.headers(second, false, OK_HEADERS).send().await;
    let mut responses = soon(call).await.expect("no panic").expect("a response");
    cancelled(&mut peer, first).await;
    requests.send(raw("d")).expect("it reads");
    // The reader of responses does not send: a task does.
    assert_eq!(data(settled(&mut peer).await), [(second, envelope(b"d"), false)]);
    drop(requests);
    assert_eq!(data(settled(&mut peer).await), [(second, Vec::new(), true)]);
    peer.message(second, false, b"y").headers(second, true, OK).send().await;
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("y")));
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    let more = settled(&mut peer).await;
    assert!(more.is_empty(), "a third attempt: {more:?}");
    assert_eq!(in_flight(&channel), 0);
    check_counts(&channel, [0, 0, 1]);
}

/// Length of a message that fills a pack, with its prefix.
const PACK_LEN: usize = 64 * 1024;

/// Starts a call with 20 messages and waits for two attempts, which wait for window.
async fn two_blocked_attempts(
    channel: &Channel,
    peer: &mut Peer,
) -> (u32, u32, JoinHandle<Result<Messages, Status>>) {
    let (requests, call) = spawn_chat(channel);
    for _ in 0..20 {
        requests.send(raw(vec![7; PACK_LEN - 5])).expect("it reads");
    }
    let started = Instant::now();
    let (first, _) = next_attempt(peer, started).await;
    let (second, at) = next_attempt(peer, started).await;
    assert_eq!(at, 100);
    (first, second, call)
}

/// Opens the windows of the connection and this stream. Returns the length of its data, up to its end, and the streams
/// that were cancelled meanwhile.
async fn read_request(peer: &mut Peer, stream: u32) -> (usize, Vec<u32>) {
    for of in [0, stream] {
        frame::window_update(StreamId::new(of), 1 << 24, &mut peer.out);
    }
    peer.send().await;
    let (mut len, mut cancelled) = (0, Vec::new());
    loop {
        let frame = soon(peer.next()).await.expect("a frame");
        match frame.kind {
            Kind::Data if frame.stream == stream => {
                len += frame.payload.len();
                if frame.end_stream {
                    return (len, cancelled);
                }
            }
            Kind::RstStream => {
                assert_eq!(frame.code(), ErrorCode::Cancel);
                cancelled.push(frame.stream);
            }
            Kind::Headers => panic!("another attempt"),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn response_to_an_attempt_behind_the_others_commits_the_call_to_it() {
    let method = HEDGING.replace("\"maxAttempts\": 3", "\"maxAttempts\": 2");
    let mut config = config(&method, "");
    config.call_retry_buffer_size = 4 << 20;
    let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
    let (first, second, call) = two_blocked_attempts(&channel, &mut peer).await;
    // Each has sent as much as the initial window of its stream before.
    let expected = (20 * PACK_LEN - 65_535, vec![]);
    assert_eq!(read_request(&mut peer, first).await, expected);
    peer.headers(second, false, OK_HEADERS).send().await;
    let mut responses = soon(call).await.expect("no panic").expect("a response");
    cancelled(&mut peer, first).await;
    assert_eq!(read_request(&mut peer, second).await, expected);
    peer.message(second, false, b"y").headers(second, true, OK).send().await;
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("y")));
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
}

/// Whichever attempt is ahead when the messages exceed the buffer is the only one from then on.
#[tokio::test(start_paused = true)]
async fn full_buffer_commits_the_call_to_the_attempt_that_is_ahead() {
    let mut config = config(HEDGING, "");
    config.call_retry_buffer_size = 8 * PACK_LEN;
    let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
    let (first, second, call) = two_blocked_attempts(&channel, &mut peer).await;
    assert_eq!(read_request(&mut peer, second).await, (20 * PACK_LEN, vec![first]));
    // The response comes later, and its failure is the call's.
    sleep(Duration::from_secs(1)).await;
    peer.headers(second, true, &[OK_HEADERS, &[("grpc-status", "14")]].concat()).send().await;
    let error = soon(call).await.expect("no panic").expect_err("it failed");
    assert_eq!(error.code(), Code::Unavailable);
    let more = settled(&mut peer).await;
    assert!(more.is_empty(), "{more:?}");
    assert_eq!(in_flight(&channel), 0);
}

/// An attempt that has failed takes no message for which the buffer has no room: it goes to another one.
#[tokio::test(start_paused = true)]
async fn full_buffer_does_not_commit_the_call_to_a_failed_attempt() {
    let mut config = config(HEDGING, "");
    config.call_retry_buffer_size = 6;
    let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
    let (requests, call) = spawn_chat(&channel);
    requests.send(raw("a")).expect("it reads");
    let started = Instant::now();
    let (first, _) = next_attempt(&mut peer, started).await;
    let (second, _) = next_attempt(&mut peer, started).await;
    assert_eq!(data(settled(&mut peer).await), [(second, envelope(b"a"), false)]);
    // The connection reads the failure before the call reads the message.
    peer.headers(first, true, &[OK_HEADERS, &[("grpc-status", "14")]].concat()).send().await;
    requests.send(raw("long message")).expect("it reads");
    drop(requests);
    let frames = settled(&mut peer).await;
    assert!(frames.iter().all(|frame| frame.kind != Kind::Headers), "the call is committed: {frames:?}");
    let sent = data(frames).into_iter().filter(|(stream, ..)| *stream == second);
    let bytes: Vec<_> = sent.map(|(_, bytes, _)| bytes).collect();
    assert_eq!(bytes.concat(), envelope(b"long message"));
    respond(&mut peer, second).await;
    soon(call).await.expect("no panic").expect("a response");
}

/// The messages of a call stay in the channel's buffer until it is committed, fails, or is dropped.
#[tokio::test(start_paused = true)]
async fn buffer_is_free_again_after_each_call() {
    // Two messages of one byte, with their prefixes.
    let mut config = config(HEDGING, "");
    config.retry_buffer_size = 12;
    let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
    let two = || spawn_two(&channel, CallOptions::default());
    // A call can be hedged if its messages are kept.
    let first_hedge = async |peer: &mut Peer| {
        let started = Instant::now();
        let (first, _) = next_attempt(peer, started).await;
        let (second, at) = next_attempt(peer, started).await;
        assert_eq!(at, 100);
        assert_eq!(data(settled(peer).await), [(second, [envelope(b"w"), envelope(b"x")].concat(), true)]);
        (first, second)
    };
    // Committed: it keeps nothing from then on.
    let (requests, call) = spawn_chat(&channel);
    for message in ["w", "x"] {
        requests.send(raw(message)).expect("it reads");
    }
    let started = Instant::now();
    let (first, _) = next_attempt(&mut peer, started).await;
    let (second, _) = next_attempt(&mut peer, started).await;
    peer.headers(first, false, OK_HEADERS).send().await;
    let responses = soon(call).await.expect("no panic").expect("a response");
    cancelled(&mut peer, second).await;
    for message in ["w", "x"] {
        requests.send(raw(message)).expect("it reads");
        assert_eq!(data(settled(&mut peer).await), [(first, envelope(message.as_bytes()), false)]);
    }
    let other = two();
    let (_, second) = first_hedge(&mut peer).await;
    drop(responses);
    // Failed.
    peer.headers(second, true, &[OK_HEADERS, &[("grpc-status", "5")]].concat()).send().await;
    assert_eq!(soon(other).await.expect("no panic").expect_err("it fails").code(), Code::NotFound);
    // Dropped.
    let call = two();
    first_hedge(&mut peer).await;
    call.abort();
    soon(call).await.expect_err("it was dropped");
    settled(&mut peer).await;
    // Committed by a message that is not kept.
    let (requests, call) = spawn_chat(&channel);
    requests.send(raw("long message")).expect("it reads");
    next_attempt(&mut peer, Instant::now()).await;
    let call_kept = two();
    let (first, _) = first_hedge(&mut peer).await;
    // While it is kept, there is no room for another call's.
    let committed = two();
    let (stream, _) = next_attempt(&mut peer, Instant::now()).await;
    sleep(Duration::from_millis(90)).await;
    respond(&mut peer, first).await;
    soon(call_kept).await.expect("no panic").expect("a response");
    sleep(Duration::from_millis(500)).await;
    assert!(
        settled(&mut peer).await.iter().all(|frame| frame.kind != Kind::Headers),
        "two calls are committed"
    );
    respond(&mut peer, stream).await;
    soon(committed).await.expect("no panic").expect("a response");
    call.abort();
    let call = two();
    let (first, _) = first_hedge(&mut peer).await;
    respond(&mut peer, first).await;
    soon(call).await.expect("no panic").expect("a response");
}

#[tokio::test(start_paused = true)]
async fn throttled_channel_does_not_hedge_streams() {
    let throttling = r#", "retryThrottling": { "maxTokens": 4, "tokenRatio": 1 }"#;
    let (channel, mut peer, _accepted) = connected_by(config(HEDGING, throttling), &[]).await;
    // Each failure takes a token. With half of the four left, no attempt starts.
    let call = spawn_two(&channel, CallOptions::default());
    serve(&mut peer, &[UNAVAILABLE, UNAVAILABLE]).await;
    assert_eq!(soon(call).await.expect("no panic").expect_err("it fails").code(), Code::Unavailable);
    let call = spawn_two(&channel, CallOptions::default());
    let (only, _) = next_attempt(&mut peer, Instant::now()).await;
    sleep(Duration::from_secs(1)).await;
    assert!(settled(&mut peer).await.iter().all(|frame| frame.kind != Kind::Headers));
    respond(&mut peer, only).await;
    soon(call).await.expect("no panic").expect("a response");
    // The success has added one.
    let call = spawn_two(&channel, CallOptions::default());
    let started = Instant::now();
    next_attempt(&mut peer, started).await;
    assert_eq!(next_attempt(&mut peer, started).await.1, 100);
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn deadline_and_drop_of_a_stream_cancel_all_attempts() {
    for is_dropped in [true, false] {
        let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
        let started = Instant::now();
        let call = spawn_two(&channel, within(Duration::from_millis(250)));
        let mut streams = Vec::new();
        for expected in [0, 100, 200] {
            let (stream, at) = next_attempt(&mut peer, started).await;
            assert_eq!(at, expected);
            streams.push(stream);
        }
        if is_dropped {
            call.abort();
            soon(call).await.expect_err("it was dropped");
        } else {
            let error = soon(call).await.expect("no panic").expect_err("no response");
            assert_eq!((error.code(), started.elapsed().as_millis()), (Code::DeadlineExceeded, 250));
        }
        for stream in streams {
            cancelled(&mut peer, stream).await;
        }
        assert_eq!(in_flight(&channel), 0);
    }
}

/// A failed source of requests fails the call, whatever attempts there are.
#[tokio::test(start_paused = true)]
async fn error_of_the_requests_ends_all_attempts() {
    let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
    let (requests, source) = mpsc::unbounded_channel();
    let of_channel = channel.clone();
    let call = tokio::spawn(async move {
        let mut options = CallOptions::default();
        options.max_encoding_message_size = 3;
        stream(&of_channel, &CHAT, Receiver(source), &options).await
    });
    requests.send(raw("a")).expect("it reads");
    let started = Instant::now();
    let (first, _) = next_attempt(&mut peer, started).await;
    let (second, _) = next_attempt(&mut peer, started).await;
    requests.send(raw("too long")).expect("it reads");
    let error = soon(call).await.expect("no panic").expect_err("it cannot be sent");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    for stream in [first, second] {
        cancelled(&mut peer, stream).await;
    }
}

/// Makes a raw call whose body is sent in two pieces.
fn spawn_raw(
    channel: &Channel,
    later: UnboundedReceiver<Bytes>,
) -> JoinHandle<Result<http::HeaderMap, Status>> {
    let body = Pieces::of([&envelope(b"a")]).and_later(later);
    let request =
        Request::post("/test.Echo/Chat").header("content-type", "application/grpc").header("te", "trailers");
    let sent = channel.raw(request.body(body).expect("a request"), &CallOptions::default());
    tokio::spawn(async move {
        let response = sent.await?;
        Ok(response.headers().clone())
    })
}

#[tokio::test(start_paused = true)]
async fn raw_streams_are_hedged() {
    let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
    let (later, body) = mpsc::unbounded_channel();
    let (started, call) = (Instant::now(), spawn_raw(&channel, body));
    let (first, _) = next_attempt(&mut peer, started).await;
    assert_eq!(data(settled(&mut peer).await), [(first, envelope(b"a"), false)]);
    let (second, at) = next_attempt(&mut peer, started).await;
    assert_eq!((at, data(settled(&mut peer).await)), (100, vec![(second, envelope(b"a"), false)]));
    later.send(Bytes::from(envelope(b"b"))).expect("it reads");
    let more = data(settled(&mut peer).await);
    assert_eq!(more, [(first, envelope(b"b"), false), (second, envelope(b"b"), false)]);
    // A Trailers-Only response does not commit the call.
    peer.headers(first, true, &[OK_HEADERS, &[("grpc-status", "14"), ("x-of", "first")]].concat())
        .send()
        .await;
    let (third, _) = next_attempt(&mut peer, started).await;
    // If all fail, the caller gets the last failure.
    peer.headers(third, true, &[OK_HEADERS, &[("grpc-status", "14"), ("x-of", "third")]].concat())
        .send()
        .await;
    settled(&mut peer).await;
    peer.headers(second, true, &[OK_HEADERS, &[("grpc-status", "10"), ("x-of", "second")]].concat())
        .send()
        .await;
    let headers = soon(call).await.expect("no panic").expect("a response");
    assert_eq!(
        (&headers["grpc-status"], &headers["x-of"]),
        (&"10".parse().unwrap(), &"second".parse().unwrap())
    );
    assert_eq!(in_flight(&channel), 0);
}

/// Refuses the first two attempts that come, and answers the third one. Returns the times of all, and their
/// `grpc-previous-rpc-attempts`.
async fn refuse_two(policy: &str) -> Vec<Attempt> {
    let (channel, mut peer, _accepted) = connected_by(config(policy, ""), &[]).await;
    let call = spawn_echo(&channel, "x");
    let attempts = serve(&mut peer, &[Refuses, Refuses, Succeeds]).await;
    soon(call).await.expect("no panic").expect("a response");
    assert_eq!(channel.lanes()[0].in_flight, 0);
    attempts
}

/// gRFC A6: the first refused attempt of a call starts again, with its number; another one counts as failed.
#[tokio::test(start_paused = true)]
async fn refused_hedged_attempt_starts_again_once() {
    let number = |number: &str| Some(number.to_owned());
    assert_eq!(refuse_two(HEDGING).await, [(0, None), (0, None), (0, number("1"))]);
    // The second attempt is the first that is refused.
    let (channel, mut peer, _accepted) = connected_by(config(HEDGING, ""), &[]).await;
    let call = spawn_echo(&channel, "x");
    let (first, _) = next_attempt(&mut peer, Instant::now()).await;
    let attempts = serve(&mut peer, &[Refuses, Refuses, Succeeds]).await;
    assert_eq!(attempts, [(100, number("1")), (100, number("1")), (100, number("2"))]);
    soon(call).await.expect("no panic").expect("a response");
    cancelled(&mut peer, first).await;
}

/// A server that ends each connection before it processes the call, as a proxy does that has reached its limit of
/// requests. Returns how often the call was sent, and its error.
async fn send_away(policy: &str) -> (usize, Status) {
    let (channel, peer, mut accepted) = connected_by(config(policy, ""), &[]).await;
    let (call, mut peers) = (spawn_echo(&channel, "x"), vec![peer]);
    loop {
        let peer = peers.last_mut().expect("one at least");
        soon(peer.next_of(Kind::Headers)).await;
        peer.go_away(0).send().await;
        sleep(Duration::from_millis(1)).await;
        if call.is_finished() {
            return (peers.len(), call.await.expect("no panic").expect_err("never processed"));
        }
        assert!(peers.len() < 100, "no limit");
        let io = soon(accepted.recv()).await.expect("it connects again");
        peers.push(Peer::server(io, &[]).await);
    }
}

#[tokio::test(start_paused = true)]
async fn hedged_attempt_starts_again_as_often_as_other_calls_after_goaway() {
    let (count, status) = send_away(r#""waitForReady": false"#).await;
    assert_eq!((count, status.code()), (17, Code::Unavailable));
    let hedging = r#""hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "1000s" }"#;
    let (hedged, hedged_status) = send_away(hedging).await;
    assert_eq!(hedged, count);
    assert_eq!(hedged_status.to_string(), status.to_string());
}
