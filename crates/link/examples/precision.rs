//! Measures precision and speed of a link on this machine: `cargo run --release -p thalweg-link --example precision`.
//!
//! Sends a message of 64 bytes back and forth, directly and through links of several delays. The excess over the
//! requested round-trip time is the link's cost. Then measures one-way throughput, directly and through links.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_link::{Link, LinkOptions, Stats};

const MESSAGE: usize = 64;
const MS: f64 = 1e6;

fn main() {
    let spin = std::env::args().nth(1).map_or(Duration::ZERO, |text| {
        Duration::from_micros(text.parse().expect("the argument is µs to spin before something is due"))
    });
    println!(
        "one-way    round trips (µs)                 beyond 2 × delay   lateness of the link (µs)     its thread"
    );
    println!(
        "delay         p50      p99      max            p50     p99      p50     p99     max      CPU   awake"
    );
    round_trips(None, spin);
    for micros in [0, 50, 100, 500, 1000, 5000] {
        round_trips(Some(Duration::from_micros(micros)), spin);
    }
    println!("\none-way delay   bulk, one way   largest amount under way");
    bulk(None, spin);
    for micros in [0, 100, 5000] {
        bulk(Some(Duration::from_micros(micros)), spin);
    }
    println!("\nmessages of 64 bytes on 64 connections, each sent when the last came back");
    for micros in [None, Some(0), Some(100), Some(1000)] {
        many(micros.map(Duration::from_micros), spin);
    }
    idle();
}

/// Starts an echo server, optionally behind a link. Returns the link and the address to connect to.
fn echo(delay: Option<Duration>, spin: Duration) -> (Option<Link>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let mut message = [0; MESSAGE];
                while stream.read_exact(&mut message).is_ok() {
                    stream.write_all(&message).unwrap();
                }
            });
        }
    });
    start_link(server.to_string(), delay, spin)
}

fn start_link(server: String, delay: Option<Duration>, spin: Duration) -> (Option<Link>, String) {
    let Some(delay) = delay else { return (None, server) };
    let options = LinkOptions::new("127.0.0.1:0".parse().unwrap(), server.parse().unwrap());
    let link = Link::start(options.delay(delay).spin(spin)).unwrap();
    let address = link.address().to_string();
    (Some(link), address)
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn name(delay: Option<Duration>) -> String {
    delay.map_or("no link".to_owned(), |delay| format!("{:.2} ms", delay.as_secs_f64() * 1e3))
}

fn round_trips(delay: Option<Duration>, spin: Duration) {
    const TIME: Duration = Duration::from_secs(3);
    let (link, address) = echo(delay, spin);
    let mut stream = connect(&address);
    let mut measure_round_trip = || {
        let mut message = [7; MESSAGE];
        let sent = Instant::now();
        stream.write_all(&message).unwrap();
        stream.read_exact(&mut message).unwrap();
        sent.elapsed()
    };
    (0..100).for_each(|_| _ = measure_round_trip());
    if let Some(link) = &link {
        link.reset_stats();
    }
    let started = Instant::now();
    let mut took = Vec::new();
    while started.elapsed() < TIME {
        took.push(measure_round_trip());
    }
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let requested = 2.0 * delay.unwrap_or_default().as_secs_f64() * 1e6;
    let added =
        |share: f64| if delay.is_some() { format!("{:.1}", at(share) - requested) } else { "-".to_owned() };
    let thread = link.map_or_else(String::new, |link| {
        let Stats { lateness_ns: late, thread, window_ns, .. } = link.stats();
        let micros = |ns: u64| ns as f64 / 1e3;
        format!(
            "{:7.1} {:7.1} {:7.1}  {:5.1} %  {:5.1} %",
            micros(late.p50),
            micros(late.p99),
            micros(late.max),
            100.0 * thread.cpu_ns as f64 / window_ns as f64,
            100.0 * thread.busy_share
        )
    });
    println!(
        "{:9} {:8.1} {:8.1} {:8.1}      {:>9} {:>7}  {thread}",
        name(delay),
        at(0.5),
        at(0.99),
        at(1.0),
        added(0.5),
        added(0.99)
    );
}

fn bulk(delay: Option<Duration>, spin: Duration) {
    const TIME: Duration = Duration::from_secs(3);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (link, address) = start_link(listener.local_addr().unwrap().to_string(), delay, spin);
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 256 << 10];
        let (mut bytes, mut started) = (0_u64, None);
        loop {
            let read = stream.read(&mut buffer).unwrap();
            let started: &mut Instant = started.get_or_insert_with(Instant::now);
            bytes += read as u64;
            if read == 0 {
                return bytes as f64 / started.elapsed().as_secs_f64();
            }
        }
    });
    let mut stream = connect(&address);
    let message = vec![7; 256 << 10];
    let started = Instant::now();
    while started.elapsed() < TIME {
        stream.write_all(&message).unwrap();
    }
    drop(stream);
    let rate = reader.join().unwrap();
    let most = link.map_or_else(
        || "-".to_owned(),
        |link| format!("{:.1} MB", link.stats().up.buffered_bytes_max as f64 / 1e6),
    );
    println!("{:13} {:8.2} GB/s   {most:>10}", name(delay), rate / 1e9);
}

fn many(delay: Option<Duration>, spin: Duration) {
    const CONNECTIONS: usize = 64;
    const TIME: Duration = Duration::from_secs(3);
    let (link, address) = echo(delay, spin);
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(&address)).collect();
    let mut message = [7; MESSAGE];
    let mut rounds = 0;
    let started = Instant::now();
    while started.elapsed() < TIME {
        for stream in &mut streams {
            stream.write_all(&message).unwrap();
        }
        for stream in &mut streams {
            stream.read_exact(&mut message).unwrap();
        }
        rounds += 1;
    }
    let each = started.elapsed().as_secs_f64() / f64::from(rounds);
    let thread = link.map_or_else(String::new, |link| {
        let Stats { up, down, lateness_ns, thread, window_ns, .. } = link.stats();
        format!(
            ", {:.2} µs of the link's processor a chunk; lateness p50 {:.1} µs, p99 {:.1} µs; CPU {:.0} %",
            thread.cpu_ns as f64 / 1e3 / (up.chunks + down.chunks) as f64,
            lateness_ns.p50 as f64 / 1e3,
            lateness_ns.p99 as f64 / 1e3,
            100.0 * thread.cpu_ns as f64 / window_ns as f64
        )
    });
    println!(
        "{:9} {:7.0} messages/s, {:6.2} ms a round{thread}",
        name(delay),
        CONNECTIONS as f64 / each,
        each * 1e3
    );
}

/// Measures the CPU time of an idle link.
fn idle() {
    let (link, address) = echo(Some(Duration::from_millis(1)), Duration::ZERO);
    let link = link.unwrap();
    let _connections: Vec<TcpStream> = (0..10).map(|_| connect(&address)).collect();
    thread::sleep(Duration::from_millis(100));
    link.reset_stats();
    thread::sleep(Duration::from_secs(2));
    let stats = link.stats();
    let (cpu, window) = (stats.thread.cpu_ns as f64 / MS, stats.window_ns as f64 / MS);
    println!("\nidle, 10 connections: {cpu:.3} ms of processor in {window:.0} ms");
}
