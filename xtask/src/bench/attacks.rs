//! Hostile clients of many kinds. Measures the traffic each may send before the server closes its connection, its cost
//! to the server, and the latency of an honest client meanwhile.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pair::{CLIENT, SERVER};
use super::table::{Table, grouped};
use super::tls;
use crate::arguments::are_known;
use crate::failure::{Failure, Result};
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::server::Server;
use crate::test::rust;
use crate::{log, proc};

/// How long an attacker floods unless it is cut off, and how long one holds memory, in seconds.
const FLOOD_S: u64 = 2;
const HOLD_S: u64 = 5;
/// Longer than our server's default timeout for unread responses plus the time a full socket lasts on Linux.
const UNREAD_S: u64 = 24;
/// Longer than our server's default timeout for receiving a request.
const SLOW_S: u64 = 34;
/// Longer than our server's default timeout for a header block or a handshake.
const HALF_S: u64 = 13;
/// Longer attacks mostly wait: [`CONCURRENT_MAX`] of them run at the same time.
const WAITS_S: u64 = 10;
const CONCURRENT_MAX: usize = 2;
/// The honest client starts this much earlier and ends this much later.
const HONEST_LEAD: Duration = Duration::from_millis(300);

/// Attacks by their names in the example, with the connections of each and its duration. Attacks that hold memory stay
/// open for the whole duration.
const ATTACKS: &[AttackGroup] = &[
    (
        "ping settings settings-acks never-acks priority unknown window-updates empty-data tiny-data continuation \
         rapid-reset made-you-reset refused connect blocks-on-reset blocks-on-forgotten name-copies large-lists \
         gzip-bomb gzip-small gzip-streams gzip-members",
        1,
        FLOOD_S,
    ),
    ("unfinished large-heads", 4, HOLD_S),
    ("large-head-calls", 20, FLOOD_S),
    ("idle", 300, FLOOD_S),
    ("unread", 4, UNREAD_S),
    ("half-block", 200, HALF_S),
    ("slow-reader", 4, UNREAD_S),
    ("slow-request", 50, SLOW_S),
];

/// Attacks that need a server with TLS.
const TLS_ATTACKS: &[AttackGroup] = &[
    ("tls-silent tls-half-hello tls-no-finish", 300, HALF_S),
    (
        "tls-handshakes tls-garbage tls-plain tls-fragments tls-renegotiation tls-alerts tls-key-updates \
         tls-empty-records tls-tiny-records",
        1,
        FLOOD_S,
    ),
];

/// Attacks that leave large responses unread, against a server whose memory is limited by [`BUDGET`].
const MEMORY_ATTACKS: &[AttackGroup] = &[
    ("unread-http1", 300, HOLD_S),
    ("trickle trickle-json", 1, UNREAD_S),
    ("tasks tasks-json", 5, HOLD_S),
    ("tls-unread-http1", 300, HOLD_S),
    ("tls-trickle", 1, UNREAD_S),
    ("tls-tasks", 5, HOLD_S),
];

/// Memory budget and open-file limit of the server for [`MEMORY_ATTACKS`].
const BUDGET: &str = "--max-memory 256MiB";
const BUDGET_FILES: &str = "prlimit --nofile=1024";

