//! Compression: which messages, how, and which are rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::{
    CallOptions, Caller, Channel, Code, Encoding, EncodingSet, Raw, Request, Response, Server,
    ServiceOptions, Status, Streaming, Uncompressed,
};
use thalweg_engine::http2::frame::Kind;
use tokio::io::duplex;

use crate::support::peer::{Frame, HEAD, OK, Peer, REQUEST, channel_to_test, compressed_envelope, connected};
use crate::support::{CHAT, COUNT, ECHO, Echo, REPEAT, connect, items, poll_once, raw, serve, soon, until};

/// All encodings that compress.
fn encodings() -> Vec<Encoding> {
    Encoding::ALL.iter().copied().filter(|encoding| encoding.compresses()).collect()
}

fn options(encoding: Encoding) -> CallOptions {
    let mut options = CallOptions::default();
    options.send_compressed = Some(encoding);
    options
}

fn echo(options: impl FnOnce(&mut ServiceOptions)) -> Echo {
    let mut echo = Echo::default();
    options(&mut echo.options);
    echo
}

#[tokio::test]
async fn all_call_types_work_with_all_encodings() {
    for encoding in encodings() {
        let target = serve(echo(|options| options.send_compressed = Some(encoding))).await;
        let (channel, options) = (connect(&target).await, options(encoding));
        for size in [0, 1, 1023, 1024, 100_000, 3_000_000] {
            let sent = raw((0..size).map(|i| (i % 251) as u8).collect::<Vec<u8>>());
            let response: Response<Raw> =
                channel.unary(&ECHO, Request::new(sent.clone()), &options).await.expect("a response");
            assert!(response.get_ref() == &sent, "{encoding:?} {size}");
        }
        let many = || Request::new(items(vec![raw(vec![1; 50_000]), raw(vec![2; 10])]));
        let count: Response<Raw> =
            channel.client_streaming(&COUNT, many(), &options).await.expect("a response");
        assert_eq!(count.into_inner(), raw("2 50010"));
        let order = Request::new(raw("3 20000"));
        let mut repeated = channel
            .server_streaming::<Raw, Raw>(&REPEAT, order, &options)
            .await
            .expect("it begins")
            .into_inner();
        for _ in 0..3 {
            assert_eq!(repeated.message().await.expect("no error"), Some(raw(vec![7; 20_000])));
        }
        let mut chat =
            channel.bidi_streaming::<_, Raw>(&CHAT, many(), &options).await.expect("it begins").into_inner();
        assert_eq!(chat.message().await.expect("no error"), Some(raw(vec![1; 50_000])));
        assert_eq!(chat.message().await.expect("no error"), Some(raw(vec![2; 10])));
        assert_eq!(chat.message().await.expect("the end"), None);
    }
}

/// Returns the headers, and the DATA frame of the first message.
async fn first_message(peer: &mut Peer) -> (String, Frame) {
    let headers = peer.next_of(Kind::Headers).await;
    (headers.text(), peer.next_of(Kind::Data).await)
}

#[tokio::test]
async fn client_compresses_messages_over_threshold() {
    const LONG: &[u8] = &[7; 2000];
    let check = async |options: CallOptions, request: Request<Raw>, name: Option<&str>, compressed: bool| {
        let (channel, mut peer, _accepted) = connected(&[]).await;
        let call = tokio::spawn(async move { channel.unary::<Raw, Raw>(&ECHO, request, &options).await });
        let (headers, message) = first_message(&mut peer).await;
        let expected = name.map(|name| format!("grpc-encoding: {name}\n"));
        match expected {
            Some(expected) => assert!(headers.contains(&expected), "{headers}"),
            None => assert!(!headers.contains("grpc-encoding: "), "{headers}"),
        }
        assert_eq!(message.payload[0] == 1, compressed, "{headers}");
        call.abort();
    };
    let long = || Request::new(raw(LONG));
    check(CallOptions::default(), long(), None, false).await;
    check(options(Encoding::Identity), long(), None, false).await;
    for encoding in encodings() {
        let name = Some(encoding.name());
        check(options(encoding), long(), name, true).await;
        check(options(encoding), Request::new(raw(&LONG[..1024])), name, true).await;
        // Below the threshold.
        check(options(encoding), Request::new(raw(&LONG[..1023])), name, false).await;
        let threshold = |bytes| {
            let mut options = options(encoding);
            options.compression_threshold = bytes;
            options
        };
        check(threshold(50), Request::new(raw(&LONG[..50])), name, true).await;
        check(threshold(1), Request::new(raw("7")), name, false).await;
        check(threshold(0), Request::new(raw("")), name, true).await;
        check(threshold(2001), long(), name, false).await;
        // Compression would not make it smaller.
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(2000)
        .collect();
        check(options(encoding), Request::new(raw(noise)), name, false).await;
        let mut uncompressed = long();
        uncompressed.extensions_mut().insert(Uncompressed);
        check(options(encoding), uncompressed, name, false).await;
    }
}

