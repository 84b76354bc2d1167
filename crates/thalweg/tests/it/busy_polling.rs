//! Busy polling: calls work as without it, other tasks of the thread run, and it ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::support::peer::{Peer, REQUEST, envelope};
use crate::support::{COUNT, Echo, REPEAT, chat, echo, items, raw, soon};
use thalweg::{CallOptions, Channel, ListenAddress, Request, Server};
use thalweg_engine::http2::frame::{Flags, Kind, PREFACE, Setting};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::runtime::Builder;
use tokio::task::yield_now;

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(3600);

/// Starts a polling server on `address` and connects a polling channel; with `None` both use the default.
async fn pair(address: &str, busy_poll: impl Into<Option<Duration>>) -> Channel {
    let busy_poll = busy_poll.into();
    let mut server = Server::builder().add_service(Echo::default());
    if let Some(duration) = busy_poll {
        server = server.busy_poll(duration);
    }
    let server = server.bind(&[address.parse().expect("an address")]).await.expect("a free address");
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    let mut channel = Channel::builder(target);
    if let Some(duration) = busy_poll {
        channel = channel.busy_poll(duration);
    }
    channel.connect().await.expect("a server")
}

/// Makes calls of all types, small and large; a large one fills the socket.
async fn call_all_types(channel: &Channel) {
    let options = CallOptions::default();
    for size in [0, 1000, 3_000_000] {
        let sent = raw(vec![size as u8; size]);
        assert!(echo(channel, sent.clone()).await.expect("a response") == sent, "unary of {size}");
        let three = items(vec![sent.clone(), sent.clone(), sent.clone()]);
        let counted: thalweg::Response<thalweg::Raw> =
            channel.client_streaming(&COUNT, Request::new(three), &options).await.expect("a response");
        assert_eq!(*counted.get_ref(), raw(format!("3 {}", 3 * size)), "client stream of {size}");
        let request = Request::new(raw(format!("3 {size}")));
        let repeated = channel.server_streaming(&REPEAT, request, &options).await.expect("a response");
        let mut repeated: thalweg::Streaming<thalweg::Raw> = repeated.into_inner();
        let mut chatted =
            chat(channel, items(vec![sent.clone(), sent.clone(), sent.clone()])).await.expect("one");
        for _ in 0..3 {
            assert_eq!(repeated.message().await.expect("a message").expect("one more").0.len(), size);
            assert!(chatted.message().await.expect("a message").expect("one more") == sent, "bidi of {size}");
        }
        assert!(repeated.message().await.expect("a clean end").is_none());
        assert!(chatted.message().await.expect("a clean end").is_none());
    }
}

#[test]
fn all_call_types_work_on_all_runtimes() {
    let check = |name: &str, runtime: io::Result<tokio::runtime::Runtime>, busy_poll: Option<Duration>| {
        let path = std::env::temp_dir().join(format!("thalweg-busy-{}-{name}.sock", std::process::id()));
        runtime.expect("a runtime").block_on(async {
            for address in ["127.0.0.1:0", &format!("unix:{}", path.display())] {
                let channel = pair(address, busy_poll).await;
                soon(call_all_types(&channel)).await;
            }
        });
    };
    let one = || Builder::new_current_thread().enable_all().build();
    let two = || Builder::new_multi_thread().worker_threads(2).enable_all().build();
    check("one-off", one(), Some(Duration::ZERO));
    check("one-short", one(), Some(Duration::from_micros(50)));
    check("one-long", one(), Some(FOREVER));
    check("one-default", one(), None);
    check("two-off", two(), Some(Duration::ZERO));
    check("two-short", two(), Some(Duration::from_micros(50)));
    check("two-long", two(), Some(FOREVER));
    check("two-default", two(), None);
}

/// The test's runtime has one thread, which polls two connections forever.
#[tokio::test]
async fn polling_does_not_starve_its_thread() {
    let channels = [pair("127.0.0.1:0", FOREVER).await, pair("127.0.0.1:0", FOREVER).await];
    let task = tokio::spawn(async {
        for _ in 0..1000 {
            yield_now().await;
        }
    });
    soon(tokio::time::sleep(Duration::from_millis(20))).await;
    soon(task).await.expect("no panic");
    for channel in &channels {
        echo(channel, raw("after a while")).await.expect("a response");
    }
    // A deadline is a timer of the same thread.
    let mut request = Request::new(raw("sleep"));
    request.set_timeout(Duration::from_millis(20));
    let options = CallOptions::default();
    let outcome = channels[0].unary::<_, thalweg::Raw>(&crate::support::ECHO, request, &options);
    assert_eq!(soon(outcome).await.expect_err("it sleeps").code(), thalweg::Code::DeadlineExceeded);
}

/// Counts reads.
struct Counted {
    io: DuplexStream,
    reads: Arc<AtomicUsize>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Returns a channel that polls an in-memory server that does not, and the channel's read attempts.
async fn counted(busy_poll: Duration) -> (Channel, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&reads);
    let connecting = Channel::builder("memory:1").busy_poll(busy_poll).connector(move || {
        let (client, server) = tokio::io::duplex(64 * 1024);
        tokio::spawn(Server::builder().add_service(Echo::default()).serve_connection(server));
        let reads = Arc::clone(&counter);
        async move { Ok(Counted { io: client, reads }) }
    });
    (connecting.connect().await.expect("a server"), reads)
}

