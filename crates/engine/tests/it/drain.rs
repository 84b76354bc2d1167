//! Graceful shutdown (RFC 9113 §6.8): two GOAWAYs, requests already in flight, and the grace period.

use std::time::Duration;

use thalweg_engine::Code;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, GoAway, Kind};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::support::peer::{Frame, OK, OK_HEADERS, Peer, REQUEST};
use crate::support::{
    Echo, Receiver, Served, chat, client_with, connected, echo, in_flight, items, raw, request_at,
    server_config, settled, soon, spawn_echo, until,
};

fn last_stream(goaway: &Frame) -> u32 {
    let (goaway, _) = GoAway::parse(&goaway.payload).expect("a GOAWAY");
    assert_eq!(goaway.code, ErrorCode::NoError);
    goaway.last_stream.get()
}

/// The first GOAWAY leaves room for requests in flight, the second names the last one. Later requests are not served,
/// and the connection ends with the last call.
#[tokio::test(start_paused = true)]
async fn drain_serves_calls_in_flight_only() {
    let service = Echo::default();
    let served = Served::echo(&service);
    let mut peer = served.peer().await;
    let chat = request_at("/test.Echo/Chat");
    peer.headers(1, false, &chat).message(1, false, b"x");
    assert_eq!(settled(&mut peer).await.len(), 2);
    let stopping = served.stop();
    assert_eq!(last_stream(&soon(peer.next_of(Kind::GoAway)).await), (1 << 31) - 1);
    let ping = soon(peer.next_of(Kind::Ping)).await;
    // This request was in flight.
    peer.headers(3, false, REQUEST).message(3, true, b"y").send().await;
    let headers = soon(peer.next_of(Kind::Headers)).await;
    assert_eq!((headers.stream, headers.end_stream), (3, false));
    peer.frame(Kind::Ping, Flags::ACK, 0, &ping.payload).send().await;
    assert_eq!(last_stream(&soon(peer.next_of(Kind::GoAway)).await), 3);
    assert_eq!(service.started(), 2);
    // This request is too late and does not start.
    peer.headers(5, false, REQUEST).message(5, true, b"z");
    let frames = settled(&mut peer).await;
    assert!(frames.iter().all(|frame| frame.stream != 5 || frame.kind != Kind::Headers), "{frames:?}");
    assert_eq!(service.started(), 2);
    // The active call continues to its end.
    peer.message(1, true, b"last");
    let frames = soon(peer_rest(&mut peer)).await;
    assert!(frames.iter().any(|frame| frame.kind == Kind::Data && frame.payload.ends_with(b"last")));
    assert!(frames.iter().any(|frame| frame.stream == 1 && frame.end_stream), "{frames:?}");
    drop(peer);
    let took = soon(stopping).await.expect("no panic");
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(service.cancelled(), 0);
}

async fn peer_rest(peer: &mut Peer) -> Vec<Frame> {
    peer.send().await;
    peer.rest().await
}

/// A client that does not acknowledge the PING gets the second GOAWAY after `drain_timeout`, before the grace period
/// ends.
#[tokio::test(start_paused = true)]
async fn client_that_ignores_goaway_does_not_use_up_the_grace() {
    let served = Served::echo(&Echo::default());
    let mut peer = served.peer().await;
    settled(&mut peer).await;
    let stopping = served.stop();
    let goaways = async {
        let frames = peer.rest().await;
        frames.iter().filter(|frame| frame.kind == Kind::GoAway).map(last_stream).collect::<Vec<_>>()
    };
    assert_eq!(soon(goaways).await, [(1 << 31) - 1, 0]);
    drop(peer);
    let took = soon(stopping).await.expect("no panic");
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(8), "{took:?}");
}

/// A drain drops the handlers of calls that outlast the grace period, and the client receives the reason.
#[tokio::test(start_paused = true)]
async fn calls_in_progress_end_after_the_grace() {
    let service = Echo::default();
    let config = server_config(|config| config.shutdown_grace = Duration::from_secs(7));
    let served = Served::start(config, service.router());
    let channel = served.channel(|_| {}).await;
    let unary = spawn_echo(&channel, "sleep");
    let (requests, source) = mpsc::unbounded_channel();
    let mut responses = soon(chat(&channel, Receiver(source))).await.expect("headers");
    until(|| service.started() == 2).await;
    let stopping = served.stop();
    sleep(Duration::from_secs(6)).await;
    requests.send(raw("x")).expect("open");
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("x")));
    let took = soon(stopping).await.expect("no panic");
    assert!(took >= Duration::from_secs(7) && took < Duration::from_secs(10), "{took:?}");
    assert_eq!(service.cancelled(), 2);
    let status = soon(unary).await.expect("no panic").expect_err("cut off");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("shutdown timeout expired"), "{}", status.message());
    assert_eq!(responses.message().await.expect_err("cut off").code(), Code::Unavailable);
    assert_eq!(in_flight(&channel), 0);
}

/// Idle clients are disconnected at once, and new calls find no server.
#[tokio::test(start_paused = true)]
async fn idle_clients_are_disconnected_at_once() {
    let served = Served::echo(&Echo::default());
    let (one, other) = (served.channel(|_| {}).await, served.channel(|_| {}).await);
    soon(echo(&one, raw("x"))).await.expect("a response");
    let took = soon(served.stop()).await.expect("no panic");
    assert!(took < Duration::from_secs(1), "{took:?}");
    for channel in [one, other] {
        let status = soon(echo(&channel, raw("y"))).await.expect_err("the server has stopped");
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    }
}

