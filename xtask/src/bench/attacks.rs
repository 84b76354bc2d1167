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

/// How long an attacker goes on that is not cut.
const ATTACK_S: u64 = 5;
/// The honest client begins so much earlier, and ends so much later.
const HONEST_LEAD: Duration = Duration::from_millis(500);

/// An attack as the example names it, and how many connections take part. Those that hold something are open until the
/// time is over.
const ATTACKS: &[(&str, usize)] = &[
    ("ping", 1),
    ("settings", 1),
    ("settings-acks", 1),
    ("never-acks", 1),
    ("priority", 1),
    ("unknown", 1),
    ("window-updates", 1),
    ("empty-data", 1),
    ("tiny-data", 1),
    ("continuation", 1),
    ("rapid-reset", 1),
    ("made-you-reset", 1),
    ("refused", 1),
    ("connect", 1),
    ("blocks-on-reset", 1),
    ("blocks-on-forgotten", 1),
    ("name-copies", 1),
    ("large-lists", 1),
    ("gzip-bomb", 1),
    ("gzip-members", 1),
    ("unfinished", 4),
    ("unread", 4),
    ("half-block", 300),
    ("idle", 300),
    ("slow-request", 50),
    ("slow-reader", 4),
];

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let attacker = rust::lab_example("attack", log)?;
    let load = crate::lab::program(log)?;
    let mut tables = Vec::new();
    for peer in peers {
        let alone = honest_alone(peer, load, log)?;
        let mut rows = Vec::new();
        for &(class, connections) in ATTACKS {
            eprintln!("{}: {class}", peer.name);
            let row = attacked(peer, load, Job::new(&attacker), (class, connections), log);
            rows.push(row.unwrap_or_else(|failure| {
                let mut row = vec![class.to_owned(), failure.to_string()];
                row.resize(HEADS.len(), "–".to_owned());
                row
            }));
        }
        let title = format!(
            "{}: {ATTACK_S} s of each attack; server on core 1, attacker and honest client on core 0. Alone, the \
             honest client's lone calls have a p99 of {alone}:",
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
    (class, connections): (&str, usize),
    log: &Log,
) -> Result<Vec<String>, Failure> {
    let port = free_port()?;
    // As many files as a service has by default, or fewer: connections are not for nothing.
    let serve = peer.serve(port).under("prlimit --nofile=256").under(cores::SERVER);
    let server = Server::start(&serve, port, log)?;
    let before = Used::of(&server)?;
    let beside = honest(load, port, HONEST_LEAD * 2 + Duration::from_secs(ATTACK_S));
    let (text, outcome, peak) = thread::scope(|scope| {
        let honest = scope.spawn(|| beside.text(log));
        thread::sleep(HONEST_LEAD);
        let words = format!("127.0.0.1:{port} {class} --for {ATTACK_S}s --connections {connections}");
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
