//! Costs of an empty unary call on both sides, counted under valgrind: user-space instructions, which repeat even where
//! the clock does not, and heap allocations.
//!
//! A whole run includes start and stop. Two runs of different lengths are made: the cost of one call is the difference
//! of the counts divided by the difference of the calls.

use std::fs;

use super::table::{Table, grouped};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::{BuiltPeer, measure};
use crate::server::Server;
use crate::{tools, workspace};

/// Calls of the two runs. Both are long enough for tables and buffers to reach their final size.
const CALLS: [u64; 2] = [2_000, 12_000];
/// Calls in flight on the one connection.
const IN_FLIGHT: u32 = 64;
/// valgrind slows a program by a factor of about 50.
const LIMIT_MINUTES: u64 = 5;

pub(super) fn instructions(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let callgrind = Counter {
        options: "--tool=callgrind --callgrind-out-file=",
        read: total_instructions,
        shown: grouped,
    };
    callgrind.tables("User-space instructions per empty unary call (callgrind;", peers)
}

pub(super) fn allocations(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let memcheck = Counter {
        // Without the slow checks: only the heap summary is needed.
        options: "--tool=memcheck --undef-value-errors=no --leak-check=no --log-file=",
        read: allocations_in,
        // A longer run may have a few fewer allocations at its start and end: show no negative count.
        shown: |count| format!("{:.2}", count.max(0.0)),
    };
    memcheck.tables("Heap allocations per empty unary call (valgrind;", peers)
}

/// A valgrind tool, with how to read its output file and how to format the count.
struct Counter {
    /// End with the option for the output file.
    options: &'static str,
    read: fn(&str) -> Option<u64>,
    shown: fn(f64) -> String,
}

impl Counter {
    fn tables(&self, title: &str, peers: &[BuiltPeer]) -> Result<Vec<Table>> {
        tools::debian("valgrind nghttp2-client", &["valgrind", "h2load"])?;
        let rows = peers.iter().map(|peer| self.row(peer)).collect::<Result<_>>()?;
        let title = format!("{title} 1 connection, {IN_FLIGHT} in flight):");
        Ok(vec![Table::new(title, ["stack", "server", "client"], rows)])
    }

    fn row(&self, peer: &BuiltPeer) -> Result<Vec<String>> {
        // h2load counts any HTTP response as success, whatever its gRPC status: check first that the method exists.
        let server = Server::start(|port| peer.serve(port))?;
        measure(peer.load(server.port(), "-n 100 -c 4 --warmup 0s"))?;
        server.stop()?;
        let per_call = |run: &dyn Fn(u64) -> Result<u64>| -> Result<String> {
            let [few, many] = CALLS;
            let (least, most) = (run(few)?, run(many)?);
            Ok((self.shown)((most as f64 - least as f64) / (many - few) as f64))
        };
        let server = per_call(&|calls| self.server_run(peer, calls));
        Ok(vec![peer.name.to_owned(), server?, per_call(&|calls| self.client_run(peer, calls))?])
    }

    /// Counts the server under valgrind, with h2load as the client.
    fn server_run(&self, peer: &BuiltPeer, calls: u64) -> Result<u64> {
        let server = Server::start(|port| peer.serve(port).under(&self.wrapper()))?;
        h2load(server.port(), calls)?;
        server.stop()?;
        self.count()
    }

    /// Counts the client under valgrind, with its own server outside.
    fn client_run(&self, peer: &BuiltPeer, calls: u64) -> Result<u64> {
        let server = Server::start(|port| peer.serve(port))?;
        let flags = format!("-n {calls} -c {IN_FLIGHT} --connections 1 --warmup 0s");
        peer.load(server.port(), &flags).under(&self.wrapper()).minutes(LIMIT_MINUTES).run()?;
        server.stop()?;
        self.count()
    }

    fn wrapper(&self) -> String {
        // One core, as in the other measurements: on two, runtimes start work-stealing threads.
        format!("taskset -c 0 valgrind {}{}", self.options, workspace::output().join(COUNTED).display())
    }

    fn count(&self) -> Result<u64> {
        let path = workspace::output().join(COUNTED);
        (self.read)(&fs::read_to_string(&path)?).ok_or_else(|| failed!("no count in {}", path.display()))
    }
}

const COUNTED: &str = "valgrind.out";

/// callgrind's output ends with `totals: N`.
fn total_instructions(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

/// Reads `total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated`.
fn allocations_in(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once("total heap usage:")?;
    after.split_once("allocs")?.0.trim().replace(',', "").parse().ok()
}

/// Makes empty unary calls with h2load.
fn h2load(port: u16, calls: u64) -> Result<()> {
    let words = format!("--requests={calls} --clients=1 --threads=1 --max-concurrent-streams={IN_FLIGHT}");
    let job = at_h2load(port)?.words(&words).minutes(LIMIT_MINUTES);
    let wanted = format!("{calls} succeeded, 0 failed, 0 errored");
    ensure!(job.text()?.contains(&wanted), "`{job}` did not report {wanted}");
    Ok(())
}

/// h2load with an empty gRPC message, for the unary method of the server at `port`.
pub(super) fn at_h2load(port: u16) -> Result<Job> {
    // Not compressed, length 0.
    let message = workspace::output().join("empty-message");
    fs::write(&message, [0; 5])?;
    let job = Job::new("h2load").words("--header=content-type:application/grpc --header=te:trailers --data");
    Ok(job.arg(message).arg(format!("http://127.0.0.1:{port}/grpc.testing.BenchmarkService/UnaryCall")))
}

#[cfg(test)]
mod tests {
    use super::{allocations_in, total_instructions};

    #[test]
    fn total_is_parsed() {
        assert_eq!(total_instructions("events: Ir\nfn=(1) main\n1 5\n\ntotals: 123456\n"), Some(123_456));
        assert_eq!(total_instructions("events: Ir\n"), None);
    }

    #[test]
    fn heap_summary_is_parsed() {
        let text = "==1==   total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated";
        assert_eq!(allocations_in(text), Some(1234));
        assert_eq!(allocations_in("==1== nothing"), None);
    }
}
