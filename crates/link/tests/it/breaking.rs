//! Ends, resets, stalls, cuts and refused connections.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Linked, MS, PATIENCE, Server, Stream, linked, linked_to, noise, until};
use thalweg_link::{Address, Cut, Link, LinkError, LinkOptions, Loss, StallPlan};

const DELAY: Duration = Duration::from_millis(10);

#[test]
fn a_half_closed_connection_goes_on_in_the_other_direction() {
    let Linked { mut client, mut server, link, listener: _listener } = linked(|options| options.delay(DELAY));
    let began = Instant::now();
    client.write_all(b"all I have").unwrap();
    client.finish();
    assert_eq!(server.rest(), b"all I have");
    assert!(began.elapsed() >= DELAY, "the end travels, too");
    assert_eq!(link.stats().connections.open, 1);
    for _ in 0..3 {
        server.write_all(b"but I").unwrap();
        assert_eq!(client.take(5), b"but I");
    }
    server.finish();
    assert_eq!(client.rest(), b"");
    let stats = until(&link, "both have ended", |stats| stats.connections.ended == 1);
    assert_eq!((stats.connections.open, stats.connections.reset), (0, 0));
}

#[test]
fn a_reset_of_one_side_is_one_of_the_other() {
    let Linked { client, mut server, link, listener: _listener } = linked(|options| options.delay(DELAY));
    let began = Instant::now();
    client.reset();
    assert!(server.is_reset());
    assert!(began.elapsed() >= DELAY, "it travels, too");
    until(&link, "it is counted", |stats| stats.connections.reset == 1);

    let Linked { mut client, server, link, listener: _listener } = linked(|options| options);
    server.reset();
    assert!(client.is_reset());
    until(&link, "it is counted", |stats| stats.connections.reset == 1 && stats.connections.open == 0);
}

#[test]
fn a_reset_comes_behind_the_bytes_before_it() {
    let Linked { mut client, mut server, link: _link, listener: _listener } =
        linked(|options| options.delay(DELAY));
    client.write_all(b"last words").unwrap();
    // On a reset, the kernel drops bytes that have not left yet.
    thread::sleep(5 * MS);
    client.reset();
    assert_eq!(server.take(10), b"last words");
    assert!(server.is_reset());
}

#[test]
fn a_sender_hears_that_nobody_is_there_to_read() {
    let Linked { mut client, server, link, listener: _listener } = linked(|options| options.delay(MS));
    drop(server);
    let began = Instant::now();
    while client.write_all(&[0; 1000]).is_ok() {
        assert!(began.elapsed() < PATIENCE, "it writes and writes");
        thread::sleep(MS);
    }
    until(&link, "it is gone", |stats| stats.connections.open == 0);
}

#[test]
fn a_reset_does_not_wait_for_a_receiver_that_does_not_read() {
    let Linked { mut client, server: _server, link, listener: _listener } =
        linked(|options| options.buffer(10_000));
    client.set_nonblocking(true);
    while client.write(&[0; 10_000]).is_ok() {}
    client.reset();
    until(&link, "it is reset", |stats| stats.connections.reset == 1 && stats.connections.open == 0);
}

#[test]
fn nobody_is_at_the_other_end() {
    // A port that was free a moment ago.
    let to = Server::tcp().address();
    let options = LinkOptions::new("127.0.0.1:0".parse().unwrap(), to.clone()).delay(DELAY);
    let link = Link::start(options).unwrap();
    let began = Instant::now();
    let mut client = Stream::connect(link.address()).unwrap();
    assert!(client.is_reset());
    assert!(began.elapsed() >= 2 * DELAY, "a refusal takes a round trip");
    let stats = until(&link, "it is counted", |stats| stats.connections.open == 0);
    assert_eq!((stats.connections.failed, stats.connections.reset), (1, 0));
    let error = stats.last_error.unwrap();
    assert!(error.contains(&to.to_string()) && error.contains("refused"), "{error}");
}

