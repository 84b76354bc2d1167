//! Flow control between callers and handlers: no sender runs far ahead of its reader.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crate::support::{CHAT, COUNT, Echo, REPEAT, chat, connect, echo, items, raw, serve, soon, until};
use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Channel, Raw, Request, Response, Server, ServiceOptions, Status, Stream, Streaming,
};
use thalweg_engine::http2::Config;
use tokio::sync::Semaphore;

const SIZE: usize = 10_000;
const WINDOW: usize = 1 << 20;
/// Bytes that a sender packs and queues, with some allowance for data in transit.
const QUEUED_MAX: usize = 512 << 10;
/// Maximum lead of a sender over a reader that has not started.
const AHEAD_MAX: usize = WINDOW + QUEUED_MAX;
/// Maximum lead over an active reader, which takes all received data at once and decodes messages from it.
const AHEAD_OF_READER_MAX: usize = 2 * WINDOW + QUEUED_MAX;

/// Endless messages, counted as they are taken.
struct Endless(Arc<AtomicUsize>);

impl Endless {
    fn next(&self) -> Raw {
        self.0.fetch_add(SIZE, Ordering::SeqCst);
        raw(vec![1; SIZE])
    }
}

impl Stream for Endless {
    type Item = Raw;
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Raw>> {
        Poll::Ready(Some(self.next()))
    }
}

struct EndlessResponses(Endless);

impl Stream for EndlessResponses {
    type Item = Result<Raw, Status>;
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(self.0.next())))
    }
}

/// Sends endlessly, or receives on demand.
#[derive(Clone)]
struct FlowService {
    sent: Arc<AtomicUsize>,
    /// One permit per request that `Count` may read.
    reads: Arc<Semaphore>,
}

impl FlowService {
    fn new() -> Self {
        Self { sent: Arc::default(), reads: Arc::new(Semaphore::new(0)) }
    }
}

impl Service for FlowService {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Echo", &service, &options, async |_, request: Request<Raw>| {
            Ok(Response::new(request.into_inner()))
        });
        methods.server_streaming("Repeat", &service, &options, async |service, _: Request<Raw>| {
            Ok(Response::new(EndlessResponses(Endless(Arc::clone(&service.sent)))))
        });
        methods.client_streaming(
            "Count",
            &service,
            &options,
            async |service, request: Request<Streaming<Raw>>| {
                let mut requests = request.into_inner();
                loop {
                    service.reads.acquire().await.expect("open").forget();
                    if requests.message().await?.is_none() {
                        return Ok(Response::new(raw("")));
                    }
                }
            },
        );
        // Drops the requests unread, and responds at once or later.
        methods.bidi_streaming(
            "Chat",
            &service,
            &options,
            async |service, request: Request<Streaming<Raw>>| {
                drop(request);
                service.reads.acquire().await.expect("open").forget();
                Ok(Response::new(OneResponse(vec![raw("done")].into_iter())))
            },
        );
    }
}

struct OneResponse(std::vec::IntoIter<Raw>);

