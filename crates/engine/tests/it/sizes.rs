//! Limits of message sizes on both sides and in both directions; compression and its errors.

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::{CallOptions, Code, Encode, Encoding, EncodingSet, ServiceOptions, Status};

use crate::support::peer::{OK, OK_HEADERS, REQUEST, compressed_envelope, envelope};
use crate::support::{
    CHAT, ECHO, Echo, Message, NO_METADATA, REPEAT, Served, call_options, client_of, connected, count, echo,
    items, raw, request_at, settled, soon, spawn_echo, spawn_echo_with, stream, unary,
};

fn service(set: impl FnOnce(&mut ServiceOptions)) -> Echo {
    let mut options = ServiceOptions::default();
    set(&mut options);
    Echo { options, ..Echo::default() }
}

/// Calls of each type with a message of `len` bytes in each direction.
async fn called(service: &Echo, len: usize, options: &CallOptions) -> [Result<usize, Status>; 3] {
    let channel = Served::echo(service).channel(|_| {}).await;
    let message = raw(vec![1; len]);
    let unary = soon(unary(&channel, &NO_METADATA, message.clone(), options)).await;
    let chat = match soon(stream(&channel, &CHAT, items(vec![message.clone()]), options)).await {
        Ok(responses) => {
            responses.rest().await.map(|(messages, _)| messages.iter().map(|it| it.0.len()).sum())
        }
        Err(status) => Err(status),
    };
    let order = items(vec![raw(format!("1 {len}"))]);
    let repeat = match soon(stream(&channel, &REPEAT, order, options)).await {
        Ok(responses) => {
            responses.rest().await.map(|(messages, _)| messages.iter().map(|it| it.0.len()).sum())
        }
        Err(status) => Err(status),
    };
    [unary.map(|(message, _)| message.0.len()), chat, repeat]
}

fn check(outcomes: [Result<usize, Status>; 3], expected: [Result<usize, Code>; 3]) {
    assert_eq!(outcomes.map(|outcome| outcome.map_err(|status| status.code())), expected);
}

const TOO_LARGE: Result<usize, Code> = Err(Code::ResourceExhausted);

/// `max_decoding_message_size` of the server, exact to the byte, for messages in the read buffer and in tasks.
#[tokio::test(start_paused = true)]
async fn server_refuses_requests_that_are_too_large() {
    for max in [100, 300_000] {
        let service = service(|options| options.max_decoding_message_size = max);
        let options = CallOptions::default();
        check(called(&service, max, &options).await, [Ok(max); 3]);
        check(called(&service, max + 1, &options).await, [TOO_LARGE, TOO_LARGE, Ok(max + 1)]);
    }
    let by_default = called(&Echo::default(), (4 << 20) + 1, &CallOptions::default()).await;
    check(by_default, [TOO_LARGE; 3]);
}

