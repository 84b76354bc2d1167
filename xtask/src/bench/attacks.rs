//! Hostile clients of many kinds: what each may do before the server cuts it, what it costs the server, and what an
//! honest client beside it feels.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::cores;
use crate::bench::memory::status_bytes;
use crate::bench::table::{Table, grouped};
use crate::bench::tls;
use crate::job::{Failure, Job, Log};
use crate::peers::BuiltPeer;
use crate::server::{Server, free_port};
use crate::test::rust;

/// How long an attacker floods that is not cut, and how long one holds something for its memory, in seconds.
const FLOOD_S: u64 = 2;
const HOLD_S: u64 = 5;
/// Longer than what takes no answers is borne by our server's default, and what Linux bears of a full socket.
const UNREAD_S: u64 = 24;
/// Longer than a request may take to come by our server's default.
const SLOW_S: u64 = 34;
/// Longer than a header block or a handshake may take by our server's default.
const HALF_S: u64 = 13;
/// What takes longer than this waits more than it works: so many of it run beside each other.
const WAITS_S: u64 = 10;
const TOGETHER: usize = 2;
/// The honest client begins so much earlier, and ends so much later.
const HONEST_LEAD: Duration = Duration::from_millis(300);

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
    ("gzip-small", 1, FLOOD_S),
    ("gzip-streams", 1, FLOOD_S),
    ("gzip-members", 1, FLOOD_S),
    ("unfinished", 4, HOLD_S),
    ("large-heads", 4, HOLD_S),
    ("large-head-calls", 20, FLOOD_S),
    ("idle", 300, FLOOD_S),
    ("unread", 4, UNREAD_S),
    ("half-block", 200, HALF_S),
    ("slow-reader", 4, UNREAD_S),
    ("slow-request", 50, SLOW_S),
];

/// The same, of those that need a server with TLS.
const TLS_ATTACKS: &[(&str, usize, u64)] = &[
    ("tls-silent", 300, HALF_S),
    ("tls-half-hello", 300, HALF_S),
    ("tls-no-finish", 300, HALF_S),
    ("tls-handshakes", 1, FLOOD_S),
    ("tls-garbage", 1, FLOOD_S),
    ("tls-plain", 1, FLOOD_S),
    ("tls-fragments", 1, FLOOD_S),
    ("tls-renegotiation", 1, FLOOD_S),
    ("tls-alerts", 1, FLOOD_S),
    ("tls-key-updates", 1, FLOOD_S),
    ("tls-empty-records", 1, FLOOD_S),
    ("tls-tiny-records", 1, FLOOD_S),
];

/// What large responses are held for that nobody takes, against a server that may hold [`BUDGET`] in all.
const HOARDS: &[(&str, usize, u64)] = &[
    ("unread-http1", 300, HOLD_S),
    ("trickle", 1, UNREAD_S),
    ("trickle-json", 1, UNREAD_S),
    ("tasks", 5, HOLD_S),
    ("tasks-json", 5, HOLD_S),
    ("tls-unread-http1", 300, HOLD_S),
    ("tls-trickle", 1, UNREAD_S),
    ("tls-tasks", 5, HOLD_S),
];

/// How much the server of [`HOARDS`] may hold, and how many files it may open.
const BUDGET: &str = "--max-memory 256MiB";
const BUDGET_FILES: &str = "prlimit --nofile=1024";

type Attack = (&'static str, usize, u64);

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    run_all(peers, ATTACKS.iter().chain(TLS_ATTACKS).copied(), log)
}

/// The attacks on a server's memory.
pub(super) fn run_hoards(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    run_all(peers, HOARDS.iter().copied(), log)
}

/// The attacks of these names.
pub(super) fn run_classes(peers: &[BuiltPeer], classes: &[&str], log: &Log) -> Result<Vec<Table>, Failure> {
    let all = || ATTACKS.iter().chain(TLS_ATTACKS).chain(HOARDS).copied();
    if let Some(unknown) = classes.iter().find(|class| !all().any(|(known, ..)| known == **class)) {
        let known: Vec<&str> = all().map(|(class, ..)| class).collect();
        return Err(Failure::failed(format!("there is no attack `{unknown}`, but {}", known.join(", "))));
    }
    run_all(peers, all().filter(|(class, ..)| classes.contains(class)), log)
}

fn run_all(
    peers: &[BuiltPeer],
    attacks: impl Iterator<Item = Attack>,
    log: &Log,
) -> Result<Vec<Table>, Failure> {
    let attacks: Vec<Attack> = attacks.collect();
    let field = Field {
        attacker: rust::release_example("thalweg-load", "attack", log)?,
        certs: tls::certificates(log)?,
    };
    peers.iter().map(|peer| field.table(peer, &attacks, log)).collect()
}

const HEADS: [&str; 8] =
    ["attack", "cut", "ended", "MB sent", "server's CPU, s", "memory, MB", "peak RSS, MB", "honest p99"];

/// What attacks are made with.
struct Field {
    /// It is the honest client, too.
    attacker: PathBuf,
    certs: PathBuf,
}

