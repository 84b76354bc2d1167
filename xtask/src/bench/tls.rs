//! Calls over TLS: ours compared with other stacks and with ours in plain text, rustls alone, handshakes, and the
//! memory of an idle connection.
//!
//! The stacks alternate in short windows, in forward and then reverse order. The tables show medians, and ratios within
//! a round.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::memory::each_takes;
use super::pair::{CLIENT, Holder, Pair, allow_open_files};
use super::table::{Table, grouped};
use super::turns::{Spread, column, fixed, forward_and_reverse, ratio};
use crate::certificates;
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::test::rust;

/// The stacks whose servers and clients have TLS flags.
pub(super) const PEERS: &[&str] = &["thalweg", "tonic", "grpc-cpp"];

const ROUNDS: usize = 5;

struct Load {
    title: &'static str,
    flags: &'static str,
    /// If bytes are measured, the processors of writer and reader: rustls alone is then measured, too.
    writer_and_reader: Option<&'static str>,
}

/// Bytes of a message of a stream.
const MESSAGE_LEN: f64 = 1.5e6;
const LOADS: &[Load] = &[
    Load { title: "Empty unary calls, 64 in flight", flags: "-c 64", writer_and_reader: None },
    Load { title: "Unary calls of 1 KiB, 64 in flight", flags: "-c 64 --size 1024", writer_and_reader: None },
    Load {
        title: "One stream of 1.5 MB messages from the server",
        flags: "--call server-stream --size 1500000",
        writer_and_reader: Some("1 0"),
    },
    Load {
        title: "One stream of 1.5 MB messages from the client",
        flags: "--call client-stream --size 1500000",
        writer_and_reader: Some("0 1"),
    },
];
const WINDOW: &str = "-z 1s --warmup 300ms";
const IDLE: usize = 2_000;
const IDLE_BEFORE: usize = 100;
/// Time for the server's work after a connection becomes idle.
const SETTLE: Duration = Duration::from_millis(2500);

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    allow_open_files(2 * (IDLE + IDLE_BEFORE) + 100)?;
    let ours = peers.iter().find(|peer| peer.name == "thalweg");
    let ours = ours.ok_or_else(|| failed!("the others are compared with thalweg; name it, too"))?;
    let rustls =
        Rustls { limits: rust::release_example("thalweg-load", "tls_limits")?, certs: certificates()? };
    let plain = Pair::start(ours, ours, THREAD)?.with(ours.name.to_owned(), THREAD);
    let over_tls = peers.iter().map(|peer| rustls.pair(peer));
    let pairs = [Ok(plain)].into_iter().chain(over_tls).collect::<Result<Vec<_>>>()?;
    let tables = LOADS.iter().map(|load| rustls.table(load, &pairs));
    let mut tables = tables.collect::<Result<Vec<_>>>()?;
    drop(pairs);
    tables.push(rustls.records()?);
    let pair = rustls.pair(ours)?;
    tables.push(rustls.handshakes(&pair)?);
    tables.push(rustls.idle(&pair)?);
    Ok(tables)
}

const THREAD: &str = "--threads 1";

enum Row<'p> {
    Stack(&'p Pair<'p>),
    /// rustls alone, with the processors of writer and reader.
    Rustls(&'static str),
}

/// Creates certificates for `localhost` and their CA in a folder.
pub(super) fn certificates() -> Result<PathBuf> {
    certificates::make(Job::new(crate::lab::program()?), "bench-certs")
}

/// Returns whether the stack's server has TLS flags.
pub(super) fn is_supported_by(peer: &BuiltPeer) -> bool {
    PEERS.contains(&peer.name)
}

/// Server flags for certificate and key.
pub(super) fn identity(certs: &Path) -> String {
    format!("--cert {} --key {}", certs.join("server.pem").display(), certs.join("server.key").display())
}

/// Measures rustls alone with an example program.
struct Rustls {
    limits: PathBuf,
    certs: PathBuf,
}