/// Returns the headers and the first message of the response to a client that accepts `accepts` and sends `encoding`.
async fn first_response(
    server: ServerBuilder,
    accepts: &str,
    encoding: Option<&str>,
) -> (String, Option<Frame>) {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(server.serve_connection(far));
    let mut peer = Peer::client(near).await;
    let mut headers = REQUEST.to_vec();
    headers.push(("grpc-accept-encoding", accepts));
    headers.extend(encoding.map(|name| ("grpc-encoding", name)));
    peer.headers(1, false, &headers).message(1, true, &[7; 2000]).send().await;
    let headers = peer.next_of(Kind::Headers).await;
    let message = if headers.end_stream { None } else { Some(peer.next_of(Kind::Data).await) };
    (headers.text(), message)
}

#[tokio::test]
async fn server_compresses_for_clients_that_accept() {
    let check = async |server: ServerBuilder, accepts: &str, expected: Option<Encoding>| {
        let (headers, message) = first_response(server, accepts, None).await;
        match expected {
            Some(encoding) => {
                assert!(headers.contains(&format!("grpc-encoding: {}\n", encoding.name())), "{headers}");
            }
            None => assert!(!headers.contains("grpc-encoding: "), "{headers}"),
        }
        let flag = message.expect("a response").payload[0];
        assert_eq!(flag == 1, expected.is_some(), "{accepts}: {headers}");
    };
    let service = |encoding| echo(|options| options.send_compressed = encoding);
    let all = EncodingSet::ALL.value();
    check(Server::builder().add_service(service(None)), all, None).await;
    for encoding in encodings() {
        check(Server::builder().add_service(service(Some(encoding))), all, Some(encoding)).await;
        check(Server::builder().add_service(service(Some(encoding))), "identity,lz4", None).await;
        let by_default = || Server::builder().send_compressed(encoding);
        check(by_default().add_service(service(None)), all, Some(encoding)).await;
        check(by_default().add_service(service(Some(Encoding::Gzip))), all, Some(Encoding::Gzip)).await;
        check(by_default().add_service(service(Some(Encoding::Identity))), all, None).await;
        check(Server::builder().add_service(service(None)).send_compressed(encoding), all, Some(encoding))
            .await;
    }
    let above = echo(|options| {
        options.send_compressed = Some(Encoding::Gzip);
        options.compression_threshold = 2001;
    });
    let (headers, message) = first_response(Server::builder().add_service(above), all, None).await;
    assert!(headers.contains("grpc-encoding: gzip"), "{headers}");
    assert_eq!(message.expect("a response").payload[0], 0);
}

#[tokio::test]
async fn unsupported_request_encoding_is_rejected_with_list() {
    let check = async |accepts: EncodingSet, encoding: &str, list: &str| {
        let service = echo(|options| options.accept_compressed = accepts);
        let (headers, message) =
            first_response(Server::builder().add_service(service), "identity", Some(encoding)).await;
        assert!(message.is_none(), "{headers}");
        for line in ["grpc-status: 12\n".to_owned(), format!("grpc-accept-encoding: {list}\n")] {
            assert!(headers.contains(&line), "{line} is not in {headers}");
        }
        assert!(headers.contains(encoding) && headers.contains(&format!("accepted are {list}")), "{headers}");
    };
    let gzip = EncodingSet::IDENTITY.with(Encoding::Gzip);
    check(EncodingSet::ALL, "snappy", EncodingSet::ALL.value()).await;
    check(gzip, "snappy", "identity,gzip").await;
    check(gzip, "deflate", "identity,gzip").await;
    check(EncodingSet::IDENTITY, "gzip", "identity").await;
}