impl Stream for OneResponse {
    type Item = Result<Raw, Status>;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

/// Waits until the count is stable over several unrelated calls, which pass everything that the count depends on.
async fn when_stable(channel: &Channel, count: &AtomicUsize) -> usize {
    let (mut last, mut unchanged) = (0, 0);
    while unchanged < 20 {
        echo(channel, raw("between")).await.expect("other calls go on");
        let now = count.load(Ordering::SeqCst);
        unchanged = if now == last && now > 0 { unchanged + 1 } else { 0 };
        last = now;
    }
    last
}

#[tokio::test]
async fn handler_does_not_run_ahead_of_caller() {
    let service = FlowService::new();
    let channel = connect(&serve(service.clone()).await).await;
    let (order, options) = (Request::new(raw("")), CallOptions::default());
    let call = channel.server_streaming::<Raw, Raw>(&REPEAT, order, &options);
    let mut responses = call.await.expect("a stream").into_inner();
    let before = when_stable(&channel, &service.sent).await;
    assert!(before <= AHEAD_MAX, "{before} bytes ahead");
    let mut read = 0;
    while read < 4 << 20 {
        read += soon(responses.message()).await.expect("a message").expect("endless").0.len();
    }
    let after = when_stable(&channel, &service.sent).await;
    assert!(after >= read && after <= read + AHEAD_OF_READER_MAX, "{after} sent, {read} read");
}

#[tokio::test]
async fn caller_does_not_run_ahead_of_handler() {
    let service = FlowService::new();
    let channel = connect(&serve(service.clone()).await).await;
    let taken = Arc::new(AtomicUsize::new(0));
    let source = Endless(Arc::clone(&taken));
    let call = tokio::spawn({
        let channel = channel.clone();
        async move {
            let options = CallOptions::default();
            channel.client_streaming::<_, Raw>(&COUNT, Request::new(source), &options).await
        }
    });
    let before = when_stable(&channel, &taken).await;
    assert!(before <= AHEAD_MAX, "{before} bytes ahead");
    let reads = 400;
    service.reads.add_permits(reads);
    until(|| service.reads.available_permits() == 0).await;
    let after = when_stable(&channel, &taken).await;
    assert!(after >= reads * SIZE && after <= reads * SIZE + AHEAD_OF_READER_MAX, "{after} taken");
    call.abort();
    until(|| channel.lanes()[0].in_flight == 0).await;
}

#[tokio::test]
async fn unread_requests_are_discarded() {
    let service = FlowService::new();
    let channel = connect(&serve(service.clone()).await).await;
    let taken = Arc::new(AtomicUsize::new(0));
    let call = tokio::spawn({
        let (channel, source) = (channel.clone(), Endless(Arc::clone(&taken)));
        async move { chat(&channel, source).await }
    });
    // They are let through and dropped: many windows' worth.
    until(|| taken.load(Ordering::SeqCst) > 8 << 20).await;
    service.reads.add_permits(1);
    let mut responses = soon(call).await.expect("no panic").expect("a stream");
    assert_eq!(soon(responses.message()).await.expect("a response"), Some(raw("done")));
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    // The end of the call also ends the sending.
    let before = when_stable(&channel, &taken).await;
    echo(&channel, raw("x")).await.expect("a response");
    assert_eq!(taken.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn calls_work_with_extreme_http2_settings() {
    let check = async |odd: fn(&mut Config)| {
        let mut config = Config::default();
        odd(&mut config);
        let server = Server::builder().add_service(Echo::default()).http2(config.clone());
        let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a free port");
        let target = server.local_addresses()[0].to_string();
        let serving = tokio::spawn(server.serve());
        let channel = Channel::builder(target).http2(config).connect().await.expect("a server");
        let sent = raw(vec![3; 200_000]);
        assert!(soon(echo(&channel, sent.clone())).await.expect("a response") == sent);
        let messages = vec![raw(vec![4; 3000]); 100];
        let mut responses = soon(chat(&channel, items(messages.clone()))).await.expect("a stream");
        for message in messages {
            assert!(soon(responses.message()).await.expect("a message") == Some(message));
        }
        assert_eq!(soon(responses.message()).await.expect("the end"), None);
        serving.abort();
    };
    check(|config| config.stream_window = 100).await;
    check(|config| config.send_queue_low_water = 0).await;
    check(|config| config.send_queue_low_water = usize::MAX).await;
    check(|config| config.output_target = 0).await;
    check(|config| config.max_frame_size = 16_777_215).await;
    check(|config| config.header_table_size = 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_streams_lose_nothing() {
    let channel = connect(&serve(Echo::default()).await).await;
    let calls: Vec<_> = (0..40usize)
        .map(|call| {
            let channel = channel.clone();
            tokio::spawn(async move {
                let sizes = (0..50).map(|i| (call * 977 + i * 331) % 20_000);
                let messages: Vec<_> = sizes.map(|size| raw(vec![call as u8; size])).collect();
                let options = CallOptions::default();
                let request = Request::new(items(messages.clone()));
                let responses = channel.bidi_streaming::<_, Raw>(&CHAT, request, &options).await;
                let mut responses = responses.expect("a stream").into_inner();
                for message in messages {
                    assert!(responses.message().await.expect("a message") == Some(message));
                }
                assert_eq!(responses.message().await.expect("the end"), None);
            })
        })
        .collect();
    for call in calls {
        soon(call).await.expect("no panic");
    }
    assert_eq!(channel.lanes()[0].in_flight, 0);
}
