//! Messages of a client's own errors, over real sockets: the cause, the call, the target, the progress, and a remedy.
//! docs/errors.md lists them all.

use std::sync::Arc;
use std::time::Duration;

use crate::support::certificates::Authority;
use crate::support::peer::{HEAD, OK, Peer, connected};
use crate::support::{
    COUNT, ECHO, Echo, REPEAT, Receiver, chat, connect, echo, items, raw, soon, spawn_echo, start, until,
};
use thalweg::server::ServerBuilder;
use thalweg::tls::testing::server_stream;
use thalweg::tls::{ClientTlsConfig, Identity};
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Server, Status, Streaming};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Checks the message; `*` matches anything.
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

/// Returns an address without a listener.
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
async fn refused_connection_is_named() {
    let target = nowhere().await;
    let channel = lazy(&target);
    let status = echo(&channel, raw("x")).await.expect_err("nobody is there");
    let refused = format!(
        "failed to connect to {target}: Connection refused (os error 111) (check that the server is running); next \
         attempt in \
         * s [/test.Echo/Echo to {target}, connecting]"
    );
    check(&status, Code::Unavailable, &refused);
    let status = chat(&channel, items(vec![raw("x")])).await.expect_err("nobody is there");
    check(&status, Code::Unavailable, &refused.replace("Echo to", "Chat to"));
    // A waiting call ends at its deadline; the error says what it waited for.
    let mut patient = within(Duration::from_millis(2500));
    patient.wait_for_ready = Some(true);
    let status = call(&channel, "x", &patient).await.expect_err("nobody comes");
    let late = format!(
        "deadline exceeded: no connection was ready: failed to connect to {target}: Connection \
         refused (os error 111) (check that the server is running); * attempts failed in * s, next attempt in * s \
         [/test.Echo/Echo to {target}]"
    );
    check(&status, Code::DeadlineExceeded, &late);
}

#[tokio::test]
async fn unknown_host_is_named() {
    let target = "thalweg.invalid:50051";
    let status = echo(&lazy(target), raw("x")).await.expect_err("RFC 6761: it has no address");
    check(
        &status,
        Code::Unavailable,
        "failed to resolve thalweg.invalid:50051: * (check the name and its DNS records); next attempt in * s \
         [/test.Echo/Echo to thalweg.invalid:50051, connecting]",
    );
}

#[tokio::test]
async fn silent_listener_times_out() {
    let check_silent = async |tls: Option<ClientTlsConfig>, shakes_hands: Option<Identity>, missing: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let target = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.expect("a client");
            let held = Arc::default();
            let _stream = match shakes_hands {
                Some(identity) => server_stream(identity.into(), socket, &held).await.ok(),
                None => std::future::pending().await,
            };
            std::future::pending::<()>().await;
        });
        let builder = Channel::builder(&target).connect_timeout(Duration::from_millis(500));
        let channel = match tls {
            Some(tls) => builder.tls(tls),
            None => builder,
        };
        let channel = channel.connect_lazy().expect("a target");
        let status = echo(&channel, raw("x")).await.expect_err("it says nothing");
        check(
            &status,
            Code::Unavailable,
            &format!(
                "no connection to {target} within 500ms: {target} {missing}; next attempt in * s \
                 [/test.Echo/Echo to {target}, connecting]"
            ),
        );
    };
    let authority = Authority::new();
    let tls = || Some(trusting(&authority));
    let settings = "had not sent its HTTP/2 SETTINGS (check that it is a gRPC server without TLS)";
    check_silent(None, None, settings).await;
    let handshake = "had not finished the TLS handshake (check that it uses TLS at this port)";
    check_silent(tls(), None, handshake).await;
    let settings = "had not sent its HTTP/2 SETTINGS (check that it is a gRPC server)";
    check_silent(tls(), Some(authority.identity("localhost")), settings).await;
}

/// Like a firewall that drops packets silently.
#[tokio::test(start_paused = true)]
async fn unaccepted_connection_times_out() {
    let builder = Channel::builder("memory:1");
    let channel = builder.connector(std::future::pending::<std::io::Result<tokio::io::DuplexStream>>);
    let channel = channel.connect_lazy().expect("a target");
    let status = echo(&channel, raw("x")).await.expect_err("nobody accepts it");
    check(
        &status,
        Code::Unavailable,
        "no connection to memory:1 within 20s: the other end had not accepted it; next attempt in * s \
         [/test.Echo/Echo to memory:1, connecting]",
    );
}