/// Names of attacks, connections of each, and duration in seconds; a group of similar attacks, and a single one.
type AttackGroup = (&'static str, usize, u64);
type Attack = (&'static str, usize, u64);

fn attacks_in(groups: &'static [AttackGroup]) -> impl Iterator<Item = Attack> {
    groups.iter().flat_map(|&(names, connections, seconds)| {
        names.split_whitespace().map(move |name| (name, connections, seconds))
    })
}

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    run_all(peers, &attacks_in(ATTACKS).chain(attacks_in(TLS_ATTACKS)).collect::<Vec<_>>())
}

/// Runs the attacks on a server's memory.
pub(super) fn run_memory_attacks(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    run_all(peers, &attacks_in(MEMORY_ATTACKS).collect::<Vec<_>>())
}

/// Runs the attacks with these names.
pub(super) fn run_classes(peers: &[BuiltPeer], classes: &[&str]) -> Result<Vec<Table>> {
    let all: Vec<Attack> =
        attacks_in(ATTACKS).chain(attacks_in(TLS_ATTACKS)).chain(attacks_in(MEMORY_ATTACKS)).collect();
    are_known("attack", classes, &all.iter().map(|(class, ..)| *class).collect::<Vec<_>>())?;
    let wanted: Vec<Attack> = all.into_iter().filter(|(class, ..)| classes.contains(class)).collect();
    run_all(peers, &wanted)
}

fn run_all(peers: &[BuiltPeer], attacks: &[Attack]) -> Result<Vec<Table>> {
    let field = AttackBench {
        attacker: rust::release_example("thalweg-load", "attack")?,
        certs: tls::certificates()?,
    };
    peers.iter().map(|peer| field.table(peer, attacks)).collect()
}

const COLUMNS: [&str; 8] =
    ["attack", "cut", "ended", "MB sent", "server's CPU, s", "memory, MB", "peak RSS, MB", "honest p99"];

/// The programs and files for attacks.
struct AttackBench {
    /// Also serves as the honest client.
    attacker: PathBuf,
    certs: PathBuf,
}

impl AttackBench {
    fn table(&self, peer: &BuiltPeer, attacks: &[Attack]) -> Result<Table> {
        let alone = self.honest_p99_without_attack(peer)?;
        let mut rows = Vec::new();
        let run_concurrently = |one: &Attack, other: &Attack| one.2 > WAITS_S && other.2 > WAITS_S;
        for group in attacks.chunk_by(run_concurrently).flat_map(|group| group.chunks(CONCURRENT_MAX)) {
            rows.extend(thread::scope(|scope| {
                let running: Vec<_> =
                    group.iter().map(|attack| scope.spawn(|| self.row(peer, *attack))).collect();
                let row = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().map_err(|_| failed!("an attack's thread panicked"))
                };
                running.into_iter().map(row).collect::<Result<Vec<_>>>()
            })?);
        }
        let title = format!(
            "{}: floods of {FLOOD_S} s; {HOLD_S} s, or {HALF_S} to {SLOW_S} s where the time is what should end it, \
             {CONCURRENT_MAX} of these at a time; server on core 1, attacker and honest client on core 0. \
             Alone, the honest client has a p99 of {alone}",
            peer.version
        );
        Ok(Table::new(title, COLUMNS, rows))
    }

    fn row(&self, peer: &BuiltPeer, attack: Attack) -> Vec<String> {
        let (class, ..) = attack;
        let mut row = vec![class.to_owned()];
        if needs_tls(class) && !tls::is_supported_by(peer) || needs_budget(class) && peer.name != OURS {
            row.push("not run".to_owned());
        } else {
            eprintln!("{}: {class}", peer.name);
            match self.measure_attack(peer, attack) {
                Ok(cells) => row.extend(cells),
                Err(failure) => row.push(failure.to_string()),
            }
        }
        row.resize(COLUMNS.len(), "–".to_owned());
        row
    }

    /// The p99 of the honest client without an attack.
    fn honest_p99_without_attack(&self, peer: &BuiltPeer) -> Result<String> {
        let server = Server::start(|port| peer.serve(port).under(SERVER))?;
        Ok(p99(&self.attack(&server, "honest", None, Duration::from_secs(2)).text()?))
    }

    /// Runs the example as the client `name` for `duration`. The honest one makes 200 calls a second.
    fn attack(&self, server: &Server, name: &str, authority: Option<&Path>, duration: Duration) -> Job {
        let words = format!("{} {name} --for {}ms", server.address(), duration.as_millis());
        let job = Job::new(&self.attacker).words(&words);
        authority.iter().fold(job, |job, authority| job.arg("--cacert").arg(authority)).under(CLIENT)
    }

    /// Returns all cells of a row except the first.
    fn measure_attack(&self, peer: &BuiltPeer, (class, connections, seconds): Attack) -> Result<Vec<String>> {
        let authority = self.certs.join("ca.pem");
        let authority = needs_tls(class).then_some(&*authority);
        let server = Server::start(|port| {
            let mut serve = peer.serve(port);
            if needs_tls(class) {
                serve = serve.words(&tls::identity(&self.certs));
            }
            // At most the default limit of a service: connections use up files.
            let mut files = "prlimit --nofile=256";
            if needs_budget(class) {
                serve = serve.words(&format!("--json 127.0.0.1:{port} {BUDGET}"));
                files = BUDGET_FILES;
            }
            serve.under(files).under(SERVER)
        })?;
        let before = Used::of(&server)?;
        let duration = Duration::from_secs(seconds);
        let honest_client = self.attack(&server, "honest", authority, HONEST_LEAD * 2 + duration);
        let (honest, outcome, used) = thread::scope(|scope| {
            let honest = scope.spawn(|| honest_client.text());
            thread::sleep(HONEST_LEAD);
            let attack = self.attack(&server, class, authority, duration);
            let attack = attack.words(&format!("--connections {connections}")).under("nice -n 19");
            let (outcome, used) = (attack.text(), Used::of(&server));
            let honest = honest.join().map_err(|_| failed!("the honest client's thread panicked"))?;
            Ok::<_, Failure>((honest, outcome?, used?))
        })?;
        let found: Value = serde_json::from_str(outcome.lines().last().unwrap_or_default())
            .map_err(|why| failed!("the attacker printed no JSON: {why}"))?;
        let stopped = Instant::now();
        // After an attack the server may take a long time to stop.
        drop(server);
        log::line(format_args!("the server ended after {:?}", stopped.elapsed()))?;
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
    MEMORY_ATTACKS.iter().any(|(name, ..)| *name == class)
}

/// The only stack whose server has a configurable memory budget.
const OURS: &str = "thalweg";

/// The p99 that an honest client printed.
fn p99(text: &str) -> String {
    let result: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default();
    let p99 = |ns: f64| format!("{} µs", grouped(ns / 1e3));
    match (result["calls"].as_u64(), result["failed"].as_u64(), result["p99_ns"].as_f64()) {
        (Some(1..), Some(0), Some(ns)) => p99(ns),
        (Some(1..), Some(failed), Some(ns)) => format!("{}, {failed} failed", p99(ns)),
        _ => "no call succeeded".to_owned(),
    }
}

/// Resources used by a server so far.
struct Used {
    cpu_s: f64,
    peak_bytes: f64,
}

impl Used {
    fn of(server: &Server) -> Result<Self> {
        let cpu = proc::cpu_time(&server.process_id().to_string())?;
        let peak_bytes = proc::memory(server.process_id(), "VmHWM")?;
        Ok(Self { cpu_s: (cpu.user + cpu.system).as_secs_f64(), peak_bytes })
    }
}
