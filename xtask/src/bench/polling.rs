//! One call in flight: with busy polling and without, beside other stacks and beside two processes that spin on a bare
//! socket.
//!
//! The stacks take turns in short windows, there and back again: medians of the rounds, and
//! ratios of windows of the same round.

use std::env;
use std::path::Path;

use crate::bench::cores;
use crate::bench::table::{Table, median_and_range};
use crate::job::{Failure, Job, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};

const ROUNDS: usize = 5;
const WINDOW: &str = "-c 1 -z 400ms --warmup 100ms";
const SPIN_MILLISECONDS: u32 = 300;
/// Long enough never to end between two calls; short enough that a server leaves its core to the next stack's.
const BUSY_POLL: &str = "--busy-poll 1ms";

/// Where a row's server listens.
struct Addresses {
    port: u16,
    uds: String,
}

enum Row<'p> {
    /// Two processes that spin; the server answers one connection and is started for each window.
    Socket,
    Stack {
        name: String,
        peer: &'p BuiltPeer,
        flags: &'static str,
        addresses: Addresses,
        _server: Server,
    },
}

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let mut rows = vec![Row::Socket];
    for peer in peers {
        if peer.name == "thalweg" {
            rows.push(stack(peer, " busy", BUSY_POLL, log)?);
        }
        rows.push(stack(peer, "", "", log)?);
    }
    let mut tables = Vec::new();
    for transport in ["TCP", "UDS"] {
        let rounds = (0..ROUNDS).map(|_| round(&rows, transport, log)).collect::<Result<Vec<_>, _>>()?;
        let title = format!(
            "Empty unary calls over {transport}, one in flight, client on core 0, server on core 1; {ROUNDS} rounds, \
             there and back:"
        );
        tables.push(table(title, &rows, &rounds));
    }
    Ok(tables)
}

fn stack<'p>(peer: &'p BuiltPeer, suffix: &str, flags: &'static str, log: &Log) -> Result<Row<'p>, Failure> {
    let port = free_port()?;
    let addresses = Addresses { port, uds: uds(port) };
    let serve = peer.serve(port).words(&format!("--listen {} {flags}", addresses.uds)).under(cores::SERVER);
    let server = Server::start(&serve, port, log)?;
    Ok(Row::Stack { name: format!("{}{suffix}", peer.name), peer, flags, addresses, _server: server })
}

fn uds(port: u16) -> String {
    let path = env::temp_dir().join(format!("thalweg-polling-{port}"));
    // Left over from a server that was killed.
    let _ = std::fs::remove_file(&path);
    format!("unix:{}", path.display())
}

/// The mean p50 of each row over its two windows of one round, in µs.
fn round(rows: &[Row<'_>], transport: &str, log: &Log) -> Result<Vec<f64>, Failure> {
    let window = |row: &Row<'_>| match row {
        Row::Socket => spinning(transport, log),
        Row::Stack { peer, flags, addresses, .. } => {
            let load = match transport {
                "TCP" => peer.load(addresses.port, WINDOW),
                _ => peer.command().words(&format!("load {} {WINDOW}", addresses.uds)),
            };
            let p50_ns = measure(load.words(flags).under(cores::CLIENT), log)?.p50_ns;
            Ok(p50_ns.ok_or_else(|| Failure::failed("a lone call has no latency"))? / 1e3)
        }
    };
    let there = rows.iter().map(window).collect::<Result<Vec<_>, _>>()?;
    let back = rows.iter().rev().map(window).collect::<Result<Vec<_>, _>>()?;
    Ok(there.iter().zip(back.iter().rev()).map(|(one, other)| f64::midpoint(*one, *other)).collect())
}

/// The median round trip between two processes that spin, in µs.
fn spinning(transport: &str, log: &Log) -> Result<f64, Failure> {
    let port = free_port()?;
    let address = if transport == "TCP" { format!("127.0.0.1:{port}") } else { uds(port) };
    let this = env::current_exe()?;
    let spin = |words: &str| Job::new(&this).words(&format!("spin {words}"));
    let mut echo = spin(&format!("echo {address}")).under(cores::SERVER).unbounded().spawn()?;
    let text = spin(&format!("measure {address} {SPIN_MILLISECONDS}")).under(cores::CLIENT).text(log);
    if text.is_err() {
        // It may still wait for a connection.
        echo.kill()?;
    }
    echo.wait()?;
    if let Some(path) = address.strip_prefix("unix:") {
        std::fs::remove_file(Path::new(path))?;
    }
    let text = text?;
    let nanoseconds: f64 =
        text.trim().parse().map_err(|_| Failure::failed(format!("spin printed `{}`", text.trim())))?;
    Ok(nanoseconds / 1e3)
}

fn table(title: String, rows: &[Row<'_>], rounds: &[Vec<f64>]) -> Table {
    let column = |index: usize| rounds.iter().map(|round| round[index]).collect::<Vec<_>>();
    // The first two rows are what the others are compared with: the limit, and ours with busy polling.
    let over = |index: usize, base: usize| {
        median_and_range(rounds.iter().map(|round| round[index] / round[base]).collect())
    };
    let cells = |(index, row): (usize, &Row<'_>)| {
        let name = match row {
            Row::Socket => "spinning socket".to_owned(),
            Row::Stack { name, .. } => name.clone(),
        };
        let (p50, least, greatest) = median_and_range(column(index));
        let (limit, ..) = over(index, 0);
        let (busy, busy_least, busy_greatest) = over(index, 1);
        vec![
            name,
            format!("{p50:.1}"),
            format!("{least:.1}–{greatest:.1}"),
            format!("{limit:.1}"),
            format!("{busy:.2}"),
            format!("{busy_least:.2}–{busy_greatest:.2}"),
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().enumerate().map(cells).collect();
    Table::new(title, &["", "p50 µs", "range", "÷ socket", "÷ busy", "range"], lines)
}