/// Counts the channel's read attempts while this task yields a hundred times; nothing arrives meanwhile.
async fn polls_after_call(reads: &AtomicUsize) -> usize {
    let before = reads.load(Ordering::SeqCst);
    for _ in 0..100 {
        yield_now().await;
    }
    reads.load(Ordering::SeqCst) - before
}

#[tokio::test]
async fn idle_connection_stops_polling_after_busy_poll_time() {
    let (channel, reads) = counted(Duration::from_millis(30)).await;
    for _ in 0..2 {
        echo(&channel, raw("wakes it")).await.expect("a response");
        soon(async { while polls_after_call(&reads).await > 0 {} }).await;
        assert_eq!(polls_after_call(&reads).await, 0, "it sleeps until something comes");
    }
}

#[tokio::test]
async fn idle_connection_polls_every_turn() {
    let (channel, reads) = counted(FOREVER).await;
    echo(&channel, raw("wakes it")).await.expect("a response");
    let tried = polls_after_call(&reads).await;
    assert!(tried >= 90, "{tried} tries in 100 turns");
}

#[tokio::test]
async fn polling_is_off_by_default_for_pipes() {
    let (channel, reads) = counted(Duration::ZERO).await;
    echo(&channel, raw("wakes it")).await.expect("a response");
    // The first yields finish the work that the response left.
    polls_after_call(&reads).await;
    assert_eq!(polls_after_call(&reads).await, 0);
}

/// Counts a server's read attempts after it processed what a test's client sent: SETTINGS and the frames added by
/// `send`.
async fn server_polls(send: impl FnOnce(&mut Peer)) -> usize {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let reads = Arc::new(AtomicUsize::new(0));
    let io = Counted { io: far, reads: Arc::clone(&reads) };
    tokio::spawn(Server::builder().add_service(Echo::default()).serve_connection(io));
    let mut client = Peer::new(near);
    client.out.extend_from_slice(PREFACE);
    client.settings(&[Setting::InitialWindowSize(1 << 30)]).frame(Kind::Settings, Flags::ACK, 0, b"");
    client.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    send(&mut client);
    client.send().await;
    for _ in 0..10 {
        polls_after_call(&reads).await;
    }
    polls_after_call(&reads).await
}

/// More output waits than the socket takes. A task has written some of it: the driver's waker is consumed and must be
/// registered again while output is blocked.
#[tokio::test]
async fn server_sleeps_when_client_does_not_read() {
    let polls = server_polls(|client| {
        let to_repeat = |field: &(_, _)| if field.0 == ":path" { (":path", REPEAT.path()) } else { *field };
        let request: Vec<_> = REQUEST.iter().map(to_repeat).collect();
        client.headers(1, false, &request).message(1, true, b"1000 65536");
    });
    assert_eq!(polls.await, 0, "it looks although nothing moves");
}

/// The rest of the message is read directly into its own buffer.
#[tokio::test]
async fn server_sleeps_while_message_is_incomplete() {
    let polls = server_polls(|client| {
        client.headers(1, false, REQUEST).data(1, true, &envelope(&vec![7; 100_000]));
        client.out.truncate(client.out.len() - 50_000);
    });
    assert_eq!(polls.await, 0, "it looks although nothing moves");
}

/// Consecutive calls between two threads: each side busy-polls for the next and finds it.
#[test]
fn sockets_are_polled_by_default() {
    let (address, received_address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = Server::builder().add_service(Echo::default());
            let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a port");
            address.send(server.local_addresses()[0].to_string()).expect("somebody who asks");
            server.serve().await.expect("it serves");
        });
    });
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let target = received_address.recv().expect("an address");
    let before = thalweg_engine::busy_poll_wasted();
    runtime.block_on(async {
        let channel = Channel::builder(target).connect().await.expect("a server");
        // Whatever the scheduling, some of this many calls follow each other closely.
        for _ in 0..500_000 {
            if thalweg_engine::busy_poll_wasted() > before {
                return;
            }
            soon(echo(&channel, raw("next"))).await.expect("a response");
        }
        panic!("nobody has looked");
    });
}

/// The duration is wall-clock time: with a paused runtime clock, polling still ends.
#[tokio::test(start_paused = true)]
async fn stopped_clock_ends_polling() {
    let (channel, reads) = counted(Duration::from_millis(5)).await;
    echo(&channel, raw("wakes it")).await.expect("a response");
    while polls_after_call(&reads).await > 0 {}
}

#[tokio::test]
async fn all_kinds_of_addresses_are_polled() {
    let name = format!("unix-abstract:thalweg-busy-{}", std::process::id());
    let address: ListenAddress = name.parse().expect("an address");
    let channel = pair(&address.to_string(), Duration::from_millis(1)).await;
    for _ in 0..200 {
        echo(&channel, raw("again")).await.expect("a response");
    }
}
