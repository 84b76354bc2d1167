//! Channels and their connections: connecting, breaking, reconnecting, and the queue of calls for a full one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::peer::{self, HEAD, OK, Peer, channel_to_test, connected};
use crate::support::{COUNT, ECHO, Echo, connect, echo, items, poll_once, raw, soon, spawn_echo, until};
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Status};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Kind, Setting};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const ONE_STREAM: &[Setting] = &[Setting::MaxConcurrentStreams(1)];

/// Reads the next call and echoes its message.
async fn respond_to_next(peer: &mut Peer) -> String {
    let data = soon(peer.next_of(Kind::Data)).await;
    peer.headers(data.stream, false, HEAD).data(data.stream, false, &data.payload).headers(
        data.stream,
        true,
        OK,
    );
    peer.send().await;
    String::from_utf8_lossy(&data.payload[5..]).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_calls_run_in_order() {
    let server = thalweg::Server::builder()
        .add_service(Echo::default())
        .max_concurrent_streams(1)
        .bind(&["127.0.0.1:0".parse().expect("an address")])
        .await
        .expect("a free port");
    let target = server.local_addresses()[0].to_string();
    let serving = tokio::spawn(server.serve());
    let channel = connect(&target).await;
    let calls: Vec<_> = (0..100).map(|_| spawn_echo(&channel, "yield")).collect();
    for call in calls {
        assert_eq!(soon(call).await.expect("no panic").expect("a response"), raw("yield"));
    }
    assert_eq!(channel.lanes()[0].in_flight, 0);
    serving.abort();
}

#[tokio::test]
async fn dropped_queued_call_frees_its_place() {
    let (channel, mut peer, _accepted) = connected(ONE_STREAM).await;
    let first = spawn_echo(&channel, "first");
    let data = soon(peer.next_of(Kind::Data)).await;
    let mut dropped = Box::pin(echo(&channel, raw("given up")));
    let mut woken = Box::pin(echo(&channel, raw("woken and given up")));
    assert!(poll_once(dropped.as_mut()).is_none() && poll_once(woken.as_mut()).is_none());
    let last = spawn_echo(&channel, "last");
    tokio::task::yield_now().await;
    drop(dropped);
    peer.headers(data.stream, false, HEAD).message(data.stream, false, b"first").headers(
        data.stream,
        true,
        OK,
    );
    peer.send().await;
    assert_eq!(soon(first).await.expect("no panic").expect("a response"), raw("first"));
    // `woken` was already notified of the free stream, and passes that on.
    drop(woken);
    assert_eq!(respond_to_next(&mut peer).await, "last");
    assert_eq!(soon(last).await.expect("no panic").expect("a response"), raw("last"));
}

#[tokio::test]
async fn raised_stream_limit_admits_queued_calls() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(0)]).await;
    let calls = ["a", "b", "c"].map(|message| spawn_echo(&channel, message));
    tokio::task::yield_now().await;
    peer.settings(&[Setting::MaxConcurrentStreams(3)]).send().await;
    for _ in 0..3 {
        respond_to_next(&mut peer).await;
    }
    for call in calls {
        soon(call).await.expect("no panic").expect("a response");
    }
}

#[tokio::test]
async fn goaway_moves_queued_calls_and_finishes_started_ones() {
    let (channel, mut peer, mut accepted) = connected(ONE_STREAM).await;
    let started = spawn_echo(&channel, "under way");
    let data = soon(peer.next_of(Kind::Data)).await;
    let waiting = ["x", "y"].map(|message| spawn_echo(&channel, message));
    tokio::task::yield_now().await;
    peer.go_away(data.stream).send().await;
    let mut second = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
    respond_to_next(&mut second).await;
    respond_to_next(&mut second).await;
    for call in waiting {
        soon(call).await.expect("no panic").expect("a response");
    }
    peer.headers(data.stream, false, HEAD).message(data.stream, false, b"late").headers(
        data.stream,
        true,
        OK,
    );
    peer.send().await;
    assert_eq!(soon(started).await.expect("no panic").expect("a response"), raw("late"));
    // Its last call has ended, so the connection closes.
    soon(peer.rest()).await;
}

