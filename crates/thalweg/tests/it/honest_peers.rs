//! Heavy but legitimate use: no bound against hostile peers may affect it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{CHAT, COUNT, ECHO, Echo, REPEAT, items, raw, start};
use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Raw, Request, Server};
use thalweg_link::{Link, LinkOptions};
use tokio::net::TcpSocket;
use tokio::time::timeout;

/// Connects with one connection, which must survive all bounds.
async fn one_connection(target: &str) -> Channel {
    Channel::builder(target).lanes(Lanes::fixed(1)).connect().await.expect("connected")
}

/// Connects through a link, which counts connections.
async fn behind_a_link(max_streams: u32) -> (Link, Channel) {
    let server = Server::builder().add_service(Echo::default()).max_concurrent_streams(max_streams);
    let target = start(server).await;
    let listen = "127.0.0.1:0".parse().expect("an address");
    let link = Link::start(LinkOptions::new(listen, target.parse().expect("an address"))).expect("a link");
    let channel = one_connection(&link.address().to_string()).await;
    (link, channel)
}

fn check_not_closed(link: &Link) {
    let connections = link.stats().connections;
    assert_eq!((connections.accepted, connections.reset, connections.failed), (1, 0, 0), "{connections:?}");
}

/// 10,000 calls that are cancelled while their handlers wait, 500 at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_cancels_keep_the_connection() {
    let (link, channel) = behind_a_link(500).await;
    let cancelled = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..500)
        .map(|_| {
            let (channel, cancelled) = (channel.clone(), Arc::clone(&cancelled));
            tokio::spawn(async move {
                for _ in 0..20 {
                    let options = CallOptions::default();
                    let call = channel.unary::<_, Raw>(&ECHO, Request::new(raw("sleep")), &options);
                    match timeout(Duration::from_millis(20), call).await {
                        Err(_) => cancelled.fetch_add(1, Ordering::Relaxed),
                        Ok(outcome) => panic!("it sleeps for an hour, and came to {outcome:?}"),
                    };
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
    assert_eq!(cancelled.load(Ordering::Relaxed), 10_000);
    let response = channel.unary::<_, Raw>(&ECHO, Request::new(raw("x")), &CallOptions::default()).await;
    assert_eq!(
        response.map(|response| response.into_inner().0.len()).map_err(|status| status.code()),
        Ok::<_, Code>(1)
    );
    check_not_closed(&link);
}

/// 512 callers on connections with socket buffers of 8 KiB exchange messages of 100 KB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_socket_buffers_keep_the_connection() {
    let target = start(Server::builder().add_service(Echo::default())).await;
    let address: std::net::SocketAddr = target.parse().expect("an address");
    let connections = Arc::new(AtomicUsize::new(0));
    let mut callers = Vec::new();
    for _ in 0..8 {
        let response = Arc::clone(&connections);
        let channel = Channel::builder(&target).lanes(Lanes::fixed(1)).connector(move || {
            response.fetch_add(1, Ordering::Relaxed);
            async move {
                let socket = TcpSocket::new_v4()?;
                socket.set_send_buffer_size(8 << 10)?;
                socket.set_recv_buffer_size(8 << 10)?;
                socket.connect(address).await
            }
        });
        let channel = channel.connect().await.expect("connected");
        callers.extend((0..64).map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move {
                for _ in 0..3 {
                    let request = Request::new(raw(vec![7; 100_000]));
                    let response = channel.unary::<_, Raw>(&ECHO, request, &CallOptions::default()).await;
                    assert_eq!(response.expect("a response").into_inner().0.len(), 100_000);
                }
            })
        }));
    }
    for caller in callers {
        timeout(Duration::from_secs(60), caller).await.expect("it goes on").expect("no panic");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 8, "some were cut, and made anew");
}

/// One stream in a hundred is not read while the others are busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reader_does_not_cut_the_connection() {
    let (link, channel) = behind_a_link(256).await;
    let options = CallOptions::default();
    let order = |text: &str| Request::new(raw(text));
    let slow = channel.server_streaming::<_, Raw>(&REPEAT, order("200 50000"), &options).await;
    let mut slow = slow.expect("headers").into_inner();
    slow.message().await.expect("no error").expect("the first message");
    let other_streams: Vec<_> = (0..99)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move {
                let options = CallOptions::default();
                let order = Request::new(raw("50 50000"));
                let stream = channel.server_streaming::<_, Raw>(&REPEAT, order, &options).await;
                let mut stream = stream.expect("headers").into_inner();
                let mut count = 0;
                while stream.message().await.expect("no error").is_some() {
                    count += 1;
                }
                count
            })
        })
        .collect();
    for other in other_streams {
        assert_eq!(timeout(Duration::from_secs(60), other).await.expect("it goes on").expect("no panic"), 50);
    }
    // Longer than a once-a-second check takes to find it.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let mut left = 0;
    while slow.message().await.expect("it was not cut").is_some() {
        left += 1;
    }
    assert_eq!(left, 199);
    check_not_closed(&link);
}

/// Large uploads, many more than the budget holds at a time, as single messages and as streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_uploads_keep_the_connection() {
    let (link, channel) = behind_a_link(256).await;
    let calls: Vec<_> = (0..60)
        .map(|number: usize| {
            let channel = channel.clone();
            tokio::spawn(async move {
                let options = CallOptions::default();
                let message = raw(vec![1; 1_500_000]);
                if number.is_multiple_of(3) {
                    let requests = Request::new(items(vec![message; 2]));
                    let response = channel.client_streaming::<_, Raw>(&COUNT, requests, &options).await;
                    assert_eq!(response.expect("a response").into_inner().0, "2 3000000");
                } else if number % 3 == 1 {
                    let requests = Request::new(items(vec![message; 2]));
                    let stream = channel.bidi_streaming::<_, Raw>(&CHAT, requests, &options).await;
                    let mut stream = stream.expect("headers").into_inner();
                    for _ in 0..2 {
                        let message = stream.message().await.expect("no error").expect("a message");
                        assert_eq!(message.0.len(), 1_500_000);
                    }
                } else {
                    let response = channel.unary::<_, Raw>(&ECHO, Request::new(message), &options).await;
                    assert_eq!(response.expect("a response").into_inner().0.len(), 1_500_000);
                }
            })
        })
        .collect();
    for call in calls {
        timeout(Duration::from_secs(60), call).await.expect("it goes on").expect("no panic");
    }
    check_not_closed(&link);
}
