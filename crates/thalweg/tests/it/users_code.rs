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
fn unless_stuck<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
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
fn look_at_everything() {
    let lanes = inventory::channels().into_iter().flat_map(|channel| channel.lanes);
    let of_channels = lanes.flat_map(|lane| lane.sockets);
    let of_servers = inventory::servers().into_iter().flat_map(|server| server.sockets);
    for id in of_channels.chain(of_servers) {
        inventory::socket(id);
    }
}

/// Side effect of a message's code: starts a call on the same channel and cancels it.
#[derive(Clone)]
struct Meddler {
    channel: Channel,
    times: Arc<AtomicUsize>,
}

impl Meddler {
    fn meddle(&self) {
        let channel = self.channel.clone();
        let mut call = Box::pin(async move { echo(&channel, raw("on the side")).await.is_ok() });
        poll_once(call.as_mut());
        self.times.fetch_add(1, Ordering::SeqCst);
    }
}

/// A buffer that meddles when it is dropped.
struct Owner {
    bytes: Vec<u8>,
    meddler: Meddler,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.meddler.meddle();
    }
}

fn message(len: usize, meddler: &Meddler) -> Raw {
    Raw(Bytes::from_owner(Owner { bytes: vec![7; len], meddler: meddler.clone() }))
}

#[test]
fn a_buffer_may_call_the_channel_when_it_is_dropped() {
    unless_stuck(buffers_that_call);
}

async fn buffers_that_call() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let meddler = Meddler { channel: channel.clone(), times: Arc::default() };
    // Copied, chained, and larger than the windows.
    for len in [1, 5_000, 100_000, 3 << 20] {
        soon(echo(&channel, message(len, &meddler))).await.expect("an echo");
    }
    let done = Arc::clone(&meddler.times);
    until(|| done.load(Ordering::SeqCst) == 4).await;
    // A call that is cancelled while most of its message is queued.
    let options = CallOptions::default();
    let big = message(3 << 20, &meddler);
    let mut call = Box::pin(channel.unary::<_, Raw>(&ECHO, Request::new(big), &options));
    assert!(poll_once(call.as_mut()).is_none());
    drop(call);
    let done = Arc::clone(&meddler.times);
    until(|| done.load(Ordering::SeqCst) == 5).await;
    soon(echo(&channel, raw("still here"))).await.expect("an echo");
}

/// A message that meddles when it is encoded.
struct Nosy(Meddler);

impl Message for Nosy {
    fn encoded_len(&self) -> usize {
        self.0.meddle();
        1
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.meddle();
        out.push(7);
    }

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Err(DecodeError::new("it is only sent"))
    }
}

#[test]
fn a_message_may_call_the_channel_when_it_is_encoded() {
    unless_stuck(messages_that_call);
}

async fn messages_that_call() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let meddler = Meddler { channel: channel.clone(), times: Arc::default() };
    let request = Request::new(Nosy(meddler.clone()));
    let options = CallOptions::default();
    let reply = soon(channel.unary::<_, Raw>(&ECHO, request, &options)).await.expect("an echo");
    assert_eq!(&reply.get_ref().0[..], [7]);
    assert!(meddler.times.load(Ordering::SeqCst) >= 2);
}

/// A waker that takes all locks and meddles when it is woken or dropped.
struct Busybody(Meddler);

impl Busybody {
    fn act(&self) {
        look_at_everything();
        self.0.meddle();
    }
}

impl Wake for Busybody {
    fn wake(self: Arc<Self>) {
        self.act();
    }
}

impl Drop for Busybody {
    fn drop(&mut self) {
        self.act();
    }
}

/// Polls a pending future with a unique waker.
fn poll_in_vain<F: Future>(future: Pin<&mut F>, meddler: &Meddler) {
    let waker = Waker::from(Arc::new(Busybody(meddler.clone())));
    assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
}

#[test]
fn a_waker_may_look_at_its_connection_when_another_takes_its_place() {
    unless_stuck(async || {
        let target = serve(Echo::default()).await;
        let channel = connect(&target).await;
        let meddler = Meddler { channel: channel.clone(), times: Arc::default() };
        let check = |times| assert_eq!(meddler.times.load(Ordering::SeqCst), times);

        // The caller of a unary call: its waker is replaced, then the call is cancelled.
        let mut call = Box::pin(echo(&channel, raw("sleep")));
        poll_in_vain(call.as_mut(), &meddler);
        check(0);
        poll_in_vain(call.as_mut(), &meddler);
        check(1);
        drop(call);
        check(2);

        // The reader and the sender of a stream, and the waiter for its headers.
        let (messages, queue) = tokio::sync::mpsc::unbounded_channel();
        let mut opening = Box::pin(chat(&channel, Receiver(queue)));
        poll_in_vain(opening.as_mut(), &meddler);
        poll_in_vain(opening.as_mut(), &meddler);
        let mut replies = soon(opening).await.expect("a stream");
        let before = meddler.times.load(Ordering::SeqCst);
        let mut reply = Box::pin(replies.message());
        poll_in_vain(reply.as_mut(), &meddler);
        poll_in_vain(reply.as_mut(), &meddler);
        check(before + 1);
        messages.send(raw("at last")).expect("a stream");
        assert_eq!(soon(reply).await.expect("a message"), Some(raw("at last")));
        check(before + 2);
        drop(replies);
    });
}

