//! Streams with messages sent and read in place: over each protocol, with all errors that can happen to a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use thalweg::bytes::Bytes;
use thalweg::outbound::{Requests, Responses};
use thalweg::server::{Methods, Service};
use thalweg::web::Web;
use thalweg::{
    CallOptions, Channel, Code, DecodeError, Encoding, Message, Method, Protocol, Raw, Request, Response,
    Server, ServiceOptions, Status, Stream, Streaming,
};

use crate::support::peer::{HEAD, OK, connected};
use crate::support::{CHAT, COUNT, Echo, REPEAT, connect, items, poll_once, raw, serve, soon, start};

static SUM: Method = Method::new("/test.InPlace/Sum");
static GIVE: Method = Method::new("/test.InPlace/Give");
static BACK: Method = Method::new("/test.InPlace/Back");

/// Reads and responds in place.
#[derive(Clone, Default)]
struct OutboundService {
    options: ServiceOptions,
}

/// Messages of all sizes that are handled differently: small ones, those that may keep their buffer, and those larger
/// than a frame or a pack.
fn all_sizes() -> Vec<Raw> {
    let sizes = [0, 1, 5, 1_000, 4_095, 4_096, 5_000, 70_000, 3, 300_000, 0, 2];
    sizes.iter().enumerate().map(|(i, &size)| raw(vec![i as u8; size])).collect()
}

async fn sum(requests: Request<Streaming<Raw>>) -> Result<Response<Raw>, Status> {
    let mut requests = requests.into_inner();
    let (mut message, mut count, mut bytes) = (Raw::default(), 0, 0);
    while requests.message_into(&mut message).await? {
        count += 1;
        bytes += message.0.len();
    }
    Ok(Response::new(raw(format!("{count} {bytes}"))))
}

/// Returns the messages in the way that the request names.
fn responses_of(source: &[u8]) -> Result<Responses<Raw>, Status> {
    Ok(match source {
        b"slice" => Responses::slice(all_sizes()),
        b"shared" => Responses::slice(Arc::<[Raw]>::from(all_sizes())),
        b"iter" => Responses::iter(all_sizes()),
        b"references" => Responses::iter(&*Vec::leak(all_sizes())),
        b"arcs" => Responses::iter(all_sizes().into_iter().map(Arc::new)),
        b"repeat" => Responses::repeat(raw("again"), 100_000),
        b"late" => delayed(),
        b"fails" => failing_after_two(),
        other => return Err(Status::not_found(String::from_utf8_lossy(other))),
    })
}

/// Sends the messages with pauses.
fn delayed() -> Responses<Raw> {
    let mut sleep = Box::pin(tokio::time::sleep(Duration::from_millis(1)));
    let mut remaining = all_sizes().into_iter();
    Responses::new(move |cx, pack| {
        std::task::ready!(sleep.as_mut().poll(cx));
        let Some(message) = remaining.next() else { return Poll::Ready(Ok(())) };
        pack.push(&message);
        sleep.as_mut().reset(tokio::time::Instant::now() + Duration::from_millis(1));
        // Registers the waker.
        sleep.as_mut().poll(cx).map(|()| Ok(()))
    })
}

/// Two messages, then a status.
fn failing_after_two() -> Responses<Raw> {
    Responses::new(|_, pack| {
        pack.push(&raw("one"));
        pack.push(&raw("two"));
        Poll::Ready(Err(Status::data_loss("no more")))
    })
}

fn echo_back(requests: Request<Streaming<Raw>>) -> Responses<Raw> {
    let (mut requests, mut message) = (requests.into_inner(), Raw::default());
    Responses::new(move |cx, pack| {
        while !pack.is_full() {
            match requests.poll_message_into(cx, &mut message) {
                Poll::Ready(Ok(true)) => pack.push(&message),
                Poll::Ready(ended) => return Poll::Ready(ended.map(drop)),
                Poll::Pending => return Poll::Pending,
            };
        }
        Poll::Pending
    })
}

impl Service for OutboundService {
    const NAME: &'static str = "test.InPlace";

