//! Memory of ten thousand idle connections, and their cost to an active connection.
//!
//! Two servers run side by side; one of them has the idle connections, each of which has made a call. The same load
//! goes to both servers alternately, in forward and then reverse order, so that drift of the machine affects both.

use std::thread;

use serde_json::Value;

use super::memory::{CONNECTIONS, SETTLE};
use super::pair::{CLIENT, Holder, Pair, allow_open_files};
use super::table::{Table, grouped};
use super::turns::{column, fixed, forward_and_reverse, ratio};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::proc;
use crate::test::rust;

/// The connections, plus the other open files of a process.
const FILES_OPEN: usize = CONNECTIONS + 200;
const ROUNDS: usize = 8;
const LOAD: &str = "-c 64 --connections 1 -z 500ms --warmup 200ms";

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    allow_open_files(FILES_OPEN)?;
    let holder = rust::release_example("thalweg-load", "idle_lanes")?;
    let (mut memory_rows, mut rate_rows) = (Vec::new(), Vec::new());
    for peer in peers {
        let pairs = [Pair::start(peer, peer, "")?, Pair::start(peer, peer, "")?];
        for pair in &pairs {
            pair.rate(LOAD)?;
        }
        let many_connections = &pairs[0].server;
        thread::sleep(SETTLE);
        let before = [rss(many_connections.process_id())?, kernel()?];
        let job = Job::new(&holder).words(&format!("{} {CONNECTIONS}", many_connections.address()));
        let lanes = Holder::open(&job.under(CLIENT))?;
        let lanes_json: Value = serde_json::from_str(&lanes.line).unwrap_or_default();
        let client_before = lanes_json["rss_bytes_before"].as_f64();
        let client_before = client_before.ok_or_else(|| failed!("the client did not report its memory"))?;
        thread::sleep(SETTLE);
        let each = |bytes: f64| grouped(bytes / CONNECTIONS as f64);
        memory_rows.push(vec![
            peer.name.to_owned(),
            each(rss(many_connections.process_id())? - before[0]),
            each(rss(lanes.process_id())? - client_before),
            each(kernel()? - before[1]),
        ]);
        let rounds = forward_and_reverse(ROUNDS, &pairs, |pair| pair.rate(LOAD))?;
        let ratio = ratio(&rounds, 0, 1);
        rate_rows.push(vec![
            peer.name.to_owned(),
            grouped(column(&rounds, 0).median),
            grouped(column(&rounds, 1).median),
            fixed(3)(ratio.median),
            ratio.range(fixed(3)),
        ]);
        lanes.close()?;
    }
    let connections = grouped(CONNECTIONS as f64);
    let memory = format!("Bytes per connection, {connections} idle ones over TCP after a call each:");
    let memory_columns = ["server", "its RSS", "Thalweg's client, RSS", "kernel, both ends"];
    let rates = format!(
        "Empty unary calls on another connection, 64 in flight; {ROUNDS} rounds, in alternating order:"
    );
    let rate_columns = ["stack", "calls/s among them", "alone", "among ÷ alone", "range"];
    Ok(vec![Table::new(memory, memory_columns, memory_rows), Table::new(rates, rate_columns, rate_rows)])
}

fn rss(process: u32) -> Result<f64> {
    proc::memory(process, "VmRSS")
}

/// Slab memory of the kernel, machine-wide: it includes the socket structures of both ends.
fn kernel() -> Result<f64> {
    proc::bytes("/proc/meminfo", "Slab")
}