#[tokio::test]
async fn unprocessed_calls_are_retried_once() {
    let (channel, mut peer, mut accepted) = connected(&[]).await;
    let refused = spawn_echo(&channel, "refused");
    for _ in 0..2 {
        let data = soon(peer.next_of(Kind::Data)).await;
        peer.reset(data.stream, ErrorCode::RefusedStream).send().await;
    }
    let status = soon(refused).await.expect("no panic").expect_err("refused twice");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");

    let beyond = spawn_echo(&channel, "beyond");
    let data = soon(peer.next_of(Kind::Data)).await;
    peer.go_away(data.stream - 2).send().await;
    let mut second = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
    assert_eq!(respond_to_next(&mut second).await, "beyond");
    soon(beyond).await.expect("no panic").expect("a response");

    let seen = spawn_echo(&channel, "seen");
    let data = soon(second.next_of(Kind::Data)).await;
    second.reset(data.stream, ErrorCode::InternalError).send().await;
    let status = soon(seen).await.expect("no panic").expect_err("an application may have seen it");
    assert_eq!(status.code(), Code::Internal, "{status:?}");
}

#[tokio::test]
async fn lost_connection_error_names_the_stage() {
    /// Frames that the server sends before it disappears.
    type PeerAction = fn(&mut Peer, u32);
    let check = async |stage: &str, phase: &str, act: PeerAction| {
        let (channel, mut peer, mut accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        let data = soon(peer.next_of(Kind::Data)).await;
        act(&mut peer, data.stream);
        peer.send().await;
        drop(peer);
        let status = soon(call).await.expect("no panic").expect_err(stage);
        let hint = "(the server may have been killed, or the connection cut)";
        let expected =
            format!("memory:1 closed the connection {hint} [/test.Echo/Echo to memory:1, {phase}]");
        assert_eq!((status.code(), status.message()), (Code::Unavailable, &*expected));
        assert_eq!(channel.lanes()[0].in_flight, 0, "{stage}");
        // The next call notices and reconnects.
        let next = spawn_echo(&channel, "next");
        let mut second = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
        respond_to_next(&mut second).await;
        soon(next).await.expect("no panic").expect("a response");
    };
    let (waiting, receiving) = ("waiting for the response", "receiving the response");
    check("nothing said", waiting, |_, _| ()).await;
    check("after the head", receiving, |peer, stream| {
        peer.headers(stream, false, HEAD);
    })
    .await;
    check("after the message", receiving, |peer, stream| {
        peer.headers(stream, false, HEAD).message(stream, false, b"x");
    })
    .await;
    check("within a frame", waiting, |peer, _| peer.out.extend_from_slice(&[0, 0, 9, 1])).await;
}

#[tokio::test]
async fn response_before_connection_loss_counts() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    let data = soon(peer.next_of(Kind::Data)).await;
    peer.headers(data.stream, false, HEAD).message(data.stream, false, b"y").headers(data.stream, true, OK);
    peer.send().await;
    drop(peer);
    assert_eq!(soon(call).await.expect("no panic").expect("a response"), raw("y"));
}

#[tokio::test]
async fn channel_fails_on_non_grpc_servers() {
    let check = async |first: &'static [u8], close: bool, expected: &str| {
        let (builder, mut accepted) = channel_to_test();
        let connecting = tokio::spawn(builder.connect());
        let mut io = accepted.recv().await.expect("it connects");
        io.write_all(first).await.expect("it reads");
        let error = if close {
            drop(io);
            soon(connecting).await
        } else {
            soon(connecting).await
        };
        let error = error.expect("no panic").expect_err(expected).to_string();
        assert!(error.contains(expected) && error.contains("memory:1"), "{error}");
    };
    check(b"HTTP/1.1 400 Bad Request\r\n\r\n", false, "the server speaks HTTP/1.x").await;
    check(b"HTTP/1.1 400 Bad Request\r\n\r\n", true, "the server speaks HTTP/1.x").await;
    // An alert: unexpected message.
    check(b"\x15\x03\x03\x00\x02\x02\x0a", true, "the server uses TLS").await;
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", false, "the server uses TLS").await;
    check(b"SSH-2.0-OpenSSH_9.9\r\n", false, "the peer does not speak HTTP/2").await;
    check(b"", true, "check that it is a gRPC server without TLS").await;
}

