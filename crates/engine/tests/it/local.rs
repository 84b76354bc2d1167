//! In-process calls without a connection ([`LocalCalls`]) end like those over a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use thalweg_engine::server::{LocalCalls, LocalStream};
use thalweg_engine::{Code, RequestHead, ServiceOptions, Status};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::support::{Echo, failure, fields, server_config, soon, until};

/// Requests sent one by one by the test.
struct Requests(mpsc::UnboundedReceiver<Result<Bytes, Status>>);

impl Stream for Requests {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

/// Requests that are available at once.
fn requests(messages: &[&'static str]) -> Requests {
    let (sender, requests) = mpsc::unbounded_channel();
    for message in messages {
        sender.send(Ok(Bytes::from_static(message.as_bytes()))).expect("open");
    }
    Requests(requests)
}

fn local(echo: &Echo) -> LocalCalls {
    LocalCalls::new(&server_config(|_| {}), echo.router())
}

fn head() -> RequestHead {
    RequestHead::new(HeaderMap::new(), None, None)
}

fn head_of(metadata: &[(&'static str, &'static str)]) -> RequestHead {
    RequestHead::new(fields(metadata), None, None)
}

fn head_within(timeout: Duration) -> RequestHead {
    RequestHead::new(HeaderMap::new(), Some(timeout), None)
}

/// Reads a whole stream: initial metadata, messages, trailing metadata.
async fn collect(mut stream: LocalStream) -> Result<(HeaderMap, Vec<Bytes>, HeaderMap), Status> {
    let initial = soon(stream.headers()).await?;
    let mut messages = Vec::new();
    while let Some(message) = soon(stream.message()).await? {
        messages.push(message);
    }
    Ok((initial, messages, stream.take_trailers().expect("it has ended well")))
}

const UNARY: &str = "/test.Echo/Echo";

#[tokio::test(start_paused = true)]
async fn unary_call_gets_a_response() {
    let calls = local(&Echo::default());
    let sent = head_of(&[("x-echo", "1"), ("x-trailer", "2")]);
    for message in ["x", "yield", ""] {
        let response = soon(calls.call_unary(UNARY, &sent, Bytes::from_static(message.as_bytes()))).await;
        let response = response.expect("a response");
        assert_eq!(response.message, message);
        assert_eq!(
            (response.metadata, response.trailers),
            (fields(&[("x-echo", "1")]), fields(&[("x-trailer", "2")]))
        );
    }
    let method = calls.methods().into_iter().find(|method| &**method.name() == "test.Echo/Echo");
    let response = calls.call_method(&method.expect("it is listed"), &head(), Bytes::from_static(b"y"));
    assert_eq!(soon(response).await.expect("a response").message, "y");
    let names: Vec<_> = calls.methods().iter().map(|method| method.name().to_string()).collect();
    assert_eq!(names, ["Chat", "Count", "Early", "Echo", "Repeat"].map(|name| format!("test.Echo/{name}")));
}

#[tokio::test(start_paused = true)]
async fn streams_get_responses() {
    let calls = local(&Echo::default());
    let check = async |method: &str, messages: &[&'static str], expected: &[&str]| {
        let sent = head_of(&[("x-echo", "1"), ("x-trailer", "2")]);
        let stream = calls.call_stream(&format!("/test.Echo/{method}"), sent, requests(messages));
        let (initial, responses, trailing) = collect(stream).await.expect("it ends well");
        assert_eq!(responses, expected, "{method}");
        assert_eq!(
            (initial, trailing),
            (fields(&[("x-echo", "1")]), fields(&[("x-trailer", "2")])),
            "{method}"
        );
    };
    check("Chat", &["a", "", "b"], &["a", "", "b"]).await;
    check("Count", &["a", "bc"], &["2 3"]).await;
    check("Repeat", &["2 1"], &["\x07", "\x07"]).await;
    // A unary method can be called as a stream, too.
    check("Echo", &["a"], &["a"]).await;
    check("Echo", &["yield"], &["yield"]).await;
}

/// Both ways of calling work with all method types, if the number of messages fits.
#[tokio::test(start_paused = true)]
async fn wrong_number_of_messages_fails() {
    let calls = local(&Echo::default());
    let one = soon(calls.call_unary("/test.Echo/Count", &head(), Bytes::from_static(b"abc"))).await;
    assert_eq!(one.expect("a response").message, "1 3");
    let one = soon(calls.call_unary("/test.Echo/Repeat", &head(), Bytes::from_static(b"1 1"))).await;
    assert_eq!(one.expect("a response").message, "\x07");
    for order in ["0 1", "2 1"] {
        let status = soon(calls.call_unary("/test.Echo/Repeat", &head(), Bytes::from(order))).await;
        assert_eq!(status.expect_err("not one").code(), Code::Unimplemented, "{order}");
    }
    for messages in [&[][..], &["a", "b"]] {
        let status =
            collect(calls.call_stream(UNARY, head(), requests(messages))).await.expect_err("not one");
        assert_eq!(status.code(), Code::Unimplemented, "{messages:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_end_the_call() {
    let echo = Echo::default();
    let calls = local(&echo);
    let check = async |order: &'static str, expected: Status| {
        let same = |status: Status| {
            assert_eq!((status.code(), status.message()), (expected.code(), expected.message()));
            assert_eq!(status.details(), expected.details());
            assert_eq!(status.metadata().as_ref(), expected.metadata().as_ref());
        };
        same(soon(calls.call_unary(UNARY, &head(), Bytes::from(order))).await.expect_err("it fails"));
        same(collect(calls.call_stream(UNARY, head(), requests(&[order]))).await.expect_err("it fails"));
    };
    check("fail", failure()).await;
    let panicked = || Status::new(Code::Internal, "the handler panicked");
    for order in ["panic", "panic in start", "panic later"] {
        check(order, panicked()).await;
    }
    for (sent, expected) in [
        (("x-order", "fail"), failure()),
        (("x-order", "panic"), panicked()),
        (
            ("x-order", "stop"),
            Status::new(Code::Cancelled, "the handler dropped the call without a response"),
        ),
    ] {
        let status = collect(calls.call_stream("/test.Echo/Early", head_of(&[sent]), requests(&[]))).await;
        let status = status.expect_err("it fails");
        assert_eq!((status.code(), status.message()), (expected.code(), expected.message()));
    }
    let status =
        collect(calls.call_stream("/test.Echo/Chat", head_of(&[("x-panic", "1")]), requests(&[]))).await;
    assert_eq!(status.expect_err("it panics").code(), Code::Internal);
    let nowhere = soon(calls.call_unary("/test.Echo/None", &head(), Bytes::new())).await;
    assert_eq!(nowhere.expect_err("no such method").code(), Code::Unimplemented);
    let nowhere = collect(calls.call_stream("/test.Echo/None", head(), requests(&[]))).await;
    assert_eq!(nowhere.expect_err("no such method").code(), Code::Unimplemented);
}

#[tokio::test(start_paused = true)]
async fn sizes_are_limited() {
    let check = async |set: fn(&mut ServiceOptions)| {
        let mut options = ServiceOptions::default();
        set(&mut options);
        let calls = local(&Echo { options, ..Echo::default() });
        for (order, expected) in [("12345", None), ("123456", Some(Code::ResourceExhausted))] {
            let unary = soon(calls.call_unary(UNARY, &head(), Bytes::from(order))).await;
            assert_eq!(unary.map(drop).map_err(|status| status.code()).err(), expected, "{order}");
            for method in ["Echo", "Chat"] {
                let path = format!("/test.Echo/{method}");
                let stream = collect(calls.call_stream(&path, head(), requests(&[order]))).await;
                assert_eq!(
                    stream.map(drop).map_err(|status| status.code()).err(),
                    expected,
                    "{method} {order}"
                );
            }
        }
    };
    check(|options| options.max_decoding_message_size = 5).await;
    check(|options| options.max_encoding_message_size = 5).await;
}

#[tokio::test(start_paused = true)]
async fn deadlines_fire() {
    let echo = Echo::default();
    let calls = local(&echo);
    let check = |status: Status, started: Instant| {
        assert_eq!(
            (status.code(), started.elapsed().as_millis()),
            (Code::DeadlineExceeded, 500),
            "{status:?}"
        );
    };
    let short = || head_within(Duration::from_millis(500));
    let started = Instant::now();
    let late = soon(calls.call_unary(UNARY, &short(), Bytes::from_static(b"sleep"))).await;
    check(late.expect_err("it sleeps"), started);
    let started = Instant::now();
    check(
        collect(calls.call_stream(UNARY, short(), requests(&["sleep"]))).await.expect_err("it sleeps"),
        started,
    );
    assert_eq!(echo.cancelled(), 2);
    let (sender, silent) = mpsc::unbounded_channel();
    let started = Instant::now();
    let late = collect(calls.call_stream(UNARY, short(), Requests(silent))).await.expect_err("nothing comes");
    assert!(late.message().contains("the request was not complete"), "{late:?}");
    check(late, started);
    drop(sender);
    let (sender, silent) = mpsc::unbounded_channel();
    let started = Instant::now();
    let late = collect(calls.call_stream("/test.Echo/Chat", short(), Requests(silent))).await;
    check(late.expect_err("nothing comes"), started);
    assert!(sender.is_closed(), "nobody reads");
    assert_eq!(echo.cancelled(), 3);
}

/// Dropping a call or its responses cancels the handler.
#[tokio::test(start_paused = true)]
async fn dropped_call_ends_its_handler() {
    let echo = Echo::default();
    let calls = local(&echo);
    let call = tokio::spawn(calls.call_unary(UNARY, &head(), Bytes::from_static(b"sleep")));
    sleep(Duration::from_secs(1)).await;
    call.abort();
    until(|| echo.cancelled() == 1).await;
    let (sender, open) = mpsc::unbounded_channel();
    let mut stream = calls.call_stream("/test.Echo/Chat", head(), Requests(open));
    sender.send(Ok(Bytes::from_static(b"a"))).expect("open");
    soon(stream.headers()).await.expect("headers");
    assert_eq!(soon(stream.message()).await.expect("a message").expect("one"), "a");
    assert_eq!((echo.cancelled(), sender.is_closed()), (1, false));
    drop(stream);
    assert_eq!((echo.cancelled(), sender.is_closed()), (2, true));
}

/// Requests and responses alternate; the handler reads an error among the requests.
#[tokio::test(start_paused = true)]
async fn bidi_messages_alternate() {
    let calls = local(&Echo::default());
    let (sender, open) = mpsc::unbounded_channel();
    let mut stream = calls.call_stream("/test.Echo/Chat", head(), Requests(open));
    soon(stream.headers()).await.expect("headers");
    for len in [0, 1, 5000, 100_000] {
        let message = Bytes::from(vec![len as u8; len]);
        sender.send(Ok(message.clone())).expect("open");
        assert!(soon(stream.message()).await.expect("a message") == Some(message), "{len}");
    }
    sender.send(Err(Status::new(Code::DataLoss, "broken"))).expect("open");
    let status = soon(stream.message()).await.expect_err("they are broken");
    assert_eq!((status.code(), status.message()), (Code::DataLoss, "broken"));
    assert_eq!(soon(stream.message()).await.expect("it said so already"), None);
    let broken = {
        let (sender, open) = mpsc::unbounded_channel();
        sender.send(Err(Status::new(Code::DataLoss, "broken"))).expect("open");
        Requests(open)
    };
    let status = collect(calls.call_stream(UNARY, head(), broken)).await.expect_err("it is broken");
    assert_eq!(status.code(), Code::DataLoss);
}

/// Endless messages, counted as they are taken.
struct Endless(Arc<AtomicUsize>);

const MESSAGE: &[u8] = &[1; 1000];

impl Stream for Endless {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Bytes::from_static(MESSAGE))))
    }
}

/// A handler runs at most 64 KiB ahead of the reader of its responses, and continues when they are read.
#[tokio::test(start_paused = true)]
async fn responses_wait_for_their_reader() {
    let taken = Arc::new(AtomicUsize::new(0));
    let requests = Endless(Arc::clone(&taken));
    let mut stream = local(&Echo::default()).call_stream("/test.Echo/Chat", head(), requests);
    soon(stream.headers()).await.expect("headers");
    for round in 1..=5 {
        let before = taken.load(Ordering::SeqCst);
        // A message counts its bytes and some overhead.
        for _ in 0..63 {
            assert_eq!(soon(stream.message()).await.expect("a message").expect("endless"), MESSAGE);
        }
        let ahead = taken.load(Ordering::SeqCst) - 63 * round;
        assert!((1..=66).contains(&ahead), "{ahead} ahead, {before} before");
    }
}