impl Field {
    fn table(&self, peer: &BuiltPeer, attacks: &[Attack], log: &Log) -> Result<Table, Failure> {
        let alone = self.honest_alone(peer, log)?;
        let mut rows = Vec::new();
        let is_together = |one: &Attack, other: &Attack| one.2 > WAITS_S && other.2 > WAITS_S;
        for group in attacks.chunk_by(is_together).flat_map(|alike| alike.chunks(TOGETHER)) {
            rows.extend(thread::scope(|scope| {
                let running: Vec<_> =
                    group.iter().map(|attack| scope.spawn(|| self.row(peer, *attack, log))).collect();
                let row = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().map_err(|_| Failure::failed("an attack's thread panicked"))
                };
                running.into_iter().map(row).collect::<Result<Vec<_>, Failure>>()
            })?);
        }
        let title = format!(
            "{}: floods of {FLOOD_S} s; {HOLD_S} s, or {HALF_S} to {SLOW_S} s where the time is what should end it, \
             {TOGETHER} of these beside each other; server on core 1, attacker and honest client on core 0. Alone, the \
             honest client has a p99 of {alone}",
            peer.version
        );
        Ok(Table::new(title, &HEADS, rows))
    }

    fn row(&self, peer: &BuiltPeer, attack: Attack, log: &Log) -> Vec<String> {
        let (class, ..) = attack;
        let mut row = vec![class.to_owned()];
        if needs_tls(class) && !tls::is_spoken_by(peer) || needs_budget(class) && peer.name != OURS {
            row.push("not run".to_owned());
        } else {
            eprintln!("{}: {class}", peer.name);
            match self.attacked(peer, attack, log) {
                Ok(cells) => row.extend(cells),
                Err(failure) => row.push(failure.to_string()),
            }
        }
        row.resize(HEADS.len(), "–".to_owned());
        row
    }

    /// The p99 of a client beside nobody.
    fn honest_alone(&self, peer: &BuiltPeer, log: &Log) -> Result<String, Failure> {
        let port = free_port()?;
        let server = Server::start(&peer.serve(port).under(cores::SERVER), port, log)?;
        let text = self.honest(port, None, Duration::from_secs(2)).text(log)?;
        server.stop()?;
        Ok(p99(&text))
    }

    /// 200 calls a second, for so long.
    fn honest(&self, port: u16, authority: Option<&Path>, duration: Duration) -> Job {
        let words = format!("127.0.0.1:{port} honest --for {}ms", duration.as_millis());
        let job = Job::new(&self.attacker).words(&words);
        with_authority(job, authority).under(cores::CLIENT)
    }

    /// All cells of a row but the first.
    fn attacked(&self, peer: &BuiltPeer, attack: Attack, log: &Log) -> Result<Vec<String>, Failure> {
        let (class, connections, seconds) = attack;
        let port = free_port()?;
        let mut serve = peer.serve(port);
        let authority = self.certs.join("ca.pem");
        let authority = needs_tls(class).then_some(&*authority);
        if authority.is_some() {
            serve = tls::with_identity(serve, &self.certs);
        }
        // As many files as a service has by default, or fewer: connections are not for nothing.
        let mut files = "prlimit --nofile=256";
        if needs_budget(class) {
            serve = serve.words(&format!("--json 127.0.0.1:{port} {BUDGET}"));
            files = BUDGET_FILES;
        }
        let serve = serve.under(files).under(cores::SERVER);
        let server = Server::start(&serve, port, log)?;
        let before = Used::of(&server)?;
        let beside = self.honest(port, authority, HONEST_LEAD * 2 + Duration::from_secs(seconds));
        let (honest, outcome, used) = thread::scope(|scope| {
            let honest = scope.spawn(|| beside.text(log));
            thread::sleep(HONEST_LEAD);
            let words = format!("127.0.0.1:{port} {class} --for {seconds}s --connections {connections}");
            let attack = with_authority(Job::new(&self.attacker).words(&words), authority);
            let outcome = attack.under("nice -n 19").under(cores::CLIENT).text(log);
            let used = Used::of(&server);
            let honest = honest.join();
            let honest =
                honest.unwrap_or_else(|_| Err(Failure::failed("the honest client's thread panicked")));
            (honest, outcome, used)
        });
        let (used, outcome) = (used?, outcome?);
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
        let count = |name: &str| grouped(found[name].as_f64().unwrap_or_default());
        Ok(vec![
            cut,
            format!("{} of {}", count("ended"), count("connections")),
            format!("{:.1}", found["sent_bytes"].as_f64().unwrap_or_default() / 1e6),
            format!("{:.2}", used.cpu_s - before.cpu_s),
            format!("{:.0}", (used.peak_bytes - before.peak_bytes) / 1e6),
            format!("{:.0}", used.peak_bytes / 1e6),
            honest.map_or_else(|_| "failed".to_owned(), |text| p99(&text)),
        ])
    }
}

fn needs_tls(class: &str) -> bool {
    class.starts_with("tls-")
}

fn needs_budget(class: &str) -> bool {
    HOARDS.iter().any(|(of_budget, ..)| *of_budget == class)
}

/// The stack whose server has a budget of memory to be set.
const OURS: &str = "thalweg";

fn with_authority(job: Job, authority: Option<&Path>) -> Job {
    match authority {
        Some(authority) => job.arg("--cacert").arg(authority),
        None => job,
    }
}

/// Of what an honest client prints.
fn p99(text: &str) -> String {
    let result: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default();
    let p99 = |ns: f64| format!("{} µs", grouped(ns / 1e3));
    match (result["calls"].as_u64(), result["failed"].as_u64(), result["p99_ns"].as_f64()) {
        (Some(1..), Some(0), Some(ns)) => p99(ns),
        (Some(1..), Some(failed), Some(ns)) => format!("{}, {failed} failed", p99(ns)),
        _ => "no call succeeded".to_owned(),
    }
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
