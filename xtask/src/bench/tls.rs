//! Calls over TLS: ours beside another stack's and beside ours in the clear, what rustls does alone, handshakes, and
//! the memory of an idle connection.
//!
//! The stacks take turns in short windows, there and back again: medians, and ratios of windows of the same round.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::bench::table::{Table, grouped, median_and_range};
use crate::bench::turns::{ratio, there_and_back};
use crate::bench::{cores, memory, open_files};
use crate::certificates;
use crate::job::{Failure, Job, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};
use crate::test::rust;

/// The stacks whose servers and clients have flags for TLS.
pub(super) const PEERS: &[&str] = &["thalweg", "tonic", "grpc-cpp"];

const ROUNDS: usize = 5;

/// What the stacks are given to do.
struct Load {
    title: &'static str,
    flags: &'static str,
    stream: Option<Stream>,
}

/// Where bytes are what counts: rustls alone takes its turn, too.
struct Stream {
    message_len: f64,
    /// The processors of who writes and who reads.
    writer_and_reader: &'static str,
}

const LOADS: &[Load] = &[
    Load { title: "Empty unary calls, 64 in flight", flags: "-c 64", stream: None },
    Load { title: "Unary calls of 1 KiB, 64 in flight", flags: "-c 64 --size 1024", stream: None },
    Load {
        title: "One stream of 1.5 MB messages from the server",
        flags: "--call server-stream --size 1500000",
        stream: Some(Stream { message_len: 1.5e6, writer_and_reader: "1 0" }),
    },
    Load {
        title: "One stream of 1.5 MB messages from the client",
        flags: "--call client-stream --size 1500000",
        stream: Some(Stream { message_len: 1.5e6, writer_and_reader: "0 1" }),
    },
];
const WINDOW: &str = "-z 1s --warmup 300ms";
/// The row that rustls has beside the stacks.
const RUSTLS: &str = "rustls alone";
const IDLE: usize = 2_000;
const IDLE_BEFORE: usize = 100;
/// For the server to do what it does after a connection fell idle.
const SETTLE: Duration = Duration::from_millis(2500);

/// A stack's server, with TLS or without.
struct Row<'p> {
    name: String,
    peer: &'p BuiltPeer,
    port: u16,
    flags: String,
    server: Server,
}

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    open_files::allow(2 * (IDLE + IDLE_BEFORE) + 100)?;
    let limits = rust::release_example("thalweg-load", "tls_limits", log)?;
    let ours = peers.iter().find(|peer| peer.name == "thalweg");
    let ours = ours.ok_or_else(|| Failure::failed("the others are compared with thalweg: name it, too"))?;
    let certs = certificates(log)?;

    let mut rows = vec![Row::start(ours, None, log)?];
    for peer in peers {
        rows.push(Row::start(peer, Some(&certs), log)?);
    }
    let mut tables = Vec::new();
    for load in LOADS {
        let round = || {
            let mut rates = round(&rows, load.flags, log)?;
            if let Some(stream) = &load.stream {
                rates.push(stream.rustls_alone(&limits, &certs, log)?);
            }
            Ok(rates)
        };
        let rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, Failure>>()?;
        let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        names.extend(load.stream.as_ref().map(|_| RUSTLS));
        tables.push(table(load, &names, &rounds));
    }
    drop(rows);
    tables.push(records(&limits, &certs, log)?);
    tables.push(handshakes(ours, &limits, &certs, log)?);
    tables.push(idle(ours, &limits, &certs, log)?);
    Ok(tables)
}

impl<'p> Row<'p> {
    fn start(peer: &'p BuiltPeer, certs: Option<&Path>, log: &Log) -> Result<Self, Failure> {
        let port = free_port()?;
        let mut serve = peer.serve(port).words("--threads 1");
        let (mut name, mut flags) = (peer.name.to_owned(), "--threads 1".to_owned());
        if let Some(certs) = certs {
            serve = with_identity(serve, certs);
            name += " TLS";
            flags = format!("{flags} --cacert {}", certs.join("ca.pem").display());
        }
        let server = Server::start(&serve.under(cores::SERVER), port, log)?;
        Ok(Self { name, peer, port, flags, server })
    }
}

/// Makes certificates for `localhost`, and the authority's, in a folder.
pub(super) fn certificates(log: &Log) -> Result<PathBuf, Failure> {
    certificates::make(Job::new(crate::lab::program(log)?), "bench-certs", log)
}

/// Whether the stack's server has flags for TLS.
pub(super) fn is_spoken_by(peer: &BuiltPeer) -> bool {
    PEERS.contains(&peer.name)
}

pub(super) fn with_identity(serve: Job, certs: &Path) -> Job {
    serve.arg("--cert").arg(certs.join("server.pem")).arg("--key").arg(certs.join("server.key"))
}

impl Stream {
    /// The messages a second that its bytes would be.
    fn rustls_alone(&self, limits: &Path, certs: &Path, log: &Log) -> Result<f64, Failure> {
        let job = Job::new(limits).arg("socket").words(self.writer_and_reader);
        Ok(number(&json(&with_certs(job, certs), log)?, "mb_per_s")? * 1e6 / self.message_len)
    }
}