#[tokio::test]
async fn client_announces_accepted_encodings() {
    let target = serve(echo(|options| options.accept_compressed = EncodingSet::IDENTITY)).await;
    let channel = connect(&target).await;
    let call =
        channel.unary::<Raw, Raw>(&ECHO, Request::new(raw(vec![7; 2000])), &options(Encoding::Gzip)).await;
    let status = call.expect_err("it is not taken");
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(status.message(), "grpc-encoding \"gzip\" is not supported; accepted are identity");
}

#[tokio::test]
async fn decompression_bomb_ends_at_limit() {
    for encoding in encodings() {
        let options = options(encoding);
        let bomb = || Request::new(raw(vec![0; (4 << 20) + 1]));
        let expected = "received message after decompression larger than max 4194304: see the receiver's \
                        max_decoding_message_size";
        let check = |outcome: Result<Response<Raw>, Status>| {
            let status = outcome.expect_err("too large");
            let is_expected = status.message().starts_with(expected);
            assert!(status.code() == Code::ResourceExhausted && is_expected, "{encoding:?}: {status}");
        };
        let channel = connect(&serve(Echo::default()).await).await;
        check(channel.unary(&ECHO, bomb(), &options).await);
        let requests = Request::new(items(vec![bomb().into_inner()]));
        check(channel.client_streaming(&COUNT, requests, &options).await);
        let large = echo(|options| {
            options.max_decoding_message_size = usize::MAX;
            options.send_compressed = Some(encoding);
        });
        let channel = connect(&serve(large).await).await;
        check(channel.unary(&ECHO, bomb(), &options).await);
    }
}

#[tokio::test]
async fn handler_can_disable_compression_of_a_response() {
    static SECRET: thalweg::Method = thalweg::Method::new("/test.Secret/Tell");
    struct Secret;
    impl thalweg::server::Service for Secret {
        const NAME: &'static str = "test.Secret";
        fn register(self, methods: &mut thalweg::server::Methods<'_>) {
            let mut options = ServiceOptions::default();
            options.send_compressed = Some(Encoding::Gzip);
            methods.unary(
                "Tell",
                &std::sync::Arc::new(self),
                &options,
                |_, request: Request<Raw>| async move {
                    let mut response = Response::new(raw(vec![7; 2000]));
                    if request.get_ref() == &raw("plainly") {
                        response.extensions_mut().insert(Uncompressed);
                    }
                    Ok(response)
                },
            );
        }
    }
    let check = async |order: &str, compressed: bool| {
        let (near, far) = duplex(64 * 1024);
        tokio::spawn(Server::builder().add_service(Secret).serve_connection(far));
        let mut peer = Peer::client(near).await;
        let mut headers = REQUEST.to_vec();
        headers[2] = (":path", SECRET.path());
        headers.push(("grpc-accept-encoding", "gzip"));
        peer.headers(1, false, &headers).message(1, true, order.as_bytes()).send().await;
        let (_, message) = first_message(&mut peer).await;
        assert_eq!(message.payload[0] == 1, compressed, "{order}");
    };
    check("plainly", false).await;
    check("as you like", true).await;
}

#[tokio::test]
async fn clients_inherit_options_of_channel() {
    let mut options = CallOptions::default();
    options.wait_for_ready = Some(true);
    let channel = Channel::builder("127.0.0.1:1").call_options(options).send_compressed(Encoding::Deflate);
    let channel = channel.connect_lazy().expect("a channel");
    let check = |caller: &dyn Fn() -> CallOptions| {
        let options = caller();
        assert_eq!((options.send_compressed, options.wait_for_ready), (Some(Encoding::Deflate), Some(true)));
    };
    check(&|| Caller::call_options(&channel));
    check(&|| channel.with_interceptor(thalweg::interceptor::head(Ok)).call_options());
}