    fn register(self, methods: &mut Methods<'_>) {
        let options = self.options.clone();
        let service = Arc::new(self);
        methods.client_streaming("Sum", &service, &options, |_, requests| sum(requests));
        methods.server_streaming("Give", &service, &options, |_, request: Request<Raw>| async move {
            responses_of(&request.get_ref().0).map(Response::new)
        });
        methods.bidi_streaming("Back", &service, &options, |_, requests| async {
            Ok(Response::new(echo_back(requests)))
        });
    }
}

async fn give(channel: &Channel, source: &'static str, options: &CallOptions) -> Streaming<Raw> {
    let responses = channel.server_streaming(&GIVE, Request::new(raw(source)), options).await;
    responses.expect("it begins").into_inner()
}

/// Reads all messages one by one into the same message.
async fn read_all(mut stream: Streaming<Raw>) -> Result<Vec<Raw>, Status> {
    let (mut message, mut all) = (Raw::default(), Vec::new());
    while stream.message_into(&mut message).await? {
        all.push(message.clone());
    }
    assert!(!stream.message_into(&mut message).await?, "behind the end is the end");
    Ok(all)
}

/// Reads all messages in batches.
async fn read_batches(mut stream: Streaming<Raw>) -> Result<Vec<Raw>, Status> {
    let (mut slots, mut all) = (vec![Raw::default(); 7], Vec::new());
    loop {
        match stream.messages_into(&mut slots).await? {
            0 => return Ok(all),
            count => all.extend_from_slice(&slots[..count]),
        }
    }
}

/// Reads all messages as borrowed bytes.
async fn read_borrowed(mut stream: Streaming<Raw>) -> Result<Vec<Raw>, Status> {
    let mut all = Vec::new();
    while let Some(bytes) = stream.next_bytes().await? {
        all.push(Raw(Bytes::copy_from_slice(bytes)));
    }
    Ok(all)
}

/// Checks all ways of sending with all ways of reading, including tonic's.
async fn check_all_sources(channel: &Channel, has_bidi: bool, options: &CallOptions) {
    for source in ["slice", "shared", "iter", "references", "arcs", "late"] {
        let expected = all_sizes();
        assert!(read_all(give(channel, source, options).await).await.expect(source) == expected, "{source}");
        assert!(
            read_batches(give(channel, source, options).await).await.expect(source) == expected,
            "{source}"
        );
        assert!(
            read_borrowed(give(channel, source, options).await).await.expect(source) == expected,
            "{source}"
        );
        let mut stream = give(channel, source, options).await;
        for message in expected {
            assert!(stream.message().await.expect(source) == Some(message), "{source}");
        }
        assert_eq!(stream.message().await.expect(source), None);
    }
    let repeated = read_batches(give(channel, "repeat", options).await).await.expect("repeat");
    assert!(repeated.len() == 100_000 && repeated.iter().all(|message| message == &raw("again")));
    for read in [0, 1, 2] {
        let stream = give(channel, "fails", options).await;
        let status = match read {
            0 => read_all(stream).await,
            1 => read_batches(stream).await,
            _ => read_borrowed(stream).await,
        };
        let status = status.expect_err("the server fails");
        assert_eq!((status.code(), status.message()), (Code::DataLoss, "no more"));
    }
    let bytes: usize = all_sizes().iter().map(|message| message.0.len()).sum();
    let expected = raw(format!("{} {bytes}", all_sizes().len()));
    let counted = async |requests: Requests<Raw>| {
        let response = channel.client_streaming::<_, Raw>(&SUM, Request::new(requests), options).await;
        response.expect("a response").into_inner()
    };
    assert_eq!(counted(Requests::slice(all_sizes())).await, expected);
    assert_eq!(counted(Requests::iter(all_sizes())).await, expected);
    assert_eq!(counted(Requests::repeat(raw("1234"), 50_000)).await, raw("50000 200000"));
    assert_eq!(counted(Requests::repeat(raw("1234"), 0)).await, raw("0 0"));
    if has_bidi {
        let requests = Request::new(Requests::slice(all_sizes()));
        let responses = channel.bidi_streaming(&BACK, requests, options).await.expect("it begins");
        assert!(read_all(responses.into_inner()).await.expect("both ways") == all_sizes());
    }
}

