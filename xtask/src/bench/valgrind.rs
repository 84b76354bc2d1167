//! Counting under valgrind. A count of a whole run holds its start and its end too, so two runs of different lengths
//! are made: what the longer one has more, divided by the calls that it made more, is the cost of one call.

use crate::job::{Failure, Job, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};
use crate::tools;
use crate::workspace;

/// Calls of the two runs. Both are long enough for tables and buffers to have their size.
const CALLS: [u64; 2] = [2_000, 12_000];
/// In flight on the one connection.
const IN_FLIGHT: u32 = 64;
/// A program under valgrind is some fifty times slower.
const LIMIT_MINUTES: u64 = 5;

/// A tool of valgrind and how to read the count from what it leaves.
pub(super) struct Counter {
    pub(super) options: &'static str,
    /// The file that the tool writes, by the name that stands in `options`; without one, the log of the run is read.
    pub(super) file: &'static str,
    pub(super) read: fn(&str) -> Option<u64>,
}

/// What one empty unary call costs the server and the client of `peer`.
pub(super) struct CostPerCall {
    pub(super) server: f64,
    pub(super) client: f64,
}

impl Counter {
    pub(super) fn cost_per_call(&self, peer: &BuiltPeer, log: &Log) -> Result<CostPerCall, Failure> {
        tools::debian("valgrind nghttp2-client", &["valgrind", "h2load"], log)?;
        // h2load counts an answer as a success whatever its gRPC status: show that the method is there.
        let port = free_port()?;
        let server = Server::start(&peer.serve(port), port, log)?;
        measure(peer.load(port, "-n 100 -c 4 --warmup 0s"), log)?;
        server.stop()?;
        Ok(CostPerCall {
            server: per_call(|calls| self.server_run(peer, calls, log))?,
            client: per_call(|calls| self.client_run(peer, calls, log))?,
        })
    }

    /// The server under valgrind, h2load as the client.
    fn server_run(&self, peer: &BuiltPeer, calls: u64, log: &Log) -> Result<u64, Failure> {
        let run = Log::create("valgrind-server")?;
        let port = free_port()?;
        let server = Server::start(&peer.serve(port).under(&self.wrapper()), port, &run)?;
        h2load(port, calls, log)?;
        server.stop()?;
        self.count(&run)
    }

    /// The client under valgrind, its own server as it is.
    fn client_run(&self, peer: &BuiltPeer, calls: u64, log: &Log) -> Result<u64, Failure> {
        let run = Log::create("valgrind-client")?;
        let port = free_port()?;
        let server = Server::start(&peer.serve(port), port, log)?;
        let load = peer.load(port, &format!("-n {calls} -c {IN_FLIGHT} --connections 1 --warmup 0s"));
        load.under(&self.wrapper()).minutes(LIMIT_MINUTES).run(&run)?;
        server.stop()?;
        self.count(&run)
    }

    fn wrapper(&self) -> String {
        let file = workspace::output().join(self.file);
        // One core, as in the other measurements: runtimes that see two start threads that steal work from each other.
        format!("taskset -c 0 valgrind {}", self.options.replace("FILE", &file.to_string_lossy()))
    }

    fn count(&self, run: &Log) -> Result<u64, Failure> {
        let path =
            if self.file.is_empty() { run.path().to_owned() } else { workspace::output().join(self.file) };
        let text = std::fs::read_to_string(&path)?;
        (self.read)(&text).ok_or_else(|| {
            Failure::failed(format!(
                "{} holds no count; the run's log is {}",
                path.display(),
                run.path().display()
            ))
        })
    }
}

fn per_call(run: impl Fn(u64) -> Result<u64, Failure>) -> Result<f64, Failure> {
    let [few, many] = CALLS;
    let (least, most) = (run(few)?, run(many)?);
    Ok((most as f64 - least as f64) / (many - few) as f64)
}

/// Empty unary calls from h2load.
fn h2load(port: u16, calls: u64, log: &Log) -> Result<(), Failure> {
    // A message of no bytes: not compressed, length 0.
    let message = workspace::output().join("empty-message");
    std::fs::write(&message, [0; 5])?;
    let job = Job::new("h2load")
        .words(&format!("--requests={calls} --clients=1 --threads=1 --max-concurrent-streams={IN_FLIGHT}"))
        .words("--header=content-type:application/grpc --header=te:trailers --data")
        .arg(message)
        .arg(format!("http://127.0.0.1:{port}/grpc.testing.BenchmarkService/UnaryCall"))
        .minutes(LIMIT_MINUTES);
    let text = job.text(log)?;
    let wanted = format!("{calls} succeeded, 0 failed, 0 errored");
    if text.contains(&wanted) {
        Ok(())
    } else {
        Err(Failure::failed(format!("`{job}` did not report {wanted}")))
    }
}
