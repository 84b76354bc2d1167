//! Checks that all bytes arrive in order, and not too early, over links with various options.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{LinkedPair, MS, Server, Stream, connect_pair, connect_pair_to, noise, wait_until};
use thalweg_link::{Address, Jitter, Link, LinkOptions};

/// Sends noise in both directions at once, in writes of many sizes, and compares what arrives.
fn check_both_ways(connect_pair: LinkedPair, len: usize) {
    let LinkedPair { client, server, link, listener: _listener } = connect_pair;
    let one_way = |mut from: Stream, mut to: Stream, seed: u64| {
        let bytes = noise(seed, len);
        let expected = bytes.clone();
        let writes = thread::spawn(move || {
            let mut read_rest = &bytes[..];
            for size in [1, 7, 100, 4096, 70_000, 300_000, 1].iter().cycle() {
                let (now, later) = read_rest.split_at((*size).min(read_rest.len()));
                from.write_all(now).unwrap();
                read_rest = later;
                if read_rest.is_empty() {
                    break;
                }
            }
            from.finish();
        });
        let reads = thread::spawn(move || {
            assert!(to.read_rest() == expected, "the received bytes differ from those sent");
        });
        [writes, reads]
    };
    let up = one_way(client.try_clone(), server.try_clone(), 1);
    let down = one_way(server, client, 2);
    for thread in up.into_iter().chain(down) {
        thread.join().unwrap();
    }
    let stats = wait_until(&link, "both sides have ended", |stats| stats.connections.ended == 1);
    assert_eq!((stats.up.bytes, stats.down.bytes, stats.connections.open), (len as u64, len as u64, 0));
}

#[test]
fn bytes_arrive_in_order_with_any_options() {
    let check = |options: fn(LinkOptions) -> LinkOptions| check_both_ways(connect_pair(options), 3_000_000);
    check(|options| options);
    check(|options| options.delay(MS));
    check(|options| options.delay(3 * MS).jitter(Jitter::Uniform(3 * MS)));
    check(|options| options.delay(MS).jitter(Jitter::Normal(MS)).seed(9));
    check(|options| options.delay(MS).rate("1gbit".parse().ok()));
    check(|options| options.rate("20MB/s".parse().ok()).buffer(10_000));
    check(|options| options.delay(MS / 5).spin(MS / 10));
    check(|options| options.buffer(1000).handshake(false));
}

#[test]
fn tcp_and_unix_sockets_mix() {
    let directory = tempfile::tempdir().unwrap();
    let path: Address = format!("unix:{}", directory.path().join("link").display()).parse().unwrap();
    let tcp = || "127.0.0.1:0".parse().unwrap();
    check_both_ways(connect_pair_to(Server::unix(&directory), path.clone(), |options| options), 3_000_000);
    assert!(!directory.path().join("link").exists(), "the socket's file goes with the link");
    check_both_ways(connect_pair_to(Server::tcp(), path, |options| options.delay(MS)), 3_000_000);
    std::fs::remove_file(directory.path().join("server")).unwrap();
    check_both_ways(connect_pair_to(Server::unix(&directory), tcp(), |options| options.delay(MS)), 3_000_000);
}

#[test]
fn large_transfer_passes_without_delay() {
    check_both_ways(connect_pair(|options| options), 100_000_000);
}

#[test]
fn one_way_time_is_at_least_the_delay() {
    let check = |delay: Duration, least: Duration, jitter: Jitter| {
        let LinkedPair { mut client, mut server, link: _link, listener: _listener } =
            connect_pair(|options| options.delay(delay).jitter(jitter).handshake(false));
        for _ in 0..20 {
            let sent = Instant::now();
            client.write_all(b"there").unwrap();
            assert_eq!(server.take(5), b"there");
            assert!(sent.elapsed() >= least, "{:?} is less than {least:?}", sent.elapsed());
            let sent = Instant::now();
            server.write_all(b"back").unwrap();
            assert_eq!(client.take(4), b"back");
            assert!(sent.elapsed() >= least, "{:?} is less than {least:?}", sent.elapsed());
        }
    };
    check(MS / 10, MS / 10, Jitter::None);
    check(5 * MS, 5 * MS, Jitter::None);
    check(5 * MS, 4 * MS, Jitter::Uniform(MS));
    check(5 * MS, 2 * MS, Jitter::Normal(MS));
}

#[test]
fn opening_takes_a_round_trip() {
    const DELAY: Duration = Duration::from_millis(20);
    let server = Server::tcp();
    let options = LinkOptions::new("127.0.0.1:0".parse().unwrap(), server.address()).delay(DELAY);
    let link = Link::start(options).unwrap();
    let started = Instant::now();
    let mut client = Stream::connect(link.address()).unwrap();
    client.write_all(b"hello").unwrap();
    let mut accepted = server.accept();
    assert!(started.elapsed() >= DELAY, "SYN");
    accepted.write_all(b"hi").unwrap();
    assert_eq!(accepted.take(5), b"hello");
    assert!(started.elapsed() >= 3 * DELAY, "SYN, SYN-ACK, and the first bytes");
    assert_eq!(client.take(2), b"hi");
    assert!(
        started.elapsed() >= 4 * DELAY,
        "the server knows of the connection only after three one-way times"
    );
}