impl Rustls {
    /// Starts a stack over TLS.
    fn pair<'p>(&self, peer: &'p BuiltPeer) -> Result<Pair<'p>> {
        let pair = Pair::start(peer, peer, &format!("{THREAD} {}", identity(&self.certs)))?;
        let flags = format!("{THREAD} --cacert {}", self.certs.join("ca.pem").display());
        Ok(pair.with(format!("{} TLS", peer.name), &flags))
    }

    /// Runs the example with the certificates as last arguments.
    fn job(&self, words: &str) -> Job {
        let files = ["ca.pem", "server.pem", "server.key"].map(|name| self.certs.join(name));
        Job::new(&self.limits).words(words).args(files)
    }

    /// Our stack over TLS is the second row; ratios are ours over the row's.
    fn table(&self, load: &Load, pairs: &[Pair<'_>]) -> Result<Table> {
        let rustls = load.writer_and_reader.map(Row::Rustls);
        let rows: Vec<Row<'_>> = pairs.iter().map(Row::Stack).chain(rustls).collect();
        let rounds = forward_and_reverse(ROUNDS, &rows, |row| match row {
            Row::Stack(pair) => pair.rate(&format!("{} {WINDOW}", load.flags)),
            Row::Rustls(cores) => {
                let found = self.job(&format!("socket {cores}")).json()?;
                // The rate in messages of that many bytes.
                Ok(number(&found, "mb_per_s")? * 1e6 / MESSAGE_LEN)
            }
        })?;
        let is_stream = load.writer_and_reader.is_some();
        let shown = |rate: f64| grouped(if is_stream { rate * MESSAGE_LEN / 1e6 } else { rate });
        let cells = |(index, row): (usize, &Row<'_>)| {
            let name = match row {
                Row::Stack(pair) => &pair.name,
                Row::Rustls(_) => "rustls alone",
            };
            let (rate, ratio) = (column(&rounds, index), ratio(&rounds, 1, index));
            vec![
                name.to_owned(),
                shown(rate.median),
                rate.range(shown),
                fixed(2)(ratio.median),
                ratio.range(fixed(2)),
            ]
        };
        let lines = rows.iter().enumerate().map(cells).collect();
        let title = format!(
            "{}, client on core 0, server on core 1; {ROUNDS} rounds, in alternating order:",
            load.title
        );
        let unit = if is_stream { "MB/s" } else { "calls/s" };
        Ok(Table::new(title, ["", unit, "range", "ours over TLS ÷ it", "its range"], lines))
    }

    fn records(&self) -> Result<Table> {
        let job = self.job("memory");
        let rounds = (0..ROUNDS).map(|_| job.json()).collect::<Result<Vec<_>>>()?;
        let row = |(name, key): (&str, &str)| -> Result<Vec<String>> {
            Ok(speeds(name, rounds.iter().map(|round| number(round, key)).collect::<Result<_>>()?))
        };
        let rows = [("sealing", "seal_mb_per_s"), ("opening", "open_mb_per_s")];
        let rows = rows.into_iter().map(row).collect::<Result<_>>()?;
        let title = "rustls alone in memory, records of 16 KiB, AES-128-GCM:";
        Ok(Table::new(title, ["", "MB/s", "range"], rows))
    }

    fn handshakes(&self, pair: &Pair<'_>) -> Result<Table> {
        let row = |kind: &str| -> Result<Vec<String>> {
            let job = Job::new(&self.limits).words(&format!("handshakes {}", pair.server.address()));
            let job = job.arg(self.certs.join("ca.pem")).arg(kind).under(CLIENT);
            let rates = (0..ROUNDS).map(|_| number(&job.json()?, "per_s"));
            Ok(speeds(kind, rates.collect::<Result<_>>()?))
        };
        let title = "Connections per second, each with a call: TLS 1.3, X25519MLKEM768, ECDSA P-256; client on core 0, \
                     server on core 1:";
        Ok(Table::new(title, ["handshake", "per s", "range"], vec![row("full")?, row("resumed")?]))
    }

    /// Memory in the server of an idle connection that has made a call.
    fn idle(&self, pair: &Pair<'_>) -> Result<Table> {
        let open = |count: usize| -> Result<Holder> {
            let job = Job::new(&self.limits).words(&format!("idle {}", pair.server.address()));
            let holder = Holder::open(&job.arg(self.certs.join("ca.pem")).arg(count.to_string()))?;
            ensure!(holder.line.trim() == "ready", "connections could not be opened");
            Ok(holder)
        };
        let each = each_takes(&pair.server, SETTLE, [IDLE_BEFORE, IDLE], open)?;
        let rows = vec![vec![pair.name.clone(), grouped(each)]];
        Ok(Table::new("Memory of the server (RSS):", ["stack", "B per idle connection after a call"], rows))
    }
}

fn speeds(name: &str, speeds: Spread) -> Vec<String> {
    vec![name.to_owned(), grouped(speeds.median), speeds.range(grouped)]
}

fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().ok_or_else(|| failed!("tls_limits did not print {key}"))
}