#[test]
fn a_waker_may_look_at_its_channel_when_it_waits_for_a_stream() {
    unless_stuck(async || {
        let target = thalweg::Server::builder().add_service(Echo::default()).max_concurrent_streams(1);
        let target = crate::support::start(target).await;
        let lanes = thalweg::channel::Lanes::fixed(1);
        let channel = Channel::builder(&target).lanes(lanes).connect().await.expect("a server");
        let mut first = Box::pin(echo(&channel, raw("sleep")));
        assert!(poll_once(first.as_mut()).is_none());
        let meddler = Meddler { channel: channel.clone(), times: Arc::default() };
        let mut second = Box::pin(echo(&channel, raw("in turn")));
        for _ in 0..3 {
            poll_in_vain(second.as_mut(), &meddler);
        }
        assert_eq!(meddler.times.load(Ordering::SeqCst), 2);
        drop(first);
        assert_eq!(soon(second).await.expect("an echo"), raw("in turn"));
    });
}

/// Starts a call when it is dropped, and reports its outcome.
struct LastCall(Channel, mpsc::Sender<Option<Status>>);

impl Drop for LastCall {
    fn drop(&mut self) {
        let channel = self.0.clone();
        let mut call = Box::pin(async move { echo(&channel, raw("the last")).await });
        let status = poll_once(call.as_mut()).and_then(Result::err);
        self.1.send(status).expect("the test waits");
    }
}

#[test]
fn a_call_while_its_runtime_shuts_down() {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let target = serve(Echo::default()).await;
            let channel = Channel::builder(&target).connect_lazy().expect("a good target");
            let last = LastCall(channel, tell);
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(last);
            });
            tokio::task::yield_now().await;
        });
    });
    let status = told.recv_timeout(Duration::from_secs(60)).expect("a call that ends");
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
    struct Curious(Arc<AtomicUsize>);

    impl<T> otel::SyncInstrument<T> for Curious {
        fn measure(&self, _: T, _: &[opentelemetry::KeyValue]) {
            look_at_everything();
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl otel::InstrumentProvider for Curious {
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

    impl otel::MeterProvider for Curious {
        fn meter_with_scope(&self, _: opentelemetry::InstrumentationScope) -> otel::Meter {
            otel::Meter::new(Arc::new(self.clone()))
        }
    }

    #[test]
    fn an_instrument_may_look_at_the_connection_that_it_is_told_of() {
        unless_stuck(async || {
            let (at_server, at_client) = (Curious::default(), Curious::default());
            let server = Server::builder().add_service(Echo::default()).metrics(Metrics::new(&at_server));
            let target = crate::support::start(server).await;
            let channel = Channel::builder(&target).lanes(Lanes::fixed(1)).metrics(Metrics::new(&at_client));
            let channel = channel.connect().await.expect("a server");
            let told = |who: &Curious| who.0.load(Ordering::SeqCst);
            // Started, duration, and the bytes in each direction.
            let mut told_of_calls = 0;
            for order in ["echo", "yield", "fail", "panic"] {
                let _ = soon(echo(&channel, raw(order))).await;
                told_of_calls += 4;
                until(|| told(&at_server) == told_of_calls).await;
            }
            let (messages, queue) = tokio::sync::mpsc::unbounded_channel();
            let mut replies = soon(chat(&channel, Receiver(queue))).await.expect("a stream");
            messages.send(raw("one")).expect("a stream");
            assert_eq!(soon(replies.message()).await.expect("a message"), Some(raw("one")));
            // A cancelled call, and an unknown method.
            drop(replies);
            told_of_calls += 4;
            until(|| told(&at_server) == told_of_calls).await;
            let nowhere = thalweg::Method::new("/test.Echo/Nowhere");
            let request = Request::new(raw("?"));
            let _ = soon(channel.unary::<_, Raw>(&nowhere, request, &CallOptions::default())).await;
            told_of_calls += 4;
            until(|| told(&at_server) == told_of_calls).await;
            assert!(told(&at_client) > told_of_calls);
            drop(channel);
        });
    }
}
