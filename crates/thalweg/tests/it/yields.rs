//! Streams that yield, as `tokio_stream::iter` does after every 32 messages. Their frames are as large as those of
//! other streams, their messages are sent promptly, and other tasks run.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use thalweg::outbound::Responses;
use thalweg::server::{Methods, Service};
use thalweg::web::Web;
use thalweg::{CallOptions, Raw, Request, Response, Server, ServiceOptions, Status, Stream, Streaming};
use thalweg_engine::http2::frame::Kind;
use tokio::sync::mpsc;
use tokio::task::{coop, yield_now};

use crate::memory_limits::client_of;
use crate::support::peer::{HEAD, OK, REQUEST, connected, envelope};
use crate::support::{COUNT, Echo, Receiver, chat, connect, echo, raw, serve, soon};

/// 50,000 bytes on the wire: a pack, which fits into a new connection's window.
const MESSAGES: usize = 10_000;

/// How a stream yields.
#[derive(Clone, Copy, Debug)]
enum Yields {
    Never,
    /// Wakes its task and returns `Poll::Pending`.
    Every(usize),
    /// Awaits tokio's `yield_now`.
    Deferred(usize),
    /// Uses the task's budget for each message, like tokio's channels.
    Budget,
}

const YIELDING: [Yields; 4] = [Yields::Every(32), Yields::Every(1), Yields::Deferred(32), Yields::Budget];

/// Empty messages.
struct Empty {
    yields: Yields,
    remaining: usize,
    has_yielded: bool,
}

impl Empty {
    fn new(yields: Yields, remaining: usize) -> Self {
        Self { yields, remaining, has_yielded: false }
    }
}

impl Stream for Empty {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let is_due = |every: usize| self.remaining.is_multiple_of(every) && !self.has_yielded;
        match self.yields {
            Yields::Every(every) if is_due(every) => {
                self.has_yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Yields::Deferred(every) if is_due(every) => {
                self.has_yielded = true;
                assert!(pin!(yield_now()).poll(cx).is_pending());
                return Poll::Pending;
            }
            Yields::Budget => ready!(coop::poll_proceed(cx)).made_progress(),
            Yields::Never | Yields::Every(_) | Yields::Deferred(_) => {}
        }
        self.has_yielded = false;
        let Some(remaining) = self.remaining.checked_sub(1) else { return Poll::Ready(None) };
        self.remaining = remaining;
        Poll::Ready(Some(Raw::default()))
    }
}

/// The same, as responses.
struct EmptyResponses(Empty);

impl Stream for EmptyResponses {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx).map(|message| message.map(Ok))
    }
}

/// Responds with a stream that yields this way: owned or lent messages.
struct Yielding(Yields);

impl Service for Yielding {
    const NAME: &'static str = "test.Yielding";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.server_streaming("Owned", &service, &options, async |service, _: Request<Raw>| {
            Ok(Response::new(EmptyResponses(Empty::new(service.0, MESSAGES))))
        });
        methods.bidi_streaming("Bidi", &service, &options, async |service, _: Request<Streaming<Raw>>| {
            Ok(Response::new(EmptyResponses(Empty::new(service.0, MESSAGES))))
        });
        methods.server_streaming("Lent", &service, &options, async |service, _: Request<Raw>| {
            let mut messages = Empty::new(service.0, MESSAGES);
            Ok(Response::new(Responses::new(move |cx, pack| {
                while !pack.is_full() {
                    match ready!(Pin::new(&mut messages).poll_next(cx)) {
                        Some(message) => pack.push(&message),
                        None => return Poll::Ready(Ok(())),
                    };
                }
                Poll::Pending
            })))
        });
    }
}