/// Listeners that close, or speak something other than HTTP/2.
#[tokio::test]
async fn non_grpc_listener_is_named() {
    let check_first_bytes = async |respond: &'static [u8], description: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let target = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut preface = [0; 24];
            socket.read_exact(&mut preface).await.expect("a preface");
            socket.write_all(respond).await.expect("a client");
            socket.shutdown().await.expect("a client");
            let _ = socket.read_to_end(&mut Vec::new()).await;
        });
        let channel = lazy(&target);
        let status = echo(&channel, raw("x")).await.expect_err("it is no gRPC server");
        let expected =
            format!("{target}{description}; next attempt in * s [/test.Echo/Echo to {target}, connecting]");
        check(&status, Code::Unavailable, &expected);
    };
    let ends =
        " closed the connection (before it sent HTTP/2 SETTINGS; check that it is a gRPC server without TLS)";
    check_first_bytes(b"", ends).await;
    let http1 = ": the server speaks HTTP/1.x, not HTTP/2 (check that this is a gRPC port)";
    check_first_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n", http1).await;
}

const LATE: &str = "deadline exceeded:";

/// Long enough to send a call, in a test with real time.
const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn waiting_for_free_stream_times_out() {
    let target = start(server().max_concurrent_streams(1)).await;
    let channel = Channel::builder(&target).lanes(1).connect().await.expect("a server");
    let sleeping = spawn_echo(&channel, "sleep");
    until(|| channel.lanes()[0].in_flight == 1).await;
    let status = call(&channel, "x", &within(SHORT)).await.expect_err("no stream is free");
    let expected = format!(
        "{LATE} no stream was free: other calls use all streams that the server allows [/test.Echo/Echo to {target}]"
    );
    check(&status, Code::DeadlineExceeded, &expected);
    sleeping.abort();
}

/// The server ignores the deadline; the client enforces it.
#[tokio::test]
async fn deadline_error_names_stage_of_unary_call() {
    let late = |what: &str| format!("{LATE} {what} [/test.Echo/Echo to memory:1]");
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let status = call(&channel, "x", &within(SHORT)).await.expect_err("too late");
    check(&status, Code::DeadlineExceeded, &late("no response arrived in time"));

    // The headers have arrived, and ten bytes of a 99-byte message.
    let calling = tokio::spawn({
        let channel = channel.clone();
        async move { call(&channel, "y", &within(SHORT)).await }
    });
    soon(peer.next_of(Kind::RstStream)).await;
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.headers(stream, false, HEAD).data(stream, false, &[&[0, 0, 0, 0, 99][..], &[7; 10]].concat());
    peer.send().await;
    let status = calling.await.expect("no panic").expect_err("too late");
    let partial_response = late("the response was incomplete, with * bytes of its message");
    check(&status, Code::DeadlineExceeded, &partial_response);

    // The peer's windows are 64 KiB.
    let (large, options) = ("z".repeat(100_000), within(SHORT));
    let (status, ()) = tokio::join!(call(&channel, &large, &options), async {
        // The server reads but sends no WINDOW_UPDATE.
        while soon(peer.next())
            .await
            .is_some_and(|frame| frame.kind != Kind::RstStream || frame.stream == stream)
        {}
    });
    let unsent = late("* bytes of the request message were not sent: blocked by the server's flow control");
    check(&status.expect_err("too late"), Code::DeadlineExceeded, &unsent);
}

#[tokio::test]
async fn deadline_error_names_stage_of_stream() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let (_requests, source) = tokio::sync::mpsc::unbounded_channel::<Raw>();
    let requests = Request::new(Receiver(source));
    let outcome: Result<Response<Raw>, _> =
        soon(channel.client_streaming(&COUNT, requests, &within(SHORT))).await;
    let status = outcome.expect_err("it never ends");
    let unsent = "the requests were not all sent, and no response arrived";
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
    let responding = "the responses were not complete";
    check(&status, Code::DeadlineExceeded, &format!("{LATE} {responding} [/test.Echo/Repeat to memory:1]"));
}

#[tokio::test]
async fn too_large_message_is_named() {
    let target = start(server()).await;
    let channel = connect(&target).await;
    let mut options = CallOptions::default();
    options.max_encoding_message_size = 3;
    let status = call(&channel, "12345", &options).await.expect_err("too large");
    check(
        &status,
        Code::ResourceExhausted,
        &format!(
            "trying to send message larger than max (5 vs. 3): see the sender's max_encoding_message_size \
             [/test.Echo/Echo to {target}, not sent]"
        ),
    );
    let mut options = CallOptions::default();
    options.max_decoding_message_size = 3;
    let status = call(&channel, "12345", &options).await.expect_err("too large");
    let received = "received message larger than max (5 vs. 3): see the receiver's max_decoding_message_size";
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
    // Nothing is added to the server's own message.
    let mut echo = Echo::default();
    echo.options.max_decoding_message_size = 3;
    let channel = connect(&start(Server::builder().add_service(echo)).await).await;
    let status = call(&channel, "12345", &CallOptions::default()).await.expect_err("too large");
    check(&status, Code::ResourceExhausted, received);
}

