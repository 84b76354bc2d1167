//! Ends, resets, stalls, cuts and refused connections.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    LinkedPair, MS, PATIENCE, Server, Stream, connect_pair, connect_pair_to, noise, wait_until,
};
use thalweg_link::{Address, Cut, Link, LinkError, LinkOptions, Loss, StallPlan};

const DELAY: Duration = Duration::from_millis(10);

#[test]
fn half_closed_connection_still_carries_other_direction() {
    let LinkedPair { mut client, mut server, link, listener: _listener } =
        connect_pair(|options| options.delay(DELAY));
    let started = Instant::now();
    client.write_all(b"all I have").unwrap();
    client.finish();
    assert_eq!(server.read_rest(), b"all I have");
    assert!(started.elapsed() >= DELAY, "the end travels, too");
    assert_eq!(link.stats().connections.open, 1);
    for _ in 0..3 {
        server.write_all(b"but I").unwrap();
        assert_eq!(client.take(5), b"but I");
    }
    server.finish();
    assert_eq!(client.read_rest(), b"");
    let stats = wait_until(&link, "both have ended", |stats| stats.connections.ended == 1);
    assert_eq!((stats.connections.open, stats.connections.reset), (0, 0));
}

#[test]
fn reset_is_forwarded_to_other_side() {
    let LinkedPair { client, mut server, link, listener: _listener } =
        connect_pair(|options| options.delay(DELAY));
    let started = Instant::now();
    client.reset();
    assert!(server.is_reset());
    assert!(started.elapsed() >= DELAY, "it travels, too");
    wait_until(&link, "it is counted", |stats| stats.connections.reset == 1);

    let LinkedPair { mut client, server, link, listener: _listener } = connect_pair(|options| options);
    server.reset();
    assert!(client.is_reset());
    wait_until(&link, "it is counted", |stats| stats.connections.reset == 1 && stats.connections.open == 0);
}

#[test]
fn reset_arrives_after_preceding_bytes() {
    let LinkedPair { mut client, mut server, link: _link, listener: _listener } =
        connect_pair(|options| options.delay(DELAY));
    client.write_all(b"last words").unwrap();
    // On a reset, the kernel drops bytes that have not left yet.
    thread::sleep(5 * MS);
    client.reset();
    assert_eq!(server.take(10), b"last words");
    assert!(server.is_reset());
}

#[test]
fn sender_is_reset_when_receiver_is_gone() {
    let LinkedPair { mut client, server, link, listener: _listener } =
        connect_pair(|options| options.delay(MS));
    drop(server);
    let started = Instant::now();
    while client.write_all(&[0; 1000]).is_ok() {
        assert!(started.elapsed() < PATIENCE, "it writes and writes");
        thread::sleep(MS);
    }
    wait_until(&link, "it is gone", |stats| stats.connections.open == 0);
}

#[test]
fn reset_overtakes_bytes_of_stalled_receiver() {
    let LinkedPair { mut client, server: _server, link, listener: _listener } =
        connect_pair(|options| options.buffer(10_000));
    client.set_nonblocking(true);
    while client.write(&[0; 10_000]).is_ok() {}
    client.reset();
    wait_until(&link, "it is reset", |stats| stats.connections.reset == 1 && stats.connections.open == 0);
}

#[test]
fn unreachable_server_refuses_connection() {
    // A port that was free a moment ago.
    let to = Server::tcp().address();
    let options = LinkOptions::new("127.0.0.1:0".parse().unwrap(), to.clone()).delay(DELAY);
    let link = Link::start(options).unwrap();
    let started = Instant::now();
    let mut client = Stream::connect(link.address()).unwrap();
    assert!(client.is_reset());
    assert!(started.elapsed() >= 2 * DELAY, "a refusal takes a round trip");
    let stats = wait_until(&link, "it is counted", |stats| stats.connections.open == 0);
    assert_eq!((stats.connections.failed, stats.connections.reset), (1, 0));
    let error = stats.last_error.unwrap();
    assert!(error.contains(&to.to_string()) && error.contains("refused"), "{error}");
}