#[tokio::test]
async fn response_in_unrequested_encoding_is_rejected() {
    let (builder, mut accepted) = channel_to_test();
    let channel = builder.connect_lazy().expect("a channel");
    let call = tokio::spawn(async move {
        channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("a")), &CallOptions::default()).await
    });
    let mut peer = Peer::server(accepted.recv().await.expect("it connects"), &[]).await;
    let request = peer.next_of(Kind::Headers).await;
    assert!(request.text().contains(&format!("grpc-accept-encoding: {}\n", EncodingSet::ALL.value())));
    let headers = [HEAD, &[("grpc-encoding", "snappy")]].concat();
    peer.headers(1, false, &headers).message(1, false, b"a").headers(1, true, OK).send().await;
    let status = call.await.expect("no panic").expect_err("snappy is not known");
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("\"snappy\" is not supported"), "{status}");
}

/// Counts its requests.
struct Counted(AtomicUsize);

impl Counted {
    #[expect(clippy::unused_async, reason = "handlers are async")]
    async fn count(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Response::new(raw("")))
    }

    async fn count_all(self: Arc<Self>, request: Request<Streaming<Raw>>) -> Result<Response<Raw>, Status> {
        let mut requests = request.into_inner();
        while requests.message().await?.is_some() {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Response::new(raw("")))
    }
}

struct CountedService(Arc<Counted>);

impl Service for CountedService {
    const NAME: &'static str = "test.Counted";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Count", &self.0, &ServiceOptions::default(), Counted::count);
        methods.client_streaming("CountAll", &self.0, &ServiceOptions::default(), Counted::count_all);
    }
}

/// 64 requests of one client are ready at once, as calls or as streams, each a few KiB that decompress to 2 MiB. Calls
/// of other clients on the thread wait for some of the decompressions, but not for all.
#[tokio::test]
async fn decompressing_requests_yields_to_other_tasks() {
    let check = async |path| {
        let bomb = compressed_envelope(&vec![0; 2 << 20]);
        let (near, far) = duplex(1 << 20);
        let counted = Arc::new(Counted(AtomicUsize::new(0)));
        let server = Server::builder().add_service(CountedService(Arc::clone(&counted)));
        tokio::spawn(server.serve_connection(far));
        let other = connect(&serve(Echo::default()).await).await;
        let mut peer = Peer::client(near).await;
        let mut headers: Vec<_> = REQUEST.iter().copied().filter(|(name, _)| *name != ":path").collect();
        headers.insert(0, (":path", path));
        headers.push(("grpc-encoding", "gzip"));
        for number in 0..64 {
            peer.headers(1 + 2 * number, false, &headers).data(1 + 2 * number, true, &bomb);
        }
        peer.send().await;
        soon(crate::support::echo(&other, raw("x"))).await.expect("a response");
        let waited_for = counted.0.load(Ordering::SeqCst);
        assert!(waited_for <= 5, "{path}: {waited_for}");
        until(|| counted.0.load(Ordering::SeqCst) == 64).await;
    };
    check("/test.Counted/Count").await;
    check("/test.Counted/CountAll").await;
}

/// Ready messages are read in a row, but only a few that decompress to a large size.
#[tokio::test]
async fn reading_decompressed_messages_yields() {
    const LEN: usize = 100_000;
    let target = serve(echo(|options| options.send_compressed = Some(Encoding::Gzip))).await;
    let channel = connect(&target).await;
    let sent = Request::new(items(vec![raw(vec![7; LEN]); 40]));
    let responses = channel.bidi_streaming::<_, Raw>(&CHAT, sent, &options(Encoding::Gzip)).await;
    let mut responses = responses.expect("a stream").into_inner();
    // By now everything has arrived.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut request_counts = vec![0];
    while request_counts.iter().sum::<usize>() < 40 {
        if let Some(message) = poll_once(Box::pin(responses.message()).as_mut()) {
            assert_eq!(message.expect("no error"), Some(raw(vec![7; LEN])));
            *request_counts.last_mut().expect("there is one") += 1;
        } else {
            request_counts.push(0);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    // 256 KiB plus the rest of the last message.
    assert!(
        request_counts.iter().all(|request_count| *request_count <= 3) && request_counts.contains(&3),
        "{request_counts:?}"
    );
}