/// `Draining` reports the drain to waiters before it starts and after.
#[tokio::test(start_paused = true)]
async fn drain_is_observable() {
    let config = server_config(|_| {});
    let draining = config.draining.clone();
    let served = Served::start(config, Echo::default().router());
    let waiting = tokio::spawn({
        let draining = draining.clone();
        async move { draining.started().await }
    });
    sleep(Duration::from_secs(1)).await;
    assert!(!draining.has_started() && !waiting.is_finished());
    soon(served.stop()).await.expect("no panic");
    soon(waiting).await.expect("no panic");
    assert!(draining.has_started());
    soon(draining.started()).await;
}

/// A connection that opens during the drain gets GOAWAY at once.
#[tokio::test(start_paused = true)]
async fn connection_accepted_while_draining_gets_goaway() {
    let config = server_config(|_| {});
    soon(Served::start(config.clone(), Echo::default().router()).stop()).await.expect("no panic");
    // Another server with the same `Draining`.
    let mut peer = client_with(config, Echo::default().router()).await;
    assert_eq!(last_stream(&soon(peer.next_of(Kind::GoAway)).await), (1 << 31) - 1);
}

/// A complete response that its client reads slowly is sent within the grace period.
#[tokio::test(start_paused = true)]
async fn slow_reader_gets_response_within_grace() {
    let config = server_config(|config| config.shutdown_grace = Duration::from_secs(600));
    let served = Served::start(config, Echo::default().router());
    let mut peer = served.peer().await;
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 20).to_be_bytes());
    peer.headers(1, false, REQUEST).frame(Kind::WindowUpdate, Flags::NONE, 1, &(1_u32 << 20).to_be_bytes());
    peer.message(1, true, b"size 250000").send().await;
    let stopping = served.stop();
    let mut received = 0;
    // Much longer than a closed connection lingers.
    while let Some(frame) = peer.next().await {
        received += if frame.kind == Kind::Data { frame.payload.len() } else { 0 };
        sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(received, 250_005);
    drop(peer);
    timeout(Duration::from_secs(60), stopping).await.expect("it stops").expect("no panic");
}

/// RFC 9113 §3.4, §6.5.3: a client that does not acknowledge SETTINGS within ten seconds is disconnected.
#[tokio::test(start_paused = true)]
async fn silent_client_gets_settings_timeout() {
    let served = Served::echo(&Echo::default());
    let started = Instant::now();
    let mut silent = Peer::new(served.pipe());
    let frames = soon(silent.rest()).await;
    assert_eq!(
        frames.last().map(|frame| (frame.kind, frame.code())),
        Some((Kind::GoAway, ErrorCode::SettingsTimeout))
    );
    assert!((10..13).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

/// After GOAWAY without an error, new calls use another connection; active ones finish where they are.
#[tokio::test(start_paused = true)]
async fn client_disconnects_after_goaway() {
    let (channel, mut peer, mut accepted) = connected(&[]).await;
    let under_way = spawn_echo(&channel, "x");
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.go_away((1 << 31) - 1).send().await;
    settled(&mut peer).await;
    let next_call = spawn_echo(&channel, "y");
    let mut next = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    let other = soon(next.next_of(Kind::Data)).await.stream;
    next.headers(other, false, OK_HEADERS).message(other, false, b"z").headers(other, true, OK).send().await;
    assert_eq!(soon(next_call).await.expect("no panic").expect("a response"), raw("z"));
    peer.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"w")
        .headers(stream, true, OK)
        .send()
        .await;
    assert_eq!(soon(under_way).await.expect("no panic").expect("a response"), raw("w"));
    // The last call has ended.
    soon(peer.rest()).await;
}

/// The reason in GOAWAY reaches the calls that it ends.
#[tokio::test(start_paused = true)]
async fn reason_of_goaway_reaches_the_caller() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    let code = u32::from(ErrorCode::EnhanceYourCalm).to_be_bytes();
    let goaway = [&stream.to_be_bytes()[..], &code, b"too much"].concat();
    peer.frame(Kind::GoAway, Flags::NONE, 0, &goaway).send().await;
    drop(peer);
    let status = soon(call).await.expect("no panic").expect_err("lost");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("ENHANCE_YOUR_CALM: too much"), "{}", status.message());
}

/// A dropped channel sends GOAWAY when its last call has ended.
#[tokio::test(start_paused = true)]
async fn dropped_channel_closes_after_its_last_call() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn(async move {
        let responses = chat(&channel, items(vec![raw("x")])).await?;
        drop(channel);
        responses.rest().await
    });
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.headers(stream, false, OK_HEADERS).send().await;
    sleep(Duration::from_secs(5)).await;
    peer.message(stream, false, b"y").headers(stream, true, OK).send().await;
    let (messages, _) = soon(call).await.expect("no panic").expect("a response");
    assert_eq!(messages, [raw("y")]);
    let frames = soon(peer.rest()).await;
    assert!(frames.iter().any(|frame| frame.kind == Kind::GoAway), "{frames:?}");
    assert!(frames.iter().all(|frame| frame.kind != Kind::RstStream), "{frames:?}");
}
