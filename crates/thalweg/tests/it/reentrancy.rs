//! User code runs without locks held: it may call the channel that uses it.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::support::{ECHO, Echo, Receiver, chat, connect, echo, poll_once, raw, serve, soon, until};
use thalweg::bytes::Bytes;
use thalweg::{CallOptions, Channel, Code, DecodeError, Message, Raw, Request, Status, inventory};

/// Runs a test on its own thread, and fails if it deadlocks.
fn with_deadlock_timeout<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let (is_over, over) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let thread = std::thread::spawn(move || {
        runtime.block_on(test());
        let _ = is_over.send(());
    });
    match over.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it is stuck: code of the user's runs under a lock"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().expect("the test passes"),
    }
}

/// Takes the locks of all connections of the process and of the lists that hold them.
fn read_all_snapshots() {
    let endpoints = inventory::channels().into_iter().flat_map(|channel| channel.endpoints);
    let lanes = endpoints.flat_map(|endpoint| endpoint.lanes);
    let of_channels = lanes.flat_map(|lane| lane.sockets);
    let of_servers = inventory::servers().into_iter().flat_map(|server| server.sockets);
    for id in of_channels.chain(of_servers) {
        inventory::socket(id);
    }
}

/// Side effect of a message's code: starts a call on the same channel and cancels it.
#[derive(Clone)]
struct ChannelUser {
    channel: Channel,
    times: Arc<AtomicUsize>,
}

impl ChannelUser {
    fn use_channel(&self) {
        let channel = self.channel.clone();
        let mut call = Box::pin(async move { echo(&channel, raw("on the side")).await.is_ok() });
        poll_once(call.as_mut());
        self.times.fetch_add(1, Ordering::SeqCst);
    }
}

/// A buffer that uses the channel when it is dropped.
struct BufferOwner {
    bytes: Vec<u8>,
    user: ChannelUser,
}

impl AsRef<[u8]> for BufferOwner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BufferOwner {
    fn drop(&mut self) {
        self.user.use_channel();
    }
}

fn message(len: usize, user: &ChannelUser) -> Raw {
    Raw(Bytes::from_owner(BufferOwner { bytes: vec![7; len], user: user.clone() }))
}

#[test]
fn buffer_drop_may_call_channel() {
    with_deadlock_timeout(call_from_buffer_drop);
}

async fn call_from_buffer_drop() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let user = ChannelUser { channel: channel.clone(), times: Arc::default() };
    // Copied, chained, and larger than the windows.
    for len in [1, 5_000, 100_000, 3 << 20] {
        soon(echo(&channel, message(len, &user))).await.expect("an echo");
    }
    let done = Arc::clone(&user.times);
    until(|| done.load(Ordering::SeqCst) == 4).await;
    // A call that is cancelled while most of its message is queued.
    let options = CallOptions::default();
    let big = message(3 << 20, &user);
    let mut call = Box::pin(channel.unary::<_, Raw>(&ECHO, Request::new(big), &options));
    assert!(poll_once(call.as_mut()).is_none());
    drop(call);
    let done = Arc::clone(&user.times);
    until(|| done.load(Ordering::SeqCst) == 5).await;
    soon(echo(&channel, raw("still here"))).await.expect("an echo");
}

/// A message that uses the channel when it is encoded.
struct CallingMessage(ChannelUser);

impl Message for CallingMessage {
    fn encoded_len(&self) -> usize {
        self.0.use_channel();
        1
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.use_channel();
        out.push(7);
    }

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Err(DecodeError::new("it is only sent"))
    }
}

#[test]
fn message_encoding_may_call_channel() {
    with_deadlock_timeout(call_from_encoding);
}

async fn call_from_encoding() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let user = ChannelUser { channel: channel.clone(), times: Arc::default() };
    let request = Request::new(CallingMessage(user.clone()));
    let options = CallOptions::default();
    let response = soon(channel.unary::<_, Raw>(&ECHO, request, &options)).await.expect("an echo");
    assert_eq!(&response.get_ref().0[..], [7]);
    assert!(user.times.load(Ordering::SeqCst) >= 2);
}