#[tokio::test]
async fn all_sources_work_over_grpc() {
    let target = serve(OutboundService::default()).await;
    soon(check_all_sources(&connect(&target).await, true, &CallOptions::default())).await;
}

#[tokio::test]
async fn all_sources_work_over_web_protocols() {
    let target = start(Server::builder().web(Web::new()).add_service(OutboundService::default())).await;
    for protocol in [Protocol::Connect, Protocol::GrpcWeb, Protocol::GrpcWebText] {
        for is_http1 in [false, true] {
            let channel = Channel::builder(&target).protocol(protocol).http1(is_http1).connect_lazy();
            let channel = channel.expect("a channel");
            soon(check_all_sources(&channel, !is_http1, &CallOptions::default())).await;
        }
    }
}

#[tokio::test]
async fn outbound_streams_pass_interceptors() {
    use thalweg::interceptor::{Call, Next, Reply};
    async fn pass(call: Call, next: Next) -> Result<Reply, Status> {
        next.run(call).await
    }
    let target = start(Server::builder().interceptor(pass).add_service(OutboundService::default())).await;
    let channel = connect(&target).await.with_interceptor(pass);
    let requests = Request::new(Requests::slice(all_sizes()));
    let options = CallOptions::default();
    let responses = thalweg::Caller::bidi_streaming::<_, Raw>(&channel, &BACK, requests, &options).await;
    assert!(
        soon(read_all(responses.expect("it begins").into_inner())).await.expect("no error") == all_sizes()
    );
}

#[tokio::test]
async fn all_sources_work_compressed() {
    for encoding in Encoding::ALL.iter().copied().filter(|encoding| encoding.compresses()) {
        let mut service = OutboundService::default();
        service.options.send_compressed = Some(encoding);
        service.options.compression_threshold = 3;
        let mut options = CallOptions::default();
        options.send_compressed = Some(encoding);
        let channel = connect(&serve(service).await).await;
        soon(check_all_sources(&channel, true, &options)).await;
    }
}

/// Returns how many messages of `stream` can be read, and the code it ends with.
async fn read_until_error(mut stream: Streaming<Raw>) -> (usize, Code) {
    let (mut message, mut count) = (Raw::default(), 0);
    loop {
        match stream.message_into(&mut message).await {
            Ok(true) => count += 1,
            Ok(false) => return (count, Code::Ok),
            Err(status) => return (count, status.code()),
        }
    }
}

#[tokio::test]
async fn too_large_message_ends_call_after_earlier_messages() {
    // The fifth message is the first of more than 4,000 bytes.
    let mut service = OutboundService::default();
    service.options.max_encoding_message_size = 4_000;
    let channel = connect(&serve(service).await).await;
    let stream = give(&channel, "slice", &CallOptions::default()).await;
    assert_eq!(soon(read_until_error(stream)).await, (4, Code::ResourceExhausted));
    // At the receiver.
    let channel = connect(&serve(OutboundService::default()).await).await;
    let mut options = CallOptions::default();
    options.max_decoding_message_size = 4_000;
    let stream = give(&channel, "slice", &options).await;
    assert_eq!(soon(read_until_error(stream)).await, (4, Code::ResourceExhausted));
    let stream = give(&channel, "slice", &options).await;
    let status = soon(read_batches(stream)).await.expect_err("one is too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    // In a request.
    let mut options = CallOptions::default();
    options.max_encoding_message_size = 4_000;
    let requests = Request::new(Requests::slice(all_sizes()));
    let response = soon(channel.client_streaming::<_, Raw>(&SUM, requests, &options)).await;
    assert_eq!(response.expect_err("one is too large").code(), Code::ResourceExhausted);
}

/// Any bytes but `bad`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Good(Bytes);

impl Message for Good {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        assert!(self.0 != "panic", "asked to");
        out.extend_from_slice(&self.0);
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        match wire {
            b"bad" => Err(DecodeError::new("it is bad")),
            wire => Ok(Good(Bytes::copy_from_slice(wire))),
        }
    }
}