#[tokio::test(start_paused = true)]
async fn client_refuses_responses_that_are_too_large() {
    for max in [100, 300_000] {
        let options = call_options(|options| options.max_decoding_message_size = max);
        check(called(&Echo::default(), max, &options).await, [Ok(max); 3]);
        check(called(&Echo::default(), max + 1, &options).await, [TOO_LARGE; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn client_refuses_to_send_too_large_messages() {
    for max in [100, 300_000] {
        let options = call_options(|options| options.max_encoding_message_size = max);
        check(called(&Echo::default(), max, &options).await, [Ok(max); 3]);
        check(called(&Echo::default(), max + 1, &options).await, [TOO_LARGE, TOO_LARGE, Ok(max + 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn server_refuses_to_send_too_large_messages() {
    for max in [100, 300_000] {
        let service = service(|options| options.max_encoding_message_size = max);
        let options = CallOptions::default();
        check(called(&service, max, &options).await, [Ok(max); 3]);
        check(called(&service, max + 1, &options).await, [TOO_LARGE; 3]);
    }
}

/// The prefix suffices: the declared message is not awaited.
#[tokio::test(start_paused = true)]
async fn declared_size_alone_is_refused() {
    let mut peer = client_of(&Echo::default()).await;
    for (stream, path) in [(1, "/test.Echo/Echo"), (3, "/test.Echo/Count"), (5, "/test.Echo/Chat")] {
        peer.headers(stream, false, &request_at(path)).data(stream, false, b"\0\xff\xff\xff\xff");
        let frames = settled(&mut peer).await;
        let ended = frames.iter().find(|frame| frame.end_stream).expect("an end");
        assert!(ended.text().contains("grpc-status: 8\n"), "{path}: {}", ended.text());
    }
    // A handler that waits for the message is woken.
    for (stream, path) in [(7, "/test.Echo/Count"), (9, "/test.Echo/Chat")] {
        peer.headers(stream, false, &request_at(path)).message(stream, false, b"fits");
        settled(&mut peer).await;
        peer.data(stream, false, b"\0\xff\xff\xff\xff");
        let frames = settled(&mut peer).await;
        let ended = frames.iter().find(|frame| frame.end_stream).expect("an end");
        assert!(ended.text().contains("grpc-status: 8\n"), "{path}: {}", ended.text());
    }
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = spawn_echo(&channel, "x");
    soon(peer.next_of(Kind::Data)).await;
    peer.headers(1, false, OK_HEADERS).data(1, false, b"\0\xff\xff\xff\xff").send().await;
    let status = soon(call).await.expect("no panic").expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
}

/// Invalid flags, compressed messages without a declared encoding, and corrupt compressed data.
#[tokio::test(start_paused = true)]
async fn malformed_message_ends_its_call() {
    let gzip = [("grpc-encoding", "gzip")];
    let mut garbled = envelope(b"no gzip at all");
    garbled[0] = 1;
    let mut truncated = compressed_envelope(&[7; 10_000]);
    let len = truncated.len() - 4;
    truncated.truncate(len);
    truncated[1..5].copy_from_slice(&u32::try_from(len - 5).expect("small").to_be_bytes());
    let bomb = compressed_envelope(&vec![0; (4 << 20) + 1]);
    let check = async |fields: &[(&str, &str)], body: &[u8], code: u32, text: &str| {
        for path in ["/test.Echo/Echo", "/test.Echo/Count"] {
            let mut peer = client_of(&Echo::default()).await;
            peer.headers(1, false, &[&request_at(path)[..], fields].concat()).data(1, true, body);
            let frames = settled(&mut peer).await;
            let ended = frames.iter().find(|frame| frame.end_stream).expect("an end").text();
            assert!(ended.contains(&format!("grpc-status: {code}\n")), "{path}: {ended}");
            assert!(ended.contains(text), "{path}: {ended}");
        }
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = spawn_echo(&channel, "x");
        soon(peer.next_of(Kind::Data)).await;
        peer.headers(1, false, &[OK_HEADERS, fields].concat())
            .data(1, false, body)
            .headers(1, true, OK)
            .send()
            .await;
        let status = soon(call).await.expect("no panic").expect_err("malformed");
        assert_eq!(u32::from(status.code().number()), code, "{status:?}");
    };
    check(&[], b"\x07\0\0\0\x01x", 13, "compressed flag").await;
    check(&[], &compressed_envelope(b"x"), 13, "compressed flag").await;
    check(&gzip, &garbled, 13, "").await;
    check(&gzip, &truncated, 13, "").await;
    check(&gzip, &bomb, 8, "").await;
}

/// Each direction has its own `grpc-encoding`.
#[tokio::test(start_paused = true)]
async fn messages_are_compressed_as_configured() {
    let all: EncodingSet = EncodingSet::ALL;
    for encoding in Encoding::ALL.iter().copied() {
        for (send, accept) in [(Some(encoding), all), (None, all), (Some(encoding), EncodingSet::IDENTITY)] {
            let service = service(|options| {
                options.send_compressed = Some(encoding);
                options.compression_threshold = 0;
            });
            let options = call_options(|options| {
                options.send_compressed = send;
                options.compression_threshold = 0;
                options.accept_compressed = accept;
            });
            for len in [0, 1, 100_000, 1_000_000] {
                check(called(&service, len, &options).await, [Ok(len); 3]);
            }
            let channel = Served::echo(&service).channel(|_| {}).await;
            let large = items(vec![raw(vec![1; 100_000]); 3]);
            assert_eq!(soon(count(&channel, large, &options)).await.expect("a response"), raw("3 300000"));
        }
    }
}

/// A server compresses only for clients that accept it and states the encoding. It lists the encodings that it accepts.
#[tokio::test(start_paused = true)]
async fn server_compresses_for_accepting_clients() {
    let service = service(|options| {
        options.send_compressed = Some(Encoding::Gzip);
        options.accept_compressed = EncodingSet::IDENTITY.with(Encoding::Gzip);
    });
    let check = async |accepts: &[(&str, &str)], body: &[u8], is_compressed: bool| {
        for path in ["/test.Echo/Echo", "/test.Echo/Chat"] {
            let mut peer = client_of(&service).await;
            peer.headers(1, false, &[&request_at(path)[..], accepts].concat()).message(1, true, body);
            let frames = settled(&mut peer).await;
            let headers = frames.iter().find(|frame| frame.kind == Kind::Headers).expect("headers").text();
            let data = frames.iter().find(|frame| frame.kind == Kind::Data).expect("a message");
            assert_eq!(data.payload[0] == 1, is_compressed, "{path} {accepts:?}");
            assert!(headers.contains("grpc-accept-encoding: identity,gzip\n"), "{headers}");
            // The encoding may be stated for an uncompressed message, but not the reverse.
            assert!(headers.contains("grpc-encoding: gzip\n") || !is_compressed, "{headers}");
            assert_eq!(
                headers.contains("grpc-encoding: gzip\n"),
                accepts.len() == 1 && accepts[0].1.contains("gzip")
            );
        }
    };
    check(&[("grpc-accept-encoding", "identity,gzip")], &[7; 5000], true).await;
    check(&[("grpc-accept-encoding", "gzip")], &[7; 100], false).await;
    check(&[("grpc-accept-encoding", "identity,deflate")], &[7; 5000], false).await;
    check(&[], &[7; 5000], false).await;
    // Encodings that the method does not accept are rejected.
    let mut peer = client_of(&service).await;
    peer.headers(1, false, &[REQUEST, &[("grpc-encoding", "deflate")]].concat()).message(1, true, b"x");
    let frames = settled(&mut peer).await;
    assert!(frames[0].text().contains("grpc-status: 12\n"), "{}", frames[0].text());
}

/// A client states its encoding and those it accepts.
#[tokio::test(start_paused = true)]
async fn client_states_its_encodings() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let options = call_options(|options| {
        options.send_compressed = Some(Encoding::Gzip);
        options.accept_compressed = EncodingSet::IDENTITY.with(Encoding::Deflate);
    });
    for (stream, message, is_compressed) in [(1, vec![7; 5000], true), (3, vec![7; 100], false)] {
        let call = spawn_echo_with(&channel, Message(message.into()), options.clone());
        let headers = soon(peer.next_of(Kind::Headers)).await;
        assert!(headers.text().contains("grpc-encoding: gzip\n"), "{}", headers.text());
        assert!(headers.text().contains("grpc-accept-encoding: identity,deflate\n"), "{}", headers.text());
        let data = soon(peer.next_of(Kind::Data)).await;
        assert_eq!(data.payload[0] == 1, is_compressed);
        // The server must not use other encodings.
        peer.headers(stream, false, &[OK_HEADERS, &[("grpc-encoding", "br-not")]].concat());
        peer.message(stream, false, b"y").headers(stream, true, OK).send().await;
        let status = soon(call).await.expect("no panic").expect_err("an encoding that nobody knows");
        assert_eq!(status.code(), Code::Internal, "{status:?}");
    }
}

/// Announces five bytes, and writes as many as it has.
struct Lies(usize);

impl Encode for Lies {
    fn encoded_len(&self) -> usize {
        5
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[7; 10][..self.0]);
    }
}

/// A message with a different length than announced ends its own call, and does not affect the next.
#[tokio::test(start_paused = true)]
async fn message_of_another_length_than_announced_is_internal() {
    let channel = Served::echo(&Echo::default()).channel(|_| {}).await;
    for len in [0, 4, 6, 10] {
        let options = CallOptions::default();
        let status = soon(channel.unary(&ECHO, &NO_METADATA, &Lies(len), &options)).await;
        assert_eq!(status.map(drop).expect_err("it lies").code(), Code::Internal, "{len}");
        let response = soon(echo(&channel, raw("true"))).await;
        assert_eq!(response.expect("a response"), raw("true"), "behind {len}");
    }
    let response = soon(channel.unary(&ECHO, &NO_METADATA, &Lies(5), &CallOptions::default())).await;
    assert!(response.is_ok());
}