#[tokio::test(start_paused = true)]
async fn silent_server_fails_connecting() {
    let (builder, mut accepted) = channel_to_test();
    let connecting = tokio::spawn(builder.connect_timeout(Duration::from_secs(7)).connect());
    let mut io = accepted.recv().await.expect("it connects");
    let error = soon(connecting).await.expect("no panic").expect_err("it stalls").to_string();
    assert_eq!(
        error,
        "no connection to memory:1 within 7s: the other end had not sent its HTTP/2 SETTINGS (check that it is a gRPC \
         server without TLS)"
    );
    // The attempt has ended, and with it its connection.
    let mut rest = Vec::new();
    soon(io.read_to_end(&mut rest)).await.expect("an end");
}

#[tokio::test]
async fn silent_address_leaves_time_for_next() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_at = silent.local_addr().expect("bound");
    let target = format!("ipv4:{silent_at},{}", crate::support::serve(Echo::default()).await);
    // The silent address gets half of it.
    let builder = Channel::builder(target).connect_timeout(Duration::from_secs(4));
    let channel = builder.connect().await.expect("the second address");
    assert_eq!(echo(&channel, raw("x")).await.expect("a response"), raw("x"));
}

#[tokio::test(start_paused = true)]
async fn calls_without_server_fail_fast_or_wait() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let channel = Channel::builder("memory:1")
        .connector(move || {
            let attempt = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let (near, far) = duplex(peer::PIPE);
                if attempt < 3 {
                    return Err(std::io::ErrorKind::ConnectionRefused.into());
                }
                tokio::spawn(thalweg::Server::builder().add_service(Echo::default()).serve_connection(far));
                Ok(near)
            }
        })
        .connect_lazy()
        .expect("a target");
    for _ in 0..2 {
        // The second call falls into the pause after the first attempt.
        let status = echo(&channel, raw("x")).await.expect_err("nobody there");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().contains("check that the server is running"), "{status:?}");
        assert_eq!(attempts.load(Ordering::SeqCst), 1);
    }
    let mut patient = CallOptions::default();
    patient.wait_for_ready = Some(true);
    let response: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw("y")), &patient).await;
    assert_eq!(response.expect("a response").into_inner(), raw("y"));
    assert_eq!(attempts.load(Ordering::SeqCst), 4);

    let mut request = Request::new(raw("z"));
    request.set_timeout(Duration::from_secs(1));
    let nobody = Channel::builder("memory:1")
        .connector(|| async {
            Err::<tokio::io::DuplexStream, _>(std::io::ErrorKind::ConnectionRefused.into())
        })
        .connect_lazy()
        .expect("a target");
    let response: Result<Response<Raw>, Status> = nobody.unary(&ECHO, request, &patient).await;
    assert_eq!(response.expect_err("nobody there").code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn calls_spread_over_lanes() {
    let channel = Channel::builder(crate::support::serve(Echo::default()).await)
        .lanes(3)
        .connect()
        .await
        .expect("a server");
    let calls: Vec<_> = (0..9).map(|_| spawn_echo(&channel, "sleep")).collect();
    let in_flight = || channel.lanes().iter().map(|lane| lane.in_flight).collect::<Vec<_>>();
    until(|| in_flight() == [3, 3, 3]).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    until(|| in_flight() == [0, 0, 0]).await;
}

#[tokio::test]
async fn unconnected_lanes_are_skipped() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let channel = Channel::builder("memory:1")
        .lanes(4)
        .connector(move || {
            let is_first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                let (near, far) = duplex(peer::PIPE);
                if !is_first {
                    return Err(std::io::ErrorKind::ConnectionRefused.into());
                }
                tokio::spawn(thalweg::Server::builder().add_service(Echo::default()).serve_connection(far));
                Ok(near)
            }
        })
        .connect_lazy()
        .expect("a target");
    for _ in 0..12 {
        echo(&channel, raw("x")).await.expect("the one lane that there is");
    }
}

#[tokio::test]
async fn dropped_channel_closes_after_last_call() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    let data = soon(peer.next_of(Kind::Data)).await;
    drop(channel);
    tokio::task::yield_now().await;
    peer.headers(data.stream, false, HEAD).message(data.stream, false, b"y").headers(data.stream, true, OK);
    peer.send().await;
    assert_eq!(soon(call).await.expect("no panic").expect("a response"), raw("y"));
    assert!(soon(peer.rest()).await.iter().any(|frame| frame.kind == Kind::GoAway));
}