fn good(text: &'static str) -> Good {
    Good(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn undecodable_message_ends_stream() {
    let channel = connect(&serve(Echo::default()).await).await;
    let options = CallOptions::default();
    let texts = || ["one", "two", "bad", "four"].map(raw).to_vec();
    let begin = async || {
        let requests = Request::new(Requests::slice(texts()));
        let responses = channel.bidi_streaming::<_, Good>(&CHAT, requests, &options).await;
        responses.expect("it begins").into_inner()
    };
    let check = |status: Status| {
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().contains("it is bad"), "{status:?}");
    };
    let (mut stream, mut message) = (begin().await, Good::default());
    for text in ["one", "two"] {
        assert!(soon(stream.message_into(&mut message)).await.expect(text));
        assert_eq!(message, good(text));
    }
    check(soon(stream.message_into(&mut message)).await.expect_err("bad"));
    assert!(!stream.message_into(&mut message).await.expect("the end"));

    let (mut stream, mut slots) = (begin().await, vec![Good::default(); 9]);
    let mut read = 0;
    while read < 2 {
        read += soon(stream.messages_into(&mut slots[read..])).await.expect("what came before");
    }
    assert_eq!(slots[..2], [good("one"), good("two")]);
    check(soon(stream.messages_into(&mut slots)).await.expect_err("bad"));
    assert_eq!(stream.messages_into(&mut slots).await.expect("the end"), 0);
    assert_eq!(stream.messages_into(&mut []).await.expect("no places"), 0);

    let mut stream = begin().await;
    for text in ["one", "two"] {
        assert_eq!(soon(stream.message()).await.expect(text), Some(good(text)));
    }
    check(soon(stream.message()).await.expect_err("bad"));
    assert_eq!(stream.message().await.expect("the end"), None);
}

#[tokio::test]
async fn panicking_message_ends_only_its_call() {
    let channel = connect(&serve(Echo::default()).await).await;
    let texts = ["one", "panic", "three"].map(good);
    let borrowed = Request::new(Requests::slice(texts.clone()));
    let responses_of = Request::new(items(texts.to_vec()));
    // A stream that continues after its message has panicked.
    let mut texts = texts.into_iter();
    let continues_after_panic = Request::new(Requests::new(move |_, pack| {
        for text in &mut texts {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pack.push(&text)));
        }
        Poll::Ready(())
    }));
    let options = CallOptions::default();
    let check = |response: Result<Response<Raw>, Status>| {
        let status = response.expect_err("it panics");
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().contains("the message panicked"), "{status:?}");
    };
    check(soon(channel.client_streaming(&COUNT, borrowed, &options)).await);
    check(soon(channel.client_streaming(&COUNT, responses_of, &options)).await);
    check(soon(channel.client_streaming(&COUNT, continues_after_panic, &options)).await);
    let requests = Request::new(Requests::repeat(raw("x"), 3));
    let response = channel.client_streaming::<_, Raw>(&COUNT, requests, &options).await;
    assert_eq!(response.expect("the connection is whole").into_inner(), raw("3 3"));
}

#[tokio::test]
async fn cancelled_read_loses_no_partial_message() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn(async move {
        let options = CallOptions::default();
        channel.server_streaming::<Raw, Raw>(&REPEAT, Request::new(raw("")), &options).await
    });
    let envelope = crate::support::peer::envelope;
    let wire = [envelope(b"first"), envelope(b"second"), envelope(&[7; 6_000]), envelope(b"last")].concat();
    peer.headers(1, false, HEAD).data(1, false, &wire[..3]).send().await;
    let mut stream = soon(call).await.expect("no panic").expect("it begins").into_inner();
    let mut message = raw("before");
    let mut read = Vec::new();
    // Each piece ends within a message; each read is cancelled at least once.
    for piece in wire[3..].chunks(7) {
        loop {
            let polled = poll_once(Box::pin(stream.message_into(&mut message)).as_mut());
            let Some(is_there) = polled else { break };
            assert!(is_there.expect("a message"));
            read.push(message.clone());
        }
        peer.data(1, false, piece).send().await;
        tokio::task::yield_now().await;
    }
    peer.headers(1, true, OK).send().await;
    while soon(stream.message_into(&mut message)).await.expect("the rest") {
        read.push(message.clone());
    }
    assert!(read == [raw("first"), raw("second"), raw(vec![7; 6_000]), raw("last")]);
}