#[test]
fn cut_resets_both_sides() {
    let LinkedPair { mut client, mut server, link, listener } = connect_pair(|options| options);
    client.write_all(b"hello").unwrap();
    server.take(5);
    let mut second = Stream::connect(link.address()).unwrap();
    let mut accepted = listener.accept();
    assert_eq!(link.cut(Cut::Reset), 2);
    assert!(client.is_reset() && server.is_reset() && second.is_reset() && accepted.is_reset());
    let stats = link.stats();
    assert_eq!((stats.connections.cut, stats.connections.open, stats.connections.reset), (2, 0, 0));
    // The link itself still works.
    let _third = Stream::connect(link.address()).unwrap();
    listener.accept();
}

#[test]
fn silent_cut_leaves_both_sides_half_open() {
    let LinkedPair { mut client, mut server, link, listener: _listener } =
        connect_pair(|options| options.delay(MS));
    assert_eq!(link.cut(Cut::Silent), 1);
    assert_eq!(link.cut(Cut::Silent), 0, "it is cut already");
    client.write_all(b"is anybody there?").unwrap();
    server.write_all(b"is anybody there?").unwrap();
    thread::sleep(20 * MS);
    assert!(client.is_quiet() && server.is_quiet());
    let stats = link.stats();
    assert_eq!((stats.connections.cut, stats.connections.open, stats.up.bytes), (1, 1, 0));
    drop(client);
    thread::sleep(20 * MS);
    assert!(server.is_quiet(), "that one side is gone is not told either");
    drop(server);
    wait_until(&link, "nobody is kept waiting any more", |stats| stats.connections.open == 0);
}

#[test]
fn stall_loses_no_bytes() {
    let LinkedPair { mut client, mut server, link, listener } = connect_pair(|options| options.delay(MS));
    client.write_all(b"before").unwrap();
    server.take(6);
    link.stall();
    let (up, down) = (noise(1, 50_000), noise(2, 50_000));
    client.write_all(&up).unwrap();
    server.write_all(&down).unwrap();
    client.finish();
    let mut late = Stream::connect(link.address()).unwrap();
    late.write_all(b"late").unwrap();
    thread::sleep(20 * MS);
    assert!(client.is_quiet() && server.is_quiet(), "the connections are open, and nothing comes");
    let stats = link.stats();
    assert!(stats.stalled && stats.connections.open == 1, "{stats:#?}");

    link.resume();
    assert!(server.read_rest() == up && client.take(50_000) == down);
    assert_eq!(listener.accept().take(4), b"late");
    assert!(!link.stats().stalled);
}

#[test]
fn timed_stall_ends_at_its_deadline() {
    let LinkedPair { mut client, mut server, link, listener: _listener } = connect_pair(|options| options);
    let started = Instant::now();
    link.stall_for(50 * MS);
    client.write_all(b"hello").unwrap();
    assert_eq!(server.take(5), b"hello");
    assert!(started.elapsed() >= 50 * MS);
    // The timer of a stall that was resumed early does not end the next stall.
    link.stall_for(50 * MS);
    link.resume();
    link.stall();
    client.write_all(b"again").unwrap();
    thread::sleep(100 * MS);
    assert!(server.is_quiet());
    link.resume();
    assert_eq!(server.take(5), b"again");
}

#[test]
fn planned_stalls_repeat() {
    let plan: StallPlan = "for=30ms,every=60ms".parse().unwrap();
    let started = Instant::now();
    let LinkedPair { mut client, mut server, link: _link, listener: _listener } =
        connect_pair(|options| options.stall(plan));
    let mut longest = Duration::ZERO;
    while started.elapsed() < 300 * MS || longest < 20 * MS {
        assert!(started.elapsed() < PATIENCE, "there was no stall");
        let sent = Instant::now();
        client.write_all(b"ping").unwrap();
        server.take(4);
        longest = longest.max(sent.elapsed());
    }
}

#[test]
fn connections_are_cut_as_planned() {
    let cut_time = |loss: &str| {
        let loss: Loss = loss.parse().unwrap();
        let started = Instant::now();
        let LinkedPair { mut client, mut server, link, listener: _listener } =
            connect_pair(|options| options.loss_of_connection(loss));
        assert!(client.is_reset() && server.is_reset());
        assert_eq!(link.stats().connections.cut, 1);
        started.elapsed()
    };
    assert!(cut_time("after=50ms") >= 50 * MS);
    cut_time("every=10ms");
}