#[tokio::test]
async fn channel_dropped_while_connecting_closes_connection() {
    let (builder, mut accepted) = channel_to_test();
    let channel = builder.connect_lazy().expect("a target");
    let mut call = Box::pin(echo(&channel, raw("x")));
    assert!(poll_once(call.as_mut()).is_none());
    let io = accepted.recv().await.expect("it connects");
    drop(call);
    drop(channel);
    let mut peer = Peer::server(io, &[]).await;
    soon(peer.rest()).await;
}

#[tokio::test]
async fn early_response_cancels_rest_of_request() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, &"x".repeat(100_000));
    let data = soon(peer.next_of(Kind::Data)).await;
    peer.headers(data.stream, true, &[HEAD[0], HEAD[1], ("grpc-status", "8")]).send().await;
    let status = soon(call).await.expect("no panic").expect_err("it is too much");
    assert_eq!(status.code(), Code::ResourceExhausted);
    let reset = soon(peer.next_of(Kind::RstStream)).await;
    assert_eq!((reset.stream, reset.code()), (data.stream, ErrorCode::Cancel));
}

#[tokio::test]
async fn headers_for_server_that_does_not_read_are_bounded() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    // The driver does not run between these calls.
    for _ in 0..10_000 {
        let mut call = pin!(echo(&channel, raw("x")));
        assert!(poll_once(call.as_mut()).is_none());
    }
    let last = spawn_echo(&channel, "last");
    let mut header_blocks = 0;
    loop {
        let frame = soon(peer.next()).await.expect("the connection is open");
        header_blocks += usize::from(frame.kind == Kind::Headers);
        if frame.kind == Kind::Data && frame.payload.ends_with(b"last") {
            break;
        }
    }
    assert_eq!(header_blocks, 4096 + 1, "the others waited, and were not there any more when it was read");
    last.abort();
}

#[tokio::test]
async fn responses_map_to_statuses() {
    let check = async |act: &dyn Fn(&mut Peer, u32), expected: Result<&str, (Code, &str)>| {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        let data = soon(peer.next_of(Kind::Data)).await;
        act(&mut peer, data.stream);
        peer.send().await;
        let outcome = soon(call).await.expect("no panic");
        match (outcome, expected) {
            (Ok(response), Ok(expected)) => assert_eq!(response, raw(expected)),
            (Err(status), Err((code, part))) => {
                assert!(status.code() == code && status.message().contains(part), "{status:?}, not {part}");
            }
            (outcome, expected) => panic!("{outcome:?}, not {expected:?}"),
        }
    };
    let reset = async |error: ErrorCode, code: Code| {
        let act = |peer: &mut Peer, stream: u32| {
            peer.reset(stream, error);
        };
        check(&act, Err((code, "the stream was reset"))).await;
    };
    reset(ErrorCode::Cancel, Code::Cancelled).await;
    reset(ErrorCode::EnhanceYourCalm, Code::ResourceExhausted).await;
    reset(ErrorCode::InadequateSecurity, Code::PermissionDenied).await;
    reset(ErrorCode::InternalError, Code::Internal).await;
    reset(ErrorCode::NoError, Code::Internal).await;

    let http = async |status: &str, code: Code| {
        let act = |peer: &mut Peer, stream: u32| {
            peer.headers(stream, false, &[(":status", status), ("content-type", "text/html")]);
            peer.data(stream, true, b"<html>");
        };
        check(&act, Err((code, "not a gRPC response"))).await;
    };
    http("404", Code::Unimplemented).await;
    http("503", Code::Unavailable).await;
    http("401", Code::Unauthenticated).await;
    http("200", Code::Unknown).await;

    let body = async |body: &[u8], trailers: Option<&[(&str, &str)]>, expected| {
        let act = |peer: &mut Peer, stream: u32| {
            peer.headers(stream, false, HEAD).data(stream, trailers.is_none(), body);
            if let Some(trailers) = trailers {
                peer.headers(stream, true, trailers);
            }
        };
        check(&act, expected).await;
    };
    let message = peer::envelope(b"y");
    body(&message, Some(OK), Ok("y")).await;
    body(&message, None, Err((Code::Internal, "without trailers"))).await;
    body(&message[..4], Some(OK), Err((Code::Internal, "inside a message"))).await;
    body(&message[..4], Some(&[("grpc-status", "9")]), Err((Code::FailedPrecondition, ""))).await;
    body(&[&message[..], &message].concat(), Some(OK), Err((Code::Unimplemented, "received more than one")))
        .await;
    body(&[7, 0, 0, 0, 0], Some(OK), Err((Code::Internal, "payload format 7"))).await;
    body(&[1, 0, 0, 0, 0], Some(OK), Err((Code::Internal, "compressed flag"))).await;
    body(&[0, 255, 0, 0, 0], Some(OK), Err((Code::ResourceExhausted, "larger than max"))).await;
}

