//! Hostile clients of many kinds: what each may do before the server cuts it, what it costs the server, and what an
//! honest client beside it feels.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::cores;
use crate::bench::memory::status_bytes;
use crate::bench::table::{Table, grouped};
use crate::job::{Failure, Job, Log};
use crate::peers::BuiltPeer;
use crate::server::{Server, free_port};
use crate::test::rust;

/// How long an attacker floods that is not cut, and how long one holds something, in seconds.
const FLOOD_S: u64 = 3;
const HOLD_S: u64 = 25;
/// Longer than a request may take to come by our server's default.
const SLOW_S: u64 = 36;
/// The honest client begins so much earlier, and ends so much later.
const HONEST_LEAD: Duration = Duration::from_millis(500);

/// An attack as the example names it, how many connections take part, and for how long. Those that hold something are
/// open until the time is over.
const ATTACKS: &[(&str, usize, u64)] = &[
    ("ping", 1, FLOOD_S),
    ("settings", 1, FLOOD_S),
    ("settings-acks", 1, FLOOD_S),
    ("never-acks", 1, FLOOD_S),
    ("priority", 1, FLOOD_S),
    ("unknown", 1, FLOOD_S),
    ("window-updates", 1, FLOOD_S),
    ("empty-data", 1, FLOOD_S),
    ("tiny-data", 1, FLOOD_S),
    ("continuation", 1, FLOOD_S),
    ("rapid-reset", 1, FLOOD_S),
    ("made-you-reset", 1, FLOOD_S),
    ("refused", 1, FLOOD_S),
    ("connect", 1, FLOOD_S),
    ("blocks-on-reset", 1, FLOOD_S),
    ("blocks-on-forgotten", 1, FLOOD_S),
    ("name-copies", 1, FLOOD_S),
    ("large-lists", 1, FLOOD_S),
    ("gzip-bomb", 1, FLOOD_S),
    ("gzip-members", 1, FLOOD_S),
    ("unfinished", 4, HOLD_S),
    ("unread", 4, HOLD_S),
    ("half-block", 300, HOLD_S),
    ("idle", 300, FLOOD_S),
    ("slow-request", 50, SLOW_S),
    ("slow-reader", 4, HOLD_S),
];

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let attacker = rust::lab_example("attack", log)?;
    let load = crate::lab::program(log)?;
    let mut tables = Vec::new();
    for peer in peers {
        let alone = honest_alone(peer, load, log)?;
        let mut rows = Vec::new();
        for &attack in ATTACKS {
            let (class, ..) = attack;
            eprintln!("{}: {class}", peer.name);
            let row = attacked(peer, load, Job::new(&attacker), attack, log);
            rows.push(row.unwrap_or_else(|failure| {
                let mut row = vec![class.to_owned(), failure.to_string()];
                row.resize(HEADS.len(), "–".to_owned());
                row
            }));
        }
        let title = format!(
            "{}: attacks of {FLOOD_S} s, {HOLD_S} s where something is held, {SLOW_S} s of slow requests; server on \
             core 1, attacker and honest client on core 0. Alone, the honest client's lone calls have a p99 of {alone}",
            peer.version
        );
        tables.push(Table::new(title, &HEADS, rows));
    }
    Ok(tables)
}

const HEADS: [&str; 7] =
    ["attack", "cut", "connections cut", "MB sent", "server's CPU, s", "memory, MB", "honest p99"];

/// The p99 of a client beside nobody.
fn honest_alone(peer: &BuiltPeer, load: &std::path::Path, log: &Log) -> Result<String, Failure> {
    let port = free_port()?;
    let server = Server::start(&peer.serve(port).under(cores::SERVER), port, log)?;
    let text = honest(load, port, Duration::from_secs(2)).text(log)?;
    server.stop()?;
    Ok(p99(&text))
}

/// One call after the other, for so long.
fn honest(load: &std::path::Path, port: u16, duration: Duration) -> Job {
    let words = format!(
        "load 127.0.0.1:{port} -c 1 -z {}ms --warmup 100ms --timeout 30s -O json",
        duration.as_millis()
    );
    Job::new(load).words(&words).under(cores::CLIENT)
}

fn p99(text: &str) -> String {
    let result: Value = serde_json::from_str(text).unwrap_or_default();
    let failed = result["errors"].as_object().is_none_or(|errors| !errors.is_empty());
    match result["latency_ns"]["p99"].as_f64() {
        Some(ns) if !failed => format!("{} µs", grouped(ns / 1e3)),
        Some(ns) => format!("{} µs, and errors", grouped(ns / 1e3)),
        None => "no call succeeded".to_owned(),
    }
}

fn attacked(
    peer: &BuiltPeer,
    load: &std::path::Path,
    attacker: Job,
    (class, connections, seconds): (&str, usize, u64),
    log: &Log,
) -> Result<Vec<String>, Failure> {
    let port = free_port()?;
    // As many files as a service has by default, or fewer: connections are not for nothing.
    let serve = peer.serve(port).under("prlimit --nofile=256").under(cores::SERVER);
    let server = Server::start(&serve, port, log)?;
    let before = Used::of(&server)?;
    let beside = honest(load, port, HONEST_LEAD * 2 + Duration::from_secs(seconds));
    let (text, outcome, peak) = thread::scope(|scope| {
        let honest = scope.spawn(|| beside.text(log));
        thread::sleep(HONEST_LEAD);
        let words = format!("127.0.0.1:{port} {class} --for {seconds}s --connections {connections}");
        let attack = attacker.words(&words).under("nice -n 19").under(cores::CLIENT);
        let outcome = attack.text(log);
        let peak = Used::of(&server);
        let honest =
            honest.join().unwrap_or_else(|_| Err(Failure::failed("the honest client's thread panicked")));
        (honest, outcome, peak)
    });
    let used = peak?;
    let outcome = outcome?;
    let last = outcome.lines().last().unwrap_or_default();
    let found: Value = serde_json::from_str(last)
        .map_err(|why| Failure::failed(format!("the attacker printed no JSON: {why}")))?;
    let stopped = Instant::now();
    // One that was attacked may take its time.
    drop(server);
    log.line(format_args!("the server ended after {:?}", stopped.elapsed()))?;
    let cut = match (found["cut_after_ms"].as_u64(), found["cut_by"].as_str()) {
        (Some(after), Some(how)) => {
            format!("{:.2} s, {}", after as f64 / 1e3, how.split(':').next().unwrap_or(how))
        }
        _ => "no".to_owned(),
    };
    Ok(vec![
        class.to_owned(),
        cut,
        format!("{} of {connections}", found["ended_connections"]),
        format!("{:.1}", found["sent_bytes"].as_f64().unwrap_or_default() / 1e6),
        format!("{:.2}", used.cpu_s - before.cpu_s),
        format!("{:.0}", (used.peak_bytes - before.peak_bytes) / 1e6),
        text.map_or_else(|_| "failed".to_owned(), |text| p99(&text)),
    ])
}

/// What a server has used so far.
struct Used {
    cpu_s: f64,
    peak_bytes: f64,
}

impl Used {
    fn of(server: &Server) -> Result<Self, Failure> {
        let id = server.process_id();
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The command's name, which may hold anything, ends with the last bracket (proc(5)).
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok()).unwrap_or_default();
        // utime and stime, the 14th and 15th fields of all, in hundredths of a second.
        Ok(Self { cpu_s: (ticks(11) + ticks(12)) / 100.0, peak_bytes: status_bytes(server, "VmHWM")? })
    }
}