#[tokio::test]
async fn reset_by_server_is_named() {
    let check_reset = async |code: ErrorCode, expected: Code, description: &str| {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.reset(stream, code).send().await;
        let status = soon(call).await.expect("no panic").expect_err("it was reset");
        check(&status, expected, &format!("the stream was reset with {description}"));
    };
    let context = "[/test.Echo/Echo to memory:1, waiting for the response]";
    let description = format!("INTERNAL_ERROR: the peer reset the stream {context}");
    check_reset(ErrorCode::InternalError, Code::Internal, &description).await;
    let description = format!("CANCEL: the peer reset the stream (it cancelled the call) {context}");
    check_reset(ErrorCode::Cancel, Code::Cancelled, &description).await;
    let description =
        format!("ENHANCE_YOUR_CALM: the peer reset the stream (it limits the rate of calls) {context}");
    check_reset(ErrorCode::EnhanceYourCalm, Code::ResourceExhausted, &description).await;
    let description =
        format!("INADEQUATE_SECURITY: the peer reset the stream (it requires stronger TLS) {context}");
    check_reset(ErrorCode::InadequateSecurity, Code::PermissionDenied, &description).await;
    let http1 = "HTTP_1_1_REQUIRED: the peer reset the stream (it requires HTTP/1.1, which gRPC cannot use)";
    check_reset(ErrorCode::Http11Required, Code::Internal, &format!("{http1} {context}")).await;
    let description =
        format!("NO_ERROR: the peer reset the stream (it did not finish the response) {context}");
    check_reset(ErrorCode::NoError, Code::Internal, &description).await;
}

/// A refused call was retried, and the second attempt failed.
#[tokio::test]
async fn error_names_attempt() {
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
        "the stream was reset with REFUSED_STREAM: the peer reset the stream (it accepts no more concurrent calls) \
         [/test.Echo/Echo to memory:1, attempt 2, waiting for the response]",
    );

    let call = spawn_echo(&channel, "x");
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.reset(stream, ErrorCode::RefusedStream).send().await;
    soon(peer.next_of(Kind::Data)).await;
    drop(peer);
    let status = soon(call).await.expect("no panic").expect_err("it is gone");
    check(
        &status,
        Code::Unavailable,
        "memory:1 closed the connection (the server may have been killed, or the connection cut) \
         [/test.Echo/Echo to memory:1, attempt 2, waiting for the response]",
    );
}

/// Starts a server of one connection that ends like a killed process: by RST if its system has unread bytes, otherwise
/// by FIN.
async fn mortal(server: ServerBuilder, resets: bool) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.expect("a client");
        if resets {
            socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an option");
        }
        server.serve_connection(socket).await.expect("a configuration");
    });
    (target, serving)
}

#[tokio::test]
async fn killed_server_is_named() {
    let authority = Authority::new();
    for (has_tls, resets) in [(false, false), (false, true), (true, false), (true, true)] {
        let start = async || {
            let server = if has_tls { server().tls(authority.identity("localhost")) } else { server() };
            let (address, serving) = mortal(server, resets).await;
            // Written differently from the address, so that both are named.
            let target = format!("ipv4:{address}");
            let builder = Channel::builder(&target);
            let builder = if has_tls { builder.tls(trusting(&authority)) } else { builder };
            (address, serving, soon(builder.connect()).await.expect("a server"))
        };
        let killed = |status: &Status, address: &str, path: &str, phase: &str| {
            let what = match (has_tls, resets) {
                (false, false) => format!("{address} closed the connection"),
                (true, false) => {
                    format!(
                        "connection to {address} lost: the connection was closed without TLS's close_notify"
                    )
                }
                (_, true) => format!("connection to {address} lost: Connection reset by peer (os error 104)"),
            };
            let expected = format!(
                "{what} (the server may have been killed, or the connection cut) [{path} to ipv4:{address} \
                 ({address}), {phase}]"
            );
            check(status, Code::Unavailable, &expected);
        };

        let (address, serving, channel) = start().await;
        let call = spawn_echo(&channel, "sleep");
        until(|| channel.lanes()[0].in_flight == 1).await;
        // The response to a later call shows that the server has the first.
        echo(&channel, raw("x")).await.expect("a response");
        serving.abort();
        let status = soon(call).await.expect("no panic").expect_err("it was killed");
        killed(&status, &address, "/test.Echo/Echo", "waiting for the response");

        let (address, serving, channel) = start().await;
        let (requests, source) = tokio::sync::mpsc::unbounded_channel::<Raw>();
        requests.send(raw("1")).expect("it is read");
        let mut responses = soon(chat(&channel, Receiver(source))).await.expect("it begins");
        assert_eq!(soon(responses.message()).await.expect("the first"), Some(raw("1")));
        serving.abort();
        let status = soon(responses.message()).await.expect_err("it was killed");
        killed(&status, &address, "/test.Echo/Chat", "receiving the response");
    }
}