#[test]
fn connection_is_cut_after_byte_limit() {
    let loss: Loss = "bytes=1000".parse().unwrap();
    let LinkedPair { mut client, mut server, link, listener: _listener } =
        connect_pair(|options| options.loss_of_connection(loss));
    client.write_all(&[1; 400]).unwrap();
    server.take(400);
    server.write_all(&[2; 300]).unwrap();
    client.take(300);
    client.write_all(&[3; 500]).unwrap();
    assert_eq!(server.take(300), [3; 300]);
    assert!(server.is_reset() && client.is_reset());
    assert_eq!(link.stats().connections.cut, 1);
}

#[test]
fn refused_link_accepts_again_on_command() {
    let directory = tempfile::tempdir().unwrap();
    let path = || format!("unix:{}", directory.path().join("link").display()).parse().unwrap();
    let name = || format!("unix-abstract:thalweg-link-test-{}", std::process::id()).parse().unwrap();
    let check = |listen: Address| {
        let is_abstract = matches!(listen, Address::UnixAbstract(_));
        let listener = Server::tcp();
        let link = Link::start(LinkOptions::new(listen, listener.address())).unwrap();
        if is_abstract {
            // std connects to abstract names only through another type; only listening again matters here.
            link.refuse();
            link.accept().unwrap();
            return;
        }
        let mut client = Stream::connect(link.address()).unwrap();
        let mut server = listener.accept();
        for _ in 0..3 {
            link.refuse();
            let refused = Stream::connect(link.address()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused, "{}", link.address());
            assert!(link.stats().refusing);
            client.write_all(b"goes on").unwrap();
            assert_eq!(server.take(7), b"goes on");
            link.accept().unwrap();
            link.accept().unwrap();
            Stream::connect(link.address()).unwrap();
            listener.accept();
        }
    };
    check("127.0.0.1:0".parse().unwrap());
    check("[::1]:0".parse().unwrap());
    check(path());
    check(name());
}

#[test]
fn options_change_at_run_time() {
    let LinkedPair { mut client, mut server, link, listener: _listener } = connect_pair(|options| options);
    let mut round_trip_time = || {
        let sent = Instant::now();
        client.write_all(&[7; 10_000]).unwrap();
        server.take(10_000);
        sent.elapsed()
    };
    round_trip_time();
    link.set_delay(DELAY);
    assert!(round_trip_time() >= DELAY);
    link.set_delay(Duration::ZERO);
    link.set_rate("1MB/s".parse().ok());
    assert!(round_trip_time() >= 10 * MS, "10 kB at 1 MB/s");
    link.set_rate(None);
    round_trip_time();
    let stats = link.stats();
    assert_eq!((stats.delay_ns, stats.rate_bytes_per_s, stats.up.bytes), (0, None, 40_000));
}

#[test]
fn only_a_dead_unix_socket_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listen = || Address::Unix(path.clone());
    let connect_pair = connect_pair_to(Server::tcp(), listen(), |options| options);
    let taken = Link::start(LinkOptions::new(listen(), connect_pair.listener.address())).unwrap_err();
    assert!(matches!(taken, LinkError::Listen { .. }), "{taken:?}");
    assert!(taken.to_string().contains(path.to_str().unwrap()), "{taken}");
}

#[test]
fn start_reports_invalid_options() {
    let start = |listen: &str, to: &str, change: fn(LinkOptions) -> LinkOptions| {
        let options = LinkOptions::new(listen.parse().unwrap(), to.parse().unwrap());
        Link::start(change(options)).unwrap_err().to_string()
    };
    let error = start("192.0.2.1:0", "127.0.0.1:1", |options| options);
    assert!(error.starts_with("failed to listen on 192.0.2.1:0: "), "{error}");
    let error = start("127.0.0.1:0", "no such host:1", |options| options);
    assert!(error.starts_with("failed to resolve no such host:1: "), "{error}");
    let error = start("127.0.0.1:0", "127.0.0.1:1", |options| options.delay(Duration::MAX));
    assert_eq!(error, "the delay is longer than a year");
}