#[test]
fn transfer_is_not_faster_than_the_rate() {
    const BYTES: usize = 2_000_000;
    let check = |connections: usize| {
        let server = Server::tcp();
        let options = LinkOptions::new("127.0.0.1:0".parse().unwrap(), server.address());
        let link = Link::start(options.rate("10MB/s".parse().ok())).unwrap();
        let started = Instant::now();
        let threads: Vec<_> = (0..connections)
            .flat_map(|_| {
                let mut client = Stream::connect(link.address()).unwrap();
                let mut server = server.accept();
                let writes = thread::spawn(move || {
                    client.write_all(&noise(3, BYTES / connections)).unwrap();
                    client.finish();
                });
                [writes, thread::spawn(move || assert_eq!(server.read_rest().len(), BYTES / connections))]
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(
            started.elapsed() >= Duration::from_millis(200),
            "2 MB at 10 MB/s took {:?}",
            started.elapsed()
        );
    };
    check(1);
    check(8);
}

#[test]
fn slow_receiver_blocks_sender() {
    const BUFFER: usize = 100_000;
    let LinkedPair { mut client, mut server, link, listener: _listener } =
        connect_pair(|options| options.delay(MS).buffer(BUFFER));
    client.set_nonblocking(true);
    let message = noise(4, 1 << 20);
    let mut sent = 0_usize;
    // Full only if no write succeeds for a while, because the kernel's own buffers grow.
    let mut full_since: Option<Instant> = None;
    while full_since.is_none_or(|since| since.elapsed() < 100 * MS) {
        if let Ok(written) = client.write(&message[sent % message.len()..]) {
            (sent, full_since) = (sent + written, None);
        } else {
            full_since.get_or_insert_with(Instant::now);
            thread::sleep(MS);
        }
        assert!(sent < 1 << 30, "a gigabyte is under way");
    }
    let stats = link.stats();
    assert!(stats.up.buffered_bytes_max <= BUFFER as u64, "{} are under way", stats.up.buffered_bytes_max);
    assert!(stats.up.bytes < sent as u64, "the sender's own buffers are full");
    // All bytes arrive.
    client.finish();
    let arrived = server.read_rest();
    assert_eq!(arrived.len(), sent);
    assert!(arrived.chunks(message.len()).all(|chunk| *chunk == message[..chunk.len()]));
}

#[test]
fn slow_connection_does_not_block_others() {
    let LinkedPair { mut client, server: slow, link, listener } =
        connect_pair(|options| options.buffer(100_000));
    client.set_nonblocking(true);
    while client.write(&[0; 10_000]).is_ok() {}
    let mut fast = Stream::connect(link.address()).unwrap();
    let mut server = listener.accept();
    for _ in 0..100 {
        fast.write_all(b"ping").unwrap();
        assert_eq!(server.take(4), b"ping");
    }
    drop(slow);
}

#[test]
fn many_connections_work_concurrently() {
    let server = Server::tcp();
    let options = LinkOptions::new("127.0.0.1:0".parse().unwrap(), server.address()).delay(MS);
    let link = Link::start(options).unwrap();
    let mut pairs = Vec::new();
    for index in 0..200_u32 {
        let mut client = Stream::connect(link.address()).unwrap();
        client.write_all(&index.to_be_bytes()).unwrap();
        pairs.push((client, server.accept()));
    }
    // The order of accepting may differ, so each connection identifies itself.
    for (_, server) in &mut pairs {
        let name = server.take(4);
        server.write_all(&name).unwrap();
    }
    for (index, (client, _)) in pairs.iter_mut().enumerate() {
        assert_eq!(client.take(4), (index as u32).to_be_bytes());
    }
    assert_eq!(link.stats().connections.open, 200);
    drop(pairs);
    wait_until(&link, "all are closed", |stats| stats.connections.open == 0);
}

#[test]
fn stats_report_transfers() {
    let LinkedPair { mut client, mut server, link, listener: _listener } =
        connect_pair(|options| options.delay(2 * MS).handshake(false));
    link.reset_stats();
    let started = Instant::now();
    for _ in 0..10 {
        client.write_all(b"ping").unwrap();
        server.take(4);
        thread::sleep(5 * MS);
        server.write_all(b"pong!").unwrap();
        client.take(5);
        thread::sleep(5 * MS);
    }
    let stats = link.stats();
    let took = started.elapsed().as_nanos() as u64;
    assert_eq!((stats.up.bytes, stats.down.bytes), (40, 50));
    assert_eq!((stats.up.chunks, stats.down.chunks, stats.lateness_ns.count), (10, 10, 20));
    // 19 gaps between 20 messages, and one before the first. Each lasts 5 ms, less the link thread's wait for a CPU.
    // Exact times are tested in `observe.rs`; here half is enough.
    assert_eq!((stats.wire.gaps_ns.count, stats.per_connection.gaps_ns.count), (20, 20));
    assert!(stats.wire.idle_ns >= 50_000_000, "{:?}", stats.wire);
    // 20 messages of 2 ms each.
    assert!(stats.wire.idle_ns <= took - 40_000_000, "{:?} of {took} ns", stats.wire);
    assert!(stats.wire.gaps_ns.p50 >= 4_900_000, "{:?}", stats.wire);
    // A single direction is also idle while the other one is busy.
    assert_eq!(stats.up.idle.gaps_ns.count, 10);
    assert!(stats.up.idle.idle_ns >= stats.wire.idle_ns + 10_000_000, "{:?}", stats.up.idle);
    assert!(stats.thread.busy_share < 1.0 && stats.thread.cpu_ns > 0, "{:?}", stats.thread);

    link.reset_stats();
    let stats = link.stats();
    assert_eq!((stats.up.bytes, stats.wire.gaps_ns.count, stats.lateness_ns.count), (0, 0, 0));
    assert_eq!(stats.connections.open, 1);
}