/// A waker that takes all locks and uses the channel when it is woken or dropped.
struct CallingWaker(ChannelUser);

impl CallingWaker {
    fn act(&self) {
        read_all_snapshots();
        self.0.use_channel();
    }
}

impl Wake for CallingWaker {
    fn wake(self: Arc<Self>) {
        self.act();
    }
}

impl Drop for CallingWaker {
    fn drop(&mut self) {
        self.act();
    }
}

/// Polls a pending future with a unique waker.
fn poll_pending<F: Future>(future: Pin<&mut F>, user: &ChannelUser) {
    let waker = Waker::from(Arc::new(CallingWaker(user.clone())));
    assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
}

#[test]
fn replaced_waker_may_use_connection() {
    with_deadlock_timeout(async || {
        let target = serve(Echo::default()).await;
        let channel = connect(&target).await;
        let user = ChannelUser { channel: channel.clone(), times: Arc::default() };
        let check = |times| assert_eq!(user.times.load(Ordering::SeqCst), times);

        // The caller of a unary call: its waker is replaced, then the call is cancelled.
        let mut call = Box::pin(echo(&channel, raw("sleep")));
        poll_pending(call.as_mut(), &user);
        check(0);
        poll_pending(call.as_mut(), &user);
        check(1);
        drop(call);
        check(2);

        // The reader and the sender of a stream, and the waiter for its headers.
        let (messages, queue) = tokio::sync::mpsc::unbounded_channel();
        let mut opening = Box::pin(chat(&channel, Receiver(queue)));
        poll_pending(opening.as_mut(), &user);
        poll_pending(opening.as_mut(), &user);
        let mut responses = soon(opening).await.expect("a stream");
        let before = user.times.load(Ordering::SeqCst);
        let mut response = Box::pin(responses.message());
        poll_pending(response.as_mut(), &user);
        poll_pending(response.as_mut(), &user);
        check(before + 1);
        messages.send(raw("at last")).expect("a stream");
        assert_eq!(soon(response).await.expect("a message"), Some(raw("at last")));
        check(before + 2);
        drop(responses);
    });
}

#[test]
fn waker_of_queued_call_may_use_channel() {
    with_deadlock_timeout(async || {
        let target = thalweg::Server::builder().add_service(Echo::default()).max_concurrent_streams(1);
        let target = crate::support::start(target).await;
        let lanes = thalweg::channel::Lanes::fixed(1);
        let channel = Channel::builder(&target).lanes(lanes).connect().await.expect("a server");
        let mut first = Box::pin(echo(&channel, raw("sleep")));
        assert!(poll_once(first.as_mut()).is_none());
        let user = ChannelUser { channel: channel.clone(), times: Arc::default() };
        let mut second = Box::pin(echo(&channel, raw("in turn")));
        for _ in 0..3 {
            poll_pending(second.as_mut(), &user);
        }
        assert_eq!(user.times.load(Ordering::SeqCst), 2);
        drop(first);
        assert_eq!(soon(second).await.expect("an echo"), raw("in turn"));
    });
}

/// Starts a call when it is dropped, and reports its outcome.
struct CallOnDrop(Channel, mpsc::Sender<Option<Status>>);

impl Drop for CallOnDrop {
    fn drop(&mut self) {
        let channel = self.0.clone();
        let mut call = Box::pin(async move { echo(&channel, raw("the last")).await });
        let status = poll_once(call.as_mut()).and_then(Result::err);
        self.1.send(status).expect("the test waits");
    }
}

