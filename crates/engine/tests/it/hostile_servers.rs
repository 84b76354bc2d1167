//! Malicious servers: limits on what they may send, and the errors that callers get.

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use thalweg_engine::{Code, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use crate::support::peer::{OK, OK_HEADERS, Peer};
use crate::support::{Message, connected, echo, raw, soon};

/// Appends to a server's output.
type Script = fn(&mut Peer) -> &mut Peer;

/// Number of repetitions of a flood, beyond any limit.
const ROUNDS: usize = 30_000;

/// The server accepts a call on stream 1 and sends `first`. The call is still pending.
async fn called(first: Script) -> (JoinHandle<Result<Message, Status>>, Peer, impl Sized) {
    let (channel, mut peer, accepted) = connected(&[]).await;
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { echo(&channel, raw("x")).await }
    });
    soon(peer.next_of(Kind::Data)).await;
    first(&mut peer);
    (call, peer, (channel, accepted))
}

/// The server sends `first` and then `round` repeatedly. The client closes the connection with the reason `why`.
async fn check_flood(first: Script, round: Script, why: &str) {
    let (call, mut peer, _kept) = called(first).await;
    for _ in 0..ROUNDS {
        round(&mut peer);
    }
    let (mut read, mut write) = tokio::io::split(peer.io);
    let write = async {
        // The connection is closed before everything is sent.
        let _ = write.write_all(&peer.out).await;
        let _ = write.shutdown().await;
    };
    let mut received = Vec::new();
    let ((), read) = soon(async { tokio::join!(write, read.read_to_end(&mut received)) }).await;
    read.expect("pipes don't fail");
    assert!(String::from_utf8_lossy(&received).contains(why), "{why}: it was let pass");
    soon(call).await.expect("no panic").expect_err("the connection is gone");
}

/// Checks the caller's error after the server sends this once.
async fn check_status(script: Script, code: Code, why: &str) {
    let (call, mut peer, _kept) = called(script).await;
    let out = std::mem::take(&mut peer.out);
    // The connection may be closed before everything is sent.
    let (_, outcome) = tokio::join!(soon(peer.io.write_all(&out)), soon(call));
    let status = outcome.expect("no panic").expect_err("it is no answer");
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(why), "{status}");
}

#[tokio::test(start_paused = true)]
async fn flood_ends_the_connection() {
    let nothing: Script = |it| it;
    let responds: Script = |it| it.headers(1, false, OK_HEADERS);
    let ends: Script = |it| it.reset(1, ErrorCode::Cancel);
    let informational: Script = |it| it.headers(1, false, &[(":status", "103")]);
    check_flood(nothing, informational, "informational responses").await;
    check_flood(nothing, |it| it.settings(&[]), "SETTINGS frames").await;
    let to_and_fro: Script =
        |it| it.settings(&[Setting::InitialWindowSize(0), Setting::InitialWindowSize(65_535)]);
    check_flood(nothing, to_and_fro, "SETTINGS frames").await;
    check_flood(nothing, |it| it.settings(&[Setting::HeaderTableSize(0)]), "SETTINGS frames").await;
    check_flood(nothing, |it| it.frame(Kind::Ping, Flags::NONE, 0, &[0; 8]), "too_many_pings").await;
    check_flood(nothing, |it| it.frame(Kind::Unknown(99), Flags::NONE, 0, b""), "unknown frames").await;
    let widens: Script = |it| it.frame(Kind::WindowUpdate, Flags::NONE, 1, &[0, 0, 0, 1]);
    check_flood(nothing, widens, "WINDOW_UPDATEs").await;
    check_flood(responds, |it| it.data(1, false, b""), "tiny DATA").await;
    check_flood(ends, ends, "RST_STREAMs").await;
    check_flood(nothing, |it| it.go_away(1), "GOAWAYs").await;
    let begins: Script = |it| it.frame(Kind::Headers, Flags::NONE, 1, &[0x88]);
    check_flood(begins, |it| it.frame(Kind::Continuation, Flags::NONE, 1, &[0x88]), "CONTINUATION").await;
}

#[tokio::test(start_paused = true)]
async fn frame_that_is_too_large_or_forbidden_ends_the_call() {
    let promise: Script = |it| it.frame(Kind::PushPromise, Flags::END_HEADERS, 1, &[0, 0, 0, 2, 0x82]);
    check_status(promise, Code::Unavailable, "PUSH_PROMISE").await;
    let overflow: Script = |it| it.frame(Kind::WindowUpdate, Flags::NONE, 0, &[0x7f, 0xff, 0xff, 0xff]);
    check_status(overflow, Code::Unavailable, "window overflows").await;
    let ends_informational: Script = |it| it.headers(1, true, &[(":status", "100")]);
    check_status(ends_informational, Code::Internal, "").await;
    // A header list counts 33 bytes for each of these fields.
    check_status(
        |it| it.headers(1, false, &[OK_HEADERS, &vec![("x", ""); 600]].concat()),
        Code::ResourceExhausted,
        "",
    )
    .await;
    check_status(
        |it| it.headers(1, false, OK_HEADERS).headers(1, true, &[OK, &vec![("x", ""); 600]].concat()),
        Code::ResourceExhausted,
        "",
    )
    .await;
    // The prefix of a 4 GiB message suffices.
    let declares: Script = |it| it.headers(1, false, OK_HEADERS).data(1, false, b"\0\xff\xff\xff\xff");
    check_status(declares, Code::ResourceExhausted, "larger than max").await;
    let flag: Script = |it| it.headers(1, false, OK_HEADERS).data(1, false, b"\x07\0\0\0\0");
    check_status(flag, Code::Internal, "compressed flag").await;
    let compressed: Script =
        |it| it.headers(1, false, OK_HEADERS).data(1, false, b"\x01\0\0\0\0").headers(1, true, OK);
    check_status(compressed, Code::Internal, "compressed flag").await;
}

/// `grpc-status` and `grpc-message` are parsed whatever they contain.
#[tokio::test(start_paused = true)]
async fn malformed_status_is_parsed_as_far_as_possible() {
    let check = async |status: Script, code: Code, message: &str| check_status(status, code, message).await;
    let trailers: Script =
        |it| it.headers(1, true, &[OK_HEADERS, &[("grpc-status", "8"), ("grpc-message", "%")]].concat());
    check(trailers, Code::ResourceExhausted, "%").await;
    let invalid: Script = |it| {
        it.headers(1, true, &[OK_HEADERS, &[("grpc-status", "8"), ("grpc-message", "%ff%zz%e2%82")]].concat())
    };
    check(invalid, Code::ResourceExhausted, "%zz").await;
    let huge: Script =
        |it| it.headers(1, true, &[OK_HEADERS, &[("grpc-status", "99999999999999999999")]].concat());
    check(huge, Code::Unknown, "").await;
    let details: Script = |it| {
        let broken = [("grpc-status", "8"), ("grpc-status-details-bin", "*")];
        it.headers(1, true, &[OK_HEADERS, &broken].concat())
    };
    check(details, Code::Internal, "grpc-status-details-bin").await;
    let text = "%41".repeat(5_000);
    let (call, mut peer, _kept) = called(|it| it).await;
    peer.headers(1, true, &[OK_HEADERS, &[("grpc-status", "8"), ("grpc-message", &text)]].concat())
        .send()
        .await;
    let status = soon(call).await.expect("no panic").expect_err("a status");
    assert_eq!(status.message(), "A".repeat(5_000));
}
