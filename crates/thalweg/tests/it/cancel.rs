//! Cancellation from either side, deadlines, and panics.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::support::peer::{HEAD, connected};
use crate::support::{CHAT, COUNT, REPEAT, Receiver, chat, connect, echo, raw, serve, soon, until};
use thalweg::server::{Methods, Service};
use thalweg::{CallOptions, Code, Raw, Request, Response, ServiceOptions, Status, Stream, Streaming};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use tokio::sync::mpsc;

/// Counts drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An endless stream of responses: one message, then silence or a panic.
struct OneThen {
    sent: bool,
    panics: bool,
    _dropped: Dropped,
}

impl Stream for OneThen {
    type Item = Result<Raw, Status>;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !std::mem::replace(&mut self.sent, true) {
            return Poll::Ready(Some(Ok(raw("one"))));
        }
        assert!(!self.panics, "asked to");
        Poll::Pending
    }
}

/// Handlers that never finish, and the number that were dropped.
#[derive(Clone, Default)]
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn dropped(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Service for Waiting {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Echo", &service, &options, async |waiting, request: Request<Raw>| {
            if request.get_ref().0.is_empty() {
                return Ok(Response::new(raw("")));
            }
            let _dropped = Dropped(Arc::clone(&waiting.0));
            std::future::pending::<Result<Response<Raw>, Status>>().await
        });
        methods.client_streaming(
            "Count",
            &service,
            &options,
            async |waiting, requests: Request<Streaming<Raw>>| {
                let _dropped = Dropped(Arc::clone(&waiting.0));
                let mut requests = requests.into_inner();
                while requests.message().await?.is_some() {}
                Ok(Response::new(raw("")))
            },
        );
        methods.server_streaming("Repeat", &service, &options, async |waiting, order: Request<Raw>| {
            let (panics, dropped) = (order.get_ref().0 == "panic", Dropped(Arc::clone(&waiting.0)));
            Ok(Response::new(OneThen { sent: false, panics, _dropped: dropped }))
        });
        methods.bidi_streaming("Chat", &service, &options, async |waiting, _: Request<Streaming<Raw>>| {
            let _dropped = Dropped(Arc::clone(&waiting.0));
            std::future::pending::<Result<Response<OneThen>, Status>>().await
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_call_is_dropped_on_server() {
    let waiting = Waiting::default();
    let channel = connect(&serve(waiting.clone()).await).await;
    let options = CallOptions::default();

    let call = tokio::spawn({
        let channel = channel.clone();
        async move { echo(&channel, raw("wait")).await }
    });
    until(|| channel.lanes()[0].in_flight == 1).await;
    echo(&channel, raw("")).await.expect("the handler before has begun, too");
    call.abort();
    until(|| waiting.dropped() == 1).await;

    let (requests, source) = mpsc::unbounded_channel();
    let call = tokio::spawn({
        let channel = channel.clone();
        let request = Request::new(Receiver(source));
        async move { channel.client_streaming::<_, Raw>(&COUNT, request, &CallOptions::default()).await }
    });
    requests.send(raw("x")).expect("open");
    until(|| channel.lanes()[0].in_flight == 1).await;
    echo(&channel, raw("")).await.expect("a response");
    call.abort();
    until(|| waiting.dropped() == 2 && requests.is_closed()).await;

    let order = Request::new(raw("wait"));
    let responses = channel.server_streaming::<Raw, Raw>(&REPEAT, order, &options).await;
    let mut responses = responses.expect("a stream").into_inner();
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("one")));
    drop(responses);
    until(|| waiting.dropped() == 3).await;

    let (requests, source) = mpsc::unbounded_channel::<Raw>();
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { chat(&channel, Receiver(source)).await.map(drop) }
    });
    until(|| channel.lanes()[0].in_flight == 1).await;
    echo(&channel, raw("")).await.expect("a response");
    call.abort();
    until(|| waiting.dropped() == 4 && requests.is_closed()).await;
    assert_eq!(channel.lanes()[0].in_flight, 0);
}

/// Responds with no messages and leaves a task that reads the requests and reports how they ended. With `ends`, the
/// response ends at once.
struct ReadsAfterEnd {
    ends: bool,
    codes: mpsc::UnboundedSender<Code>,
}