/// Like tonic: a status carries the metadata of headers and trailers.
#[tokio::test]
async fn failed_unary_status_includes_header_metadata() {
    let headers = [HEAD, &[("x-a", "1"), ("x-b", "1")]].concat();
    for is_unary in [true, false] {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = tokio::spawn(async move {
            let options = CallOptions::default();
            let called: Result<Response<Raw>, Status> = if is_unary {
                channel.unary(&ECHO, Request::new(raw("x")), &options).await
            } else {
                channel.client_streaming(&COUNT, Request::new(items(vec![raw("x")])), &options).await
            };
            called.map(|_| ())
        });
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.headers(stream, false, &headers).headers(stream, true, &[("grpc-status", "9"), ("x-a", "2")]);
        peer.send().await;
        let status = soon(call).await.expect("no panic").expect_err("it fails");
        let values = |name| status.metadata().get_all(name).iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!((values("x-a"), values("x-b")), (vec![&b"1"[..], b"2"], vec![&b"1"[..]]));
    }
}

#[tokio::test]
async fn request_headers_are_complete() {
    let (builder, mut accepted) = channel_to_test();
    let (channel, mut peer) =
        tokio::join!(builder.user_agent("app/1").authority("name:7").connect(), async {
            Peer::server(accepted.recv().await.expect("it connects"), &[]).await
        });
    let channel = channel.expect("connected");
    let mut request = Request::new(raw("x"));
    request.set_timeout(Duration::from_secs(5));
    let call: tokio::task::JoinHandle<Result<Response<Raw>, Status>> =
        tokio::spawn(async move { channel.unary(&ECHO, request, &CallOptions::default()).await });
    let headers = soon(peer.next_of(Kind::Headers)).await.text();
    for line in [
        ":method: POST\n",
        ":path: /test.Echo/Echo\n",
        ":authority: name:7\n",
        "te: trailers\n",
        "content-type: application/grpc\n",
        "user-agent: app/1 grpc-rust-thalweg/",
        "grpc-timeout: 5",
    ] {
        assert!(headers.contains(line), "{line} is not in\n{headers}");
    }
    call.abort();
    let reset = soon(peer.next_of(Kind::RstStream)).await;
    assert_eq!(reset.code(), ErrorCode::Cancel);
}

#[tokio::test]
async fn deadline_error_names_what_the_call_waited_for() {
    let late = async |channel: &Channel, message: &str, wait: bool| {
        let mut options = CallOptions::default();
        options.wait_for_ready = Some(wait);
        options.timeout = Some(Duration::from_millis(100));
        let outcome = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw(message)), &options).await;
        let status = outcome.expect_err("it takes too long");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        status.message().to_owned()
    };
    let check = |message: &str, what: &str| {
        let begin = format!("deadline exceeded: {what} [/test.Echo/Echo to ");
        assert!(message.starts_with(&begin), "{message}");
    };
    // Never accepts a connection.
    let silent = Channel::builder("memory:1")
        .connector(std::future::pending::<std::io::Result<tokio::io::DuplexStream>>);
    let silent = silent.connect_lazy().expect("a channel");
    check(&late(&silent, "a", true).await, "no connection was ready (check that the server is running)");
    let server = thalweg::Server::builder().max_concurrent_streams(1).add_service(Echo::default());
    let channel =
        Channel::builder(crate::support::start(server).await).lanes(1).connect().await.expect("a server");
    check(&late(&channel, "sleep", false).await, "no response arrived in time");
    let sleeping = spawn_echo(&channel, "sleep");
    until(|| channel.lanes()[0].in_flight == 1).await;
    let message = late(&channel, "a", false).await;
    check(&message, "no stream was free: other calls use all streams that the server allows");
    sleeping.abort();
}
