//! Ten thousand idle connections: what they take, and what they cost a connection that works among them.
//!
//! Two servers run side by side, one of which has the idle connections. Each connection has made a call. The same load
//! goes to both in turns, there and back again, so that the machine's drift is in both.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::bench::table::{Table, grouped, median_and_range};
use crate::bench::{cores, open_files};
use crate::job::{Failure, Job, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};
use crate::test::rust;

const CONNECTIONS: usize = 10_000;
/// Those, and what a process has open besides.
const FILES_OPEN: usize = CONNECTIONS + 200;
/// For both ends to do what they do after a connection fell idle.
const SETTLE: Duration = Duration::from_secs(4);
const ROUNDS: usize = 8;
const LOAD: &str = "-c 64 --connections 1 -z 500ms --warmup 200ms";

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    open_files::allow(FILES_OPEN)?;
    let holder = rust::release_example("thalweg-load", "idle_lanes", log)?;
    let mut memory_rows = Vec::new();
    let mut rate_rows = Vec::new();
    for peer in peers {
        let ports = [free_port()?, free_port()?];
        let crowded = Server::start(&peer.serve(ports[0]).under(cores::SERVER), ports[0], log)?;
        let alone = Server::start(&peer.serve(ports[1]).under(cores::SERVER), ports[1], log)?;
        for port in ports {
            measure(peer.load(port, LOAD).under(cores::CLIENT), log)?;
        }
        thread::sleep(SETTLE);
        let server_before = Memory::of(crowded.process_id())?;
        let kernel_before = kernel_bytes()?;
        let lanes = IdleLanes::open(&holder, ports[0], log)?;
        thread::sleep(SETTLE);
        let server = Memory::of(crowded.process_id())?;
        memory_rows.push(vec![
            peer.name.to_owned(),
            per_connection(server.rss_bytes - server_before.rss_bytes),
            per_connection(server.pss_bytes - server_before.pss_bytes),
            per_connection(Memory::of(lanes.child.id())?.pss_bytes - lanes.pss_bytes_before),
            per_connection(kernel_bytes()? - kernel_before),
        ]);
        rate_rows.push(rates(peer, ports, log)?);
        lanes.close()?;
        crowded.stop()?;
        alone.stop()?;
    }
    let memory = format!(
        "Bytes per connection, {} idle ones over TCP after a call each:",
        grouped(CONNECTIONS as f64)
    );
    let memory_heads = ["server", "its RSS", "its PSS", "Thalweg's client, PSS", "kernel, both ends"];
    let rates =
        format!("Empty unary calls on another connection, 64 in flight; {ROUNDS} rounds, there and back:");
    let rate_heads = ["stack", "calls/s among them", "alone", "among ÷ alone", "range"];
    Ok(vec![Table::new(memory, &memory_heads, memory_rows), Table::new(rates, &rate_heads, rate_rows)])
}

fn per_connection(bytes: f64) -> String {
    grouped(bytes / CONNECTIONS as f64)
}

/// Calls per second at the server with the idle connections and at the one without.
fn rates(peer: &BuiltPeer, [crowded, alone]: [u16; 2], log: &Log) -> Result<Vec<String>, Failure> {
    let load = |port| measure(peer.load(port, LOAD).under(cores::CLIENT), log);
    let rate = |port| load(port).map(|result| result.rate_per_s);
    let (mut among, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let there = (rate(crowded)?, rate(alone)?);
        let back = (rate(alone)?, rate(crowded)?);
        let (one, other): (f64, f64) = (f64::midpoint(there.0, back.1), f64::midpoint(there.1, back.0));
        ratios.push(one / other);
        among.push(one);
        without.push(other);
    }
    let (ratio, least, greatest) = median_and_range(ratios);
    Ok(vec![
        peer.name.to_owned(),
        grouped(median_and_range(among).0),
        grouped(median_and_range(without).0),
        format!("{ratio:.3}"),
        format!("{least:.3}–{greatest:.3}"),
    ])
}

/// A process that holds the idle connections.
struct IdleLanes {
    child: Child,
    pss_bytes_before: f64,
}

impl IdleLanes {
    fn open(program: &Path, port: u16, log: &Log) -> Result<Self, Failure> {
        let words = format!("127.0.0.1:{port} {CONNECTIONS}");
        let job = Job::new(program).words(&words).under(cores::CLIENT);
        log.line(format_args!("$ {job} &"))?;
        let mut command = job.unbounded();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.appending()?);
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let value: Value = serde_json::from_str(&line).unwrap_or_default();
        let Some(pss_bytes_before) = value["pss_bytes_before"].as_f64() else {
            let why = format!("`{job}` did not open its connections; see {}", log.path().display());
            return Err(Failure::failed(why));
        };
        Ok(Self { child, pss_bytes_before })
    }

    /// It ends with its standard input.
    fn close(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

/// Memory of a process.
struct Memory {
    rss_bytes: f64,
    /// What it shares with others counted in parts.
    pss_bytes: f64,
}

impl Memory {
    fn of(process: u32) -> Result<Self, Failure> {
        let path = format!("/proc/{process}/smaps_rollup");
        let text = fs::read_to_string(&path)?;
        let bytes =
            |name| kibibytes(&text, name).ok_or_else(|| Failure::failed(format!("{path} tells no {name}")));
        Ok(Self { rss_bytes: bytes("Rss")?, pss_bytes: bytes("Pss")? })
    }
}

/// What the kernel holds of its own, of all of the machine: its structures for the sockets of both ends are among it.
fn kernel_bytes() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/meminfo")?;
    kibibytes(&text, "Slab").ok_or_else(|| Failure::failed("/proc/meminfo tells no Slab"))
}

/// A line `NAME:   123 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(1024.0 * line.split_whitespace().next()?.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::kibibytes;

    #[test]
    fn lines_of_proc_are_read() {
        let text = "00400000-7ffc0000 ---p 00000000 00:00 0 [rollup]\nRss:     2048 kB\nPss:     1024 kB\n\
                    Pss_Anon:  1 kB\n";
        assert_eq!(kibibytes(text, "Pss"), Some(1024.0 * 1024.0));
        assert_eq!(kibibytes(text, "Swap"), None);
    }
}