struct Nothing {
    ends: bool,
}

impl Stream for Nothing {
    type Item = Result<Raw, Status>;
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ends { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl Service for ReadsAfterEnd {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.bidi_streaming(
            "Chat",
            &service,
            &options,
            async |service, requests: Request<Streaming<Raw>>| {
                let codes = service.codes.clone();
                tokio::spawn(async move {
                    let mut requests = requests.into_inner();
                    let end = loop {
                        match requests.message().await {
                            Ok(Some(_)) => {}
                            Ok(None) => break Code::Ok,
                            Err(status) => break status.code(),
                        }
                    };
                    codes.send(end)
                });
                Ok(Response::new(Nothing { ends: service.ends }))
            },
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_after_call_end_returns_cancelled() {
    for ends in [false, true] {
        let (codes, mut ended) = mpsc::unbounded_channel();
        let channel = connect(&serve(ReadsAfterEnd { ends, codes }).await).await;
        let (requests, source) = mpsc::unbounded_channel();
        requests.send(raw("x")).expect("open");
        let responses = chat(&channel, Receiver(source)).await.expect("a stream");
        drop(responses);
        assert_eq!(soon(ended.recv()).await, Some(Code::Cancelled), "ends: {ends}");
    }
}

#[tokio::test]
async fn stream_ends_at_deadline() {
    let waiting = Waiting::default();
    let channel = connect(&serve(waiting.clone()).await).await;
    let options = CallOptions::default();
    let mut order = Request::new(raw("wait"));
    order.set_timeout(Duration::from_millis(500));
    let responses = channel.server_streaming::<Raw, Raw>(&REPEAT, order, &options).await;
    let mut responses = responses.expect("a stream").into_inner();
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("one")));
    let status = soon(responses.message()).await.expect_err("it goes on too long");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(soon(responses.message()).await.expect("it said so already"), None);
    until(|| waiting.dropped() == 1).await;

    let (_requests, source) = mpsc::unbounded_channel::<Raw>();
    let mut request = Request::new(Receiver(source));
    request.set_timeout(Duration::from_millis(500));
    let outcome = soon(channel.bidi_streaming::<_, Raw>(&CHAT, request, &options)).await;
    assert_eq!(outcome.expect_err("no head comes").code(), Code::DeadlineExceeded);
    until(|| waiting.dropped() == 2).await;
    assert_eq!(channel.lanes()[0].in_flight, 0);
}

#[tokio::test]
async fn panic_in_response_stream_ends_call() {
    let waiting = Waiting::default();
    let channel = connect(&serve(waiting.clone()).await).await;
    let options = CallOptions::default();
    let order = Request::new(raw("panic"));
    let responses = channel.server_streaming::<Raw, Raw>(&REPEAT, order, &options).await;
    let mut responses = responses.expect("a stream").into_inner();
    let status = loop {
        match soon(responses.message()).await {
            Ok(Some(message)) => assert_eq!(message, raw("one")),
            Ok(None) => panic!("it did not end well"),
            Err(status) => break status,
        }
    };
    assert_eq!((status.code(), status.message()), (Code::Internal, "the handler panicked"));
    echo(&channel, raw("")).await.expect("the connection is as good as before");
}

/// A stream of requests that panics on demand once the call is in flight.
struct PanicsOnDemand(mpsc::UnboundedReceiver<Raw>);

impl Stream for PanicsOnDemand {
    type Item = Raw;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let polled = self.0.poll_recv(cx);
        assert!(!matches!(polled, Poll::Ready(None)), "told to");
        polled
    }
}

#[tokio::test]
async fn panic_in_request_stream_ends_call() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let (requests, source) = mpsc::unbounded_channel();
    let call = tokio::spawn(async move {
        let mut responses = chat(&channel, PanicsOnDemand(source)).await?;
        responses.message().await
    });
    let headers = soon(peer.next_of(Kind::Headers)).await;
    peer.headers(headers.stream, false, HEAD).send().await;
    requests.send(raw("x")).expect("open");
    soon(peer.next_of(Kind::Data)).await;
    drop(requests);
    let status = soon(call).await.expect("the panic is another task's").expect_err("it cannot go on");
    assert_eq!(status.code(), Code::Internal, "{status:?}");
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
}
