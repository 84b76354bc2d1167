//! One call in flight: with busy polling and without, compared with other stacks and with two processes that spin on a
//! bare socket.
//!
//! The stacks alternate in short windows, in forward and then reverse order. The tables show medians of the rounds and
//! ratios within a round.

use std::{env, fs};

use super::pair::{CLIENT, Pair, SERVER};
use super::table::Table;
use super::turns::{column, fixed, forward_and_reverse, ratio};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::server::free_port;

const ROUNDS: usize = 5;
const WINDOW: &str = "-c 1 -z 400ms --warmup 100ms";
const SPIN_MILLISECONDS: u32 = 300;
/// Long enough never to end between two calls; short enough to free the core for the next stack's server.
const BUSY_POLL: &str = "--busy-poll 1ms";

/// A waiting thread sleeps at once.
const NO_BUSY_POLL: &str = "--busy-poll 0s";

enum Row<'p> {
    /// Two spinning processes. The server serves one connection, so each window starts a new one.
    Socket,
    /// A stack, with the address of its Unix socket.
    Stack(Pair<'p>, String),
}

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let mut rows = vec![Row::Socket];
    for peer in peers {
        if peer.name == "thalweg" {
            rows.push(stack(peer, " busy", BUSY_POLL)?);
            rows.push(stack(peer, " asleep", NO_BUSY_POLL)?);
        }
        rows.push(stack(peer, "", "")?);
    }
    let tables = ["TCP", "UDS"].map(|transport| {
        let rounds = forward_and_reverse(ROUNDS, &rows, |row| p50_us(row, transport))?;
        let title = format!(
            "Empty unary calls over {transport}, one in flight, client on core 0, server on core 1; {ROUNDS} rounds, \
             in alternating order:"
        );
        Ok(table(title, &rows, &rounds))
    });
    tables.into_iter().collect()
}

fn stack<'p>(peer: &'p BuiltPeer, suffix: &str, flags: &str) -> Result<Row<'p>> {
    let uds = uds(free_port()?);
    let pair = Pair::start(peer, peer, &format!("--listen {uds} {flags}"))?;
    Ok(Row::Stack(pair.with(format!("{}{suffix}", peer.name), flags), uds))
}

fn uds(number: u16) -> String {
    let path = env::temp_dir().join(format!("thalweg-polling-{number}"));
    // Left over from a killed server.
    let _ = fs::remove_file(&path);
    format!("unix:{}", path.display())
}

/// The p50 of one window of a row, in µs.
fn p50_us(row: &Row<'_>, transport: &str) -> Result<f64> {
    let result = match row {
        Row::Socket => return spinning(transport),
        Row::Stack(pair, _) if transport == "TCP" => pair.measure(WINDOW),
        Row::Stack(pair, uds) => pair.measure_at(uds, WINDOW),
    };
    Ok(result?.p50_ns.ok_or_else(|| failed!("no latency of a lone call"))? / 1e3)
}

/// Median round trip between two spinning processes, in µs.
fn spinning(transport: &str) -> Result<f64> {
    let port = free_port()?;
    let address = if transport == "TCP" { format!("127.0.0.1:{port}") } else { uds(port) };
    let this = env::current_exe()?;
    let spin = |words: &str| Job::new(&this).words(&format!("spin {words}"));
    let mut echo = spin(&format!("echo {address}")).under(SERVER).unbounded().spawn()?;
    let text = spin(&format!("measure {address} {SPIN_MILLISECONDS}")).under(CLIENT).text();
    if text.is_err() {
        // The server may still wait for a connection.
        echo.kill()?;
    }
    echo.wait()?;
    if let Some(path) = address.strip_prefix("unix:") {
        fs::remove_file(path)?;
    }
    let text = text?;
    let nanoseconds: f64 = text.trim().parse().map_err(|_| failed!("spin printed `{}`", text.trim()))?;
    Ok(nanoseconds / 1e3)
}

fn table(title: String, rows: &[Row<'_>], rounds: &[Vec<f64>]) -> Table {
    let cells = |(index, row): (usize, &Row<'_>)| {
        let name = match row {
            Row::Socket => "spinning socket",
            Row::Stack(pair, _) => &pair.name,
        };
        let p50 = column(rounds, index);
        // The first two rows are the baselines: the limit, and ours with busy polling.
        let (limit, busy) = (ratio(rounds, index, 0), ratio(rounds, index, 1));
        vec![
            name.to_owned(),
            fixed(1)(p50.median),
            p50.range(fixed(1)),
            fixed(1)(limit.median),
            fixed(2)(busy.median),
            busy.range(fixed(2)),
        ]
    };
    let lines = rows.iter().enumerate().map(cells).collect();
    Table::new(title, ["", "p50 µs", "range", "÷ socket", "÷ busy", "range"], lines)
}