/// The mean rate of each row over its two windows of one round.
fn round(rows: &[Row<'_>], flags: &str, log: &Log) -> Result<Vec<f64>, Failure> {
    let window = |row: &Row<'_>| {
        let load = row.peer.load(row.port, flags).words(WINDOW).words(&row.flags);
        Ok(measure(load.under(cores::CLIENT), log)?.rate_per_s)
    };
    there_and_back(rows, window)
}

/// Ours over TLS is the second row; ratios are ours over the row.
fn table(load: &Load, names: &[&str], rounds: &[Vec<f64>]) -> Table {
    let cells = |(index, name): (usize, &&str)| {
        let (rate, least, greatest) = median_and_range(rounds.iter().map(|round| round[index]).collect());
        let (ratio, low, high) = ratio(rounds, 1, index);
        let shown = |rate: f64| match &load.stream {
            Some(stream) => grouped(rate * stream.message_len / 1e6),
            None => grouped(rate),
        };
        vec![
            (*name).to_owned(),
            shown(rate),
            format!("{}–{}", shown(least), shown(greatest)),
            format!("{ratio:.2}"),
            format!("{low:.2}–{high:.2}"),
        ]
    };
    let unit = if load.stream.is_some() { "MB/s" } else { "calls/s" };
    let lines: Vec<Vec<String>> = names.iter().enumerate().map(cells).collect();
    let title =
        format!("{}, client on core 0, server on core 1; {ROUNDS} rounds, there and back:", load.title);
    Table::new(title, &["", unit, "range", "ours over TLS ÷ it", "its range"], lines)
}

fn with_certs(job: Job, certs: &Path) -> Job {
    ["ca.pem", "server.pem", "server.key"].iter().fold(job, |job, name| job.arg(certs.join(name)))
}

fn records(limits: &Path, certs: &Path, log: &Log) -> Result<Table, Failure> {
    let job = with_certs(Job::new(limits).arg("memory"), certs);
    let rounds = (0..ROUNDS).map(|_| json(&job, log)).collect::<Result<Vec<_>, _>>()?;
    let row = |name: &str, key: &str| {
        let speeds = rounds.iter().map(|round| number(round, key)).collect::<Result<Vec<_>, _>>()?;
        let (speed, least, greatest) = median_and_range(speeds);
        Ok(vec![name.to_owned(), grouped(speed), format!("{}–{}", grouped(least), grouped(greatest))])
    };
    let rows: Result<Vec<_>, Failure> =
        [row("sealing", "seal_mb_per_s"), row("opening", "open_mb_per_s")].into_iter().collect();
    Ok(Table::new("rustls alone in memory, records of 16 KiB, AES-128-GCM:", &["", "MB/s", "range"], rows?))
}

fn handshakes(ours: &BuiltPeer, limits: &Path, certs: &Path, log: &Log) -> Result<Table, Failure> {
    let row = Row::start(ours, Some(certs), log)?;
    let rate = |kind: &str| {
        let job = Job::new(limits).words(&format!("handshakes 127.0.0.1:{}", row.port));
        let job = job.arg(certs.join("ca.pem")).arg(kind).under(cores::CLIENT);
        number(&json(&job, log)?, "per_s")
    };
    let mut rows = Vec::new();
    for kind in ["full", "resumed"] {
        let rates = (0..ROUNDS).map(|_| rate(kind)).collect::<Result<Vec<_>, _>>()?;
        let (rate, least, greatest) = median_and_range(rates);
        rows.push(vec![kind.to_owned(), grouped(rate), format!("{}–{}", grouped(least), grouped(greatest))]);
    }
    let title = "Connections a second, each with a call: TLS 1.3, X25519MLKEM768, ECDSA P-256; client on core 0, \
                 server on core 1:";
    Ok(Table::new(title, &["handshake", "per s", "range"], rows))
}

/// What an idle connection that has made a call takes of the server's memory.
fn idle(ours: &BuiltPeer, limits: &Path, certs: &Path, log: &Log) -> Result<Table, Failure> {
    let row = Row::start(ours, Some(certs), log)?;
    let open = |count: usize| -> Result<std::process::Child, Failure> {
        let job = Job::new(limits).words(&format!("idle 127.0.0.1:{}", row.port));
        let mut command = job.arg(certs.join("ca.pem")).arg(count.to_string()).unbounded();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.trim() == "ready" {
            Ok(child)
        } else {
            Err(Failure::failed("connections could not be opened"))
        }
    };
    let mut first = open(IDLE_BEFORE)?;
    thread::sleep(SETTLE);
    let before = memory::status_bytes(&row.server, "VmRSS")?;
    let mut others = open(IDLE)?;
    thread::sleep(SETTLE);
    let after = memory::status_bytes(&row.server, "VmRSS")?;
    for child in [&mut first, &mut others] {
        drop(child.stdin.take());
        child.wait()?;
    }
    let each = (after - before) / IDLE as f64;
    let rows = vec![vec!["thalweg TLS".to_owned(), grouped(each)]];
    Ok(Table::new("Memory of the server (RSS):", &["stack", "B per idle connection after a call"], rows))
}

fn number(value: &Value, key: &str) -> Result<f64, Failure> {
    value[key].as_f64().ok_or_else(|| Failure::failed(format!("tls_limits told no {key}")))
}

fn json(job: &Job, log: &Log) -> Result<Value, Failure> {
    let text = job.text(log)?;
    serde_json::from_str(&text).map_err(|error| Failure::failed(format!("`{job}` printed no JSON: {error}")))
}