#[test]
fn a_cut_is_a_reset_for_both() {
    let Linked { mut client, mut server, link, listener } = linked(|options| options);
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
fn a_silent_cut_leaves_both_half_open() {
    let Linked { mut client, mut server, link, listener: _listener } = linked(|options| options.delay(MS));
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
    until(&link, "nobody is kept waiting any more", |stats| stats.connections.open == 0);
}

#[test]
fn a_stall_loses_nothing() {
    let Linked { mut client, mut server, link, listener } = linked(|options| options.delay(MS));
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
    assert!(server.rest() == up && client.take(50_000) == down);
    assert_eq!(listener.accept().take(4), b"late");
    assert!(!link.stats().stalled);
}

#[test]
fn a_stall_ends_by_itself() {
    let Linked { mut client, mut server, link, listener: _listener } = linked(|options| options);
    let began = Instant::now();
    link.stall_for(50 * MS);
    client.write_all(b"hello").unwrap();
    assert_eq!(server.take(5), b"hello");
    assert!(began.elapsed() >= 50 * MS);
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
fn stalls_come_as_planned() {
    let plan: StallPlan = "for=30ms,every=60ms".parse().unwrap();
    let began = Instant::now();
    let Linked { mut client, mut server, link: _link, listener: _listener } =
        linked(|options| options.stall(plan));
    let mut longest = Duration::ZERO;
    while began.elapsed() < 300 * MS || longest < 20 * MS {
        assert!(began.elapsed() < PATIENCE, "there was no stall");
        let sent = Instant::now();
        client.write_all(b"ping").unwrap();
        server.take(4);
        longest = longest.max(sent.elapsed());
    }
}

#[test]
fn connections_are_lost_as_planned() {
    let lost = |loss: &str| {
        let loss: Loss = loss.parse().unwrap();
        let began = Instant::now();
        let Linked { mut client, mut server, link, listener: _listener } =
            linked(|options| options.loss_of_connection(loss));
        assert!(client.is_reset() && server.is_reset());
        assert_eq!(link.stats().connections.cut, 1);
        began.elapsed()
    };
    assert!(lost("after=50ms") >= 50 * MS);
    lost("every=10ms");
}

#[test]
fn a_connection_is_lost_after_so_many_bytes() {
    let loss: Loss = "bytes=1000".parse().unwrap();
    let Linked { mut client, mut server, link, listener: _listener } =
        linked(|options| options.loss_of_connection(loss));
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
fn a_closed_door() {
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
fn a_link_changes_while_it_runs() {
    let Linked { mut client, mut server, link, listener: _listener } = linked(|options| options);
    let mut takes = || {
        let sent = Instant::now();
        client.write_all(&[7; 10_000]).unwrap();
        server.take(10_000);
        sent.elapsed()
    };
    takes();
    link.set_delay(DELAY);
    assert!(takes() >= DELAY);
    link.set_delay(Duration::ZERO);
    link.set_rate("1MB/s".parse().ok());
    assert!(takes() >= 10 * MS, "10 kB at 1 MB/s");
    link.set_rate(None);
    takes();
    let stats = link.stats();
    assert_eq!((stats.delay_ns, stats.rate_bytes_per_s, stats.up.bytes), (0, None, 40_000));
}

#[test]
fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listen = || Address::Unix(path.clone());
    let linked = linked_to(Server::tcp(), listen(), |options| options);
    let taken = Link::start(LinkOptions::new(listen(), linked.listener.address())).unwrap_err();
    assert!(matches!(taken, LinkError::Listen { .. }), "{taken:?}");
    assert!(taken.to_string().contains(path.to_str().unwrap()), "{taken}");
}

#[test]
fn what_cannot_be() {
    let start = |listen: &str, to: &str, change: fn(LinkOptions) -> LinkOptions| {
        let options = LinkOptions::new(listen.parse().unwrap(), to.parse().unwrap());
        Link::start(change(options)).unwrap_err().to_string()
    };
    let error = start("192.0.2.1:0", "127.0.0.1:1", |options| options);
    assert!(error.starts_with("cannot listen on 192.0.2.1:0: "), "{error}");
    let error = start("127.0.0.1:0", "no such host:1", |options| options);
    assert!(error.starts_with("cannot resolve no such host:1: "), "{error}");
    let error = start("127.0.0.1:0", "127.0.0.1:1", |options| options.delay(Duration::MAX));
    assert_eq!(error, "the delay is longer than a year");
}