#[tokio::test]
async fn deadline_ends_both_sides() {
    let channel = connect(&serve(OutboundService::default()).await).await;
    let poll_count = Arc::new(AtomicUsize::new(0));
    let polls = Arc::clone(&poll_count);
    let never = Requests::new(move |_, pack| {
        if poll_count.fetch_add(1, Ordering::SeqCst) == 0 {
            pack.push(&raw("the only one"));
        }
        Poll::Pending
    });
    let mut request = Request::new(never);
    request.set_timeout(Duration::from_millis(100));
    let options = CallOptions::default();
    let mut stream =
        channel.bidi_streaming::<_, Raw>(&BACK, request, &options).await.expect("it begins").into_inner();
    let mut message = Raw::default();
    assert!(soon(stream.message_into(&mut message)).await.expect("the only one"));
    let status = soon(stream.message_into(&mut message)).await.expect_err("the deadline");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(polls.load(Ordering::SeqCst) >= 1);
}

#[tokio::test]
async fn dropped_stream_ends_outbound_messages() {
    struct CountsDrop(Arc<AtomicUsize>);
    impl Drop for CountsDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let ended = Arc::new(AtomicUsize::new(0));
    let guard = CountsDrop(Arc::clone(&ended));
    let endless = Requests::new(move |_, pack| {
        let _guard = &guard;
        while pack.push(&raw("on and on")) {}
        Poll::Pending
    });
    let channel = connect(&serve(OutboundService::default()).await).await;
    let options = CallOptions::default();
    let responses = channel.bidi_streaming::<_, Raw>(&BACK, Request::new(endless), &options).await;
    let mut stream = responses.expect("it begins").into_inner();
    let mut slots = vec![Raw::default(); 1_000];
    for _ in 0..100 {
        assert!(soon(stream.messages_into(&mut slots)).await.expect("messages") > 0);
    }
    drop(stream);
    crate::support::until(|| ended.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn outbound_types_implement_stream() {
    let from = |stream: Responses<Raw>| Streaming::from_stream(stream);
    assert!(read_all(from(Responses::slice(all_sizes()))).await.expect("no error") == all_sizes());
    assert!(read_batches(from(delayed())).await.expect("no error") == all_sizes());
    assert!(read_borrowed(from(Responses::iter(all_sizes()))).await.expect("no error") == all_sizes());
    let mut stream = from(failing_after_two());
    let mut slots = vec![Raw::default(); 3];
    assert_eq!(stream.messages_into(&mut slots).await.expect("two before it"), 2);
    assert_eq!(stream.messages_into(&mut slots).await.expect_err("the third").code(), Code::DataLoss);
    assert_eq!(stream.messages_into(&mut slots).await.expect("the end"), 0);
    // A stream that was polled before it is sent continues after the polled message.
    let mut requests = Box::pin(Requests::slice(all_sizes()));
    let first = std::future::poll_fn(|cx| requests.as_mut().poll_next(cx)).await;
    assert_eq!(first, all_sizes().into_iter().next());
    let channel = connect(&serve(OutboundService::default()).await).await;
    let requests = Request::new(*std::pin::Pin::into_inner(requests));
    let response = channel.client_streaming::<_, Raw>(&SUM, requests, &CallOptions::default()).await;
    let bytes: usize = all_sizes().iter().map(|message| message.0.len()).sum();
    assert_eq!(response.expect("a response").into_inner(), raw(format!("11 {bytes}")));
}