#[test]
fn call_during_runtime_shutdown_ends() {
    let (result_sender, measured) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let target = serve(Echo::default()).await;
            let channel = Channel::builder(&target).connect_lazy().expect("a good target");
            let last = CallOnDrop(channel, result_sender);
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(last);
            });
            tokio::task::yield_now().await;
        });
    });
    let status = measured.recv_timeout(Duration::from_secs(60)).expect("a call that ends");
    let status = status.expect("no runtime to connect on");
    assert_eq!(status.code(), Code::Unavailable);
    let message = status.message();
    assert!(message.starts_with("failed to connect: the runtime of the call is shutting down"), "{message}");
}

#[cfg(feature = "opentelemetry")]
mod instruments {
    use super::*;
    use opentelemetry::metrics as otel;
    use thalweg::channel::Lanes;
    use thalweg::{Metrics, Server};

    /// Instruments that take all locks at every measurement.
    #[derive(Clone, Default)]
    struct CallingInstrument(Arc<AtomicUsize>);

    impl<T> otel::SyncInstrument<T> for CallingInstrument {
        fn measure(&self, _: T, _: &[opentelemetry::KeyValue]) {
            read_all_snapshots();
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl otel::InstrumentProvider for CallingInstrument {
        fn u64_counter(&self, _: otel::InstrumentBuilder<'_, otel::Counter<u64>>) -> otel::Counter<u64> {
            otel::Counter::new(Arc::new(self.clone()))
        }

        fn i64_up_down_counter(
            &self,
            _: otel::InstrumentBuilder<'_, otel::UpDownCounter<i64>>,
        ) -> otel::UpDownCounter<i64> {
            otel::UpDownCounter::new(Arc::new(self.clone()))
        }

        fn f64_histogram(&self, _: otel::HistogramBuilder<'_, otel::Histogram<f64>>) -> otel::Histogram<f64> {
            otel::Histogram::new(Arc::new(self.clone()))
        }

        fn u64_histogram(&self, _: otel::HistogramBuilder<'_, otel::Histogram<u64>>) -> otel::Histogram<u64> {
            otel::Histogram::new(Arc::new(self.clone()))
        }
    }

    impl otel::MeterProvider for CallingInstrument {
        fn meter_with_scope(&self, _: opentelemetry::InstrumentationScope) -> otel::Meter {
            otel::Meter::new(Arc::new(self.clone()))
        }
    }

    #[test]
    fn metric_instrument_may_use_connection() {
        with_deadlock_timeout(async || {
            let (at_server, at_client) = (CallingInstrument::default(), CallingInstrument::default());
            let server = Server::builder().add_service(Echo::default()).metrics(Metrics::new(&at_server));
            let target = crate::support::start(server).await;
            let channel = Channel::builder(&target).lanes(Lanes::fixed(1)).metrics(Metrics::new(&at_client));
            let channel = channel.connect().await.expect("a server");
            let measured = |name: &CallingInstrument| name.0.load(Ordering::SeqCst);
            // Started, duration, and the bytes in each direction.
            let mut count_after_calls = 0;
            for order in ["echo", "yield", "fail", "panic"] {
                let _ = soon(echo(&channel, raw(order))).await;
                count_after_calls += 4;
                until(|| measured(&at_server) == count_after_calls).await;
            }
            let (messages, queue) = tokio::sync::mpsc::unbounded_channel();
            let mut responses = soon(chat(&channel, Receiver(queue))).await.expect("a stream");
            messages.send(raw("one")).expect("a stream");
            assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("one")));
            // A cancelled call, and an unknown method.
            drop(responses);
            count_after_calls += 4;
            until(|| measured(&at_server) == count_after_calls).await;
            let nowhere = thalweg::Method::new("/test.Echo/Nowhere");
            let request = Request::new(raw("?"));
            let _ = soon(channel.unary::<_, Raw>(&nowhere, request, &CallOptions::default())).await;
            count_after_calls += 4;
            until(|| measured(&at_server) == count_after_calls).await;
            assert!(measured(&at_client) > count_after_calls);
            drop(channel);
        });
    }
}