/// For a server at 127.0.0.1 whose certificate is for localhost.
fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new().ca_certificate(authority.certificate()).domain_name("localhost")
}

#[tokio::test]
async fn tls_mismatch_is_named() {
    let (authority, other) = (Authority::new(), Authority::new());
    let check_call = async |identity: Option<Identity>, tls: Option<ClientTlsConfig>, description: &str| {
        let server = match identity {
            Some(identity) => server().tls(identity),
            None => server(),
        };
        let address = start(server).await;
        let target = format!("ipv4:{address}");
        let builder = Channel::builder(&target);
        let channel = match tls {
            Some(tls) => builder.tls(tls),
            None => builder,
        };
        let channel = channel.connect_lazy().expect("a configuration");
        let status = call(&channel, "x", &CallOptions::default()).await.expect_err("they don't understand");
        let expected = format!(
            "{address}: {description}; next attempt in * s [/test.Echo/Echo to ipv4:{address}, connecting]"
        );
        check(&status, Code::Unavailable, &expected);
    };
    let right = || Some(authority.identity("localhost"));
    let plain = "the server uses TLS, and this channel does not (use https://)";
    check_call(right(), None, plain).await;
    let not_tls =
        "the server speaks HTTP/2 without TLS, and this channel uses TLS (check that this is the TLS port)";
    check_call(None, Some(trusting(&authority)), not_tls).await;
    let unknown = "the TLS handshake failed: invalid peer certificate: UnknownIssuer (no trusted authority issued the \
                   peer's certificate; add the CA that did, or have the peer send its whole chain)";
    check_call(Some(other.identity("localhost")), Some(trusting(&authority)), unknown).await;
    let name = "the TLS handshake failed: invalid peer certificate: certificate not valid for name \"localhost\"; \
                certificate is only valid for DnsName(\"elsewhere\") (use a name that is in the \
                certificate, or set the name to verify)";
    check_call(Some(authority.identity("elsewhere")), Some(trusting(&authority)), name).await;
}

#[tokio::test]
async fn goaway_is_named() {
    let check_goaway = async |code: u8, words: &[u8], description: &str| {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        let debug_data = [&[0, 0, 0, stream as u8, 0, 0, 0, code], words].concat();
        peer.headers(stream, false, HEAD).frame(Kind::GoAway, Flags::NONE, 0, &debug_data).send().await;
        drop(peer);
        let status = soon(call).await.expect("no panic").expect_err("it is gone");
        let expected = format!(
            "memory:1 closed the connection{description} [/test.Echo/Echo to memory:1, receiving the response]"
        );
        check(&status, Code::Unavailable, &expected);
    };
    check_goaway(11, b"too much", " after GOAWAY, ENHANCE_YOUR_CALM: too much").await;
    check_goaway(11, b"", " after GOAWAY, ENHANCE_YOUR_CALM").await;
    check_goaway(0, b"until later", " after GOAWAY, NO_ERROR: until later").await;
    check_goaway(0, b"", " (the server may have been killed, or the connection cut)").await;
    // On one line, and truncated.
    check_goaway(11, b"one\ntwo", " after GOAWAY, ENHANCE_YOUR_CALM: one\\ntwo").await;
    check_goaway(11, b"it's \"full\"", " after GOAWAY, ENHANCE_YOUR_CALM: it's \"full\"").await;
    let long = format!(" after GOAWAY, ENHANCE_YOUR_CALM: {}", "x".repeat(200));
    check_goaway(11, &[b'x'; 1000], &long).await;
}

/// A server application's message stays unchanged.
#[tokio::test]
async fn status_message_of_server_is_unchanged() {
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
async fn http_error_of_web_server_is_explained() {
    let respond = async |peer: &mut Peer, http: &str| {
        let stream = soon(peer.next_of(Kind::Data)).await.stream;
        peer.headers(stream, false, &[(":status", http), ("content-type", "text/html")]);
        peer.data(stream, true, b"<html>").send().await;
    };
    for (http, code, hint) in [
        ("404", Code::Unimplemented, "check that this is the port of a gRPC server"),
        ("503", Code::Unavailable, "a proxy has no server for the request"),
        ("403", Code::PermissionDenied, "a proxy may require credentials"),
    ] {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        respond(&mut peer, http).await;
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