/// Returns the lengths of the DATA frames of a server's response.
async fn response_frame_lengths(yields: Yields, method: &str, content_type: &str) -> Vec<usize> {
    let mut client = client_of(Server::builder().add_service(Yielding(yields)).web(Web::new())).await;
    let path = format!("/test.Yielding/{method}");
    let mut fields = REQUEST.to_vec();
    for (name, value) in &mut fields {
        match *name {
            ":path" => *value = &path,
            "content-type" => *value = content_type,
            _ => {}
        }
    }
    client.headers(1, false, &fields).message(1, true, b"").send().await;
    let mut lengths = Vec::new();
    loop {
        let frame = soon(client.next()).await.expect("an end of the stream");
        if frame.kind == Kind::Data && !frame.payload.is_empty() {
            lengths.push(frame.payload.len());
        }
        if frame.end_stream {
            return lengths;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_frames_are_as_large_as_without_yields() {
    let check = async |method: &str, content_type: &str| {
        let expected = response_frame_lengths(Yields::Never, method, content_type).await;
        assert_eq!(expected.len(), 4, "{method}, {content_type}: {expected:?}");
        for yields in YIELDING {
            let lengths = response_frame_lengths(yields, method, content_type).await;
            assert_eq!(lengths, expected, "{method}, {content_type}, {yields:?}");
        }
    };
    check("Owned", "application/grpc").await;
    check("Bidi", "application/grpc").await;
    check("Lent", "application/grpc").await;
    check("Owned", "application/connect+proto").await;
    check("Owned", "application/grpc-web+proto").await;
}

/// Returns the lengths of the DATA frames of a client's requests.
async fn request_frame_lengths(yields: Yields, is_bidi: bool) -> Vec<usize> {
    let (channel, mut server, _accepted) = connected(&[]).await;
    let requests = Empty::new(yields, MESSAGES);
    let call = tokio::spawn(async move {
        if is_bidi {
            chat(&channel, requests).await?.message().await
        } else {
            let options = CallOptions::default();
            let response = channel.client_streaming(&COUNT, Request::new(requests), &options).await?;
            Ok(Some(response.into_inner()))
        }
    });
    let mut lengths = Vec::new();
    loop {
        let frame = soon(server.next_of(Kind::Data)).await;
        lengths.push(frame.payload.len());
        if frame.end_stream {
            server.headers(1, false, HEAD).message(1, false, b"").headers(1, true, OK).send().await;
            let response = soon(call).await.expect("no panic").expect("a response");
            assert_eq!(response, Some(Raw::default()));
            return lengths;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_frames_are_as_large_as_without_yields() {
    for is_bidi in [false, true] {
        let expected = request_frame_lengths(Yields::Never, is_bidi).await;
        assert_eq!(expected.len(), 4, "{expected:?}");
        for yields in YIELDING {
            assert_eq!(request_frame_lengths(yields, is_bidi).await, expected, "bidi: {is_bidi}, {yields:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn last_available_message_is_sent_at_once() {
    let (channel, mut server, _accepted) = connected(&[]).await;
    let (sender, receiver) = mpsc::unbounded_channel();
    let _call = tokio::spawn(async move { chat(&channel, Receiver(receiver)).await });
    // The same after a run that marked the source as yielding, and with more messages than a task's budget.
    for count in [1, 1, 2, 300, 1, 1, 3, 1] {
        for _ in 0..count {
            sender.send(raw("x")).expect("it is read");
        }
        let mut remaining = count * envelope(b"x").len();
        while remaining > 0 {
            remaining -= soon(server.next_of(Kind::Data)).await.payload.len();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn endlessly_yielding_stream_starves_no_task() {
    let channel = connect(&serve(Echo::default()).await).await;
    for yields in YIELDING {
        let mut responses = soon(chat(&channel, Empty::new(yields, usize::MAX))).await.expect("a response");
        let is_over = Arc::new(AtomicBool::new(false));
        let reader = tokio::spawn({
            let is_over = Arc::clone(&is_over);
            async move {
                while !is_over.load(Ordering::SeqCst) {
                    responses.message().await.expect("it goes on").expect("it has no end");
                }
            }
        });
        for _ in 0..3 {
            assert_eq!(
                soon(echo(&channel, raw("hello"))).await.expect("an echo"),
                raw("hello"),
                "{yields:?}"
            );
        }
        is_over.store(true, Ordering::SeqCst);
        soon(reader).await.expect("no panic");
    }
    // A stream that only yields.
    let nothing = std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { chat(&channel, Nothing(Box::pin(nothing))).await }
    });
    assert_eq!(soon(echo(&channel, raw("hello"))).await.expect("an echo"), raw("hello"));
    call.abort();
}

struct Nothing<F>(Pin<Box<F>>);

impl<F: Future<Output = ()>> Stream for Nothing<F> {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        self.0.as_mut().poll(cx).map(|()| None)
    }
}
