//! The Python package, grpcio and grpclib: the same program on each, with the stubs that grpcio-tools generates.
//! Measures both ends of one stack, and each end of ours with the other one of grpcio.

use std::path::PathBuf;

use super::pair::{CLIENT, SERVER};
use super::table::{Table, grouped, three_digits};
use super::turns::{alternating, column, fixed, ratio};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::python::{Build, install, package, wheel};
use crate::server::Server;
use crate::test::rust;
use crate::{files, tools, workspace};

const OURS: &str = "thalweg";
const GRPCIO: &str = "grpcio";
const GRPCLIB: &str = "grpclib";
/// Number of rounds. `THALWEG_PYTHON_ROUNDS` overrides it, to try the benchmark.
const ROUNDS: usize = 5;
/// Length of a window, in seconds.
const WINDOW_S: &str = "1.5";
/// The load that both kinds of servers are measured with: a fast client, so that the server is the limit.
const SERVER_LOAD: &str = "-c 64 --connections 4 -z 1500ms --warmup 300ms";

/// A row: its name, the client's load, the kind of the servers, and the goal, our rate ÷ grpcio's.
struct Row {
    name: &'static str,
    load: &'static str,
    server: &'static str,
    goal: Option<f64>,
    /// Whether grpclib, which has no blocking interface, makes such calls.
    has_grpclib: bool,
}

const fn row(
    name: &'static str,
    load: &'static str,
    server: &'static str,
    goal: Option<f64>,
    has_grpclib: bool,
) -> Row {
    Row { name, load, server, goal, has_grpclib }
}

const ROWS: &[Row] = &[
    row("asyncio, one call at a time", "aio-1", "aio", Some(3.5), true),
    row("asyncio, 100 calls in flight", "aio-100", "aio", Some(8.0), true),
    row("blocking, one thread", "threads-1", "threads", Some(2.5), false),
    row("blocking, 16 threads", "threads-16", "threads", Some(8.0), false),
    row("messages of 100 B sent on a stream", "aio-send", "aio", Some(5.0), true),
    row("messages of 100 B received from a stream", "aio-receive", "aio", Some(5.0), true),
    row("calls with 1 MB each way", "aio-large", "aio", Some(1.2), true),
];

/// Servers: the kind, the name of the row, and the goal.
const SERVERS: &[(&str, &str, f64)] = &[("aio", "asyncio server", 10.0), ("threads", "threaded server", 6.0)];

/// Figures of a process that does nothing: the load, the name of the row, and the unit.
const RESTING: &[(&str, &str)] = &[
    ("import", "import, ms"),
    ("memory", "memory with one channel, MB"),
    ("idle", "CPU time of an idle channel, ms per second"),
];

pub(super) fn run(_: &[BuiltPeer]) -> Result<Vec<Table>> {
    let programs = Programs::prepare()?;
    let rounds = rounds()?;
    let mut ends = Vec::new();
    for row in ROWS {
        ends.push(programs.both_ends(row, rounds)?);
    }
    let mut single = Vec::new();
    for row in ROWS {
        single.push(programs.client_alone(row, rounds)?);
    }
    for server in SERVERS {
        single.push(programs.server_alone(server, rounds)?);
    }
    let mut resting = Vec::new();
    for row in RESTING {
        resting.push(programs.resting(row, rounds)?);
    }
    let of = format!(
        "medians of {rounds} interleaved rounds, and the ratio's range; client on core 0, server on core 1"
    );
    let both = format!("Calls or messages per second from Python to Python, both ends on one stack; {of}:");
    let alone = format!(
        "Calls or messages per second with one end on our package or on grpcio, and the other one the same for both: \
         for clients the example `helloworld-server`, in Rust, or for streams a server on our package; for servers \
         `thalweg load` on 4 connections with 64 calls in flight; {of}:"
    );
    Ok(vec![
        Table::new(both, ["work", OURS, GRPCIO, GRPCLIB, "ours ÷ grpcio's"], ends),
        Table::new(alone, ["end and work", OURS, GRPCIO, "ours ÷ grpcio's", "goal"], single),
        Table::new(
            format!("Processes at rest; medians of {rounds} rounds:"),
            ["", OURS, GRPCIO, GRPCLIB],
            resting,
        ),
    ])
}

fn rounds() -> Result<usize> {
    let Ok(text) = std::env::var("THALWEG_PYTHON_ROUNDS") else { return Ok(ROUNDS) };
    match text.parse() {
        Ok(rounds @ 1..) => Ok(rounds),
        _ => Err(misuse!("THALWEG_PYTHON_ROUNDS is `{text}`; set it to a number of rounds from 1")),
    }
}

/// The programs of `python/bench`, and the environment that they run in.
struct Programs {
    python: PathBuf,
    protos: PathBuf,
    /// The command, which loads servers.
    thalweg: PathBuf,
    /// A greeter in Rust, which is faster than all clients.
    greeter: PathBuf,
}

impl Programs {
    fn prepare() -> Result<Self> {
        let python = tools::python_programs()?;
        install(&python, &wheel(Build::Release)?)?;
        let protos = files::create_empty(workspace::output().join("python-protos"))?;
        let source = package().join("tests/protos");
        let compile = Job::new(&python).words("-m grpc_tools.protoc helloworld.proto --proto_path");
        let compile =
            compile.arg(&source).arg("--python_out").arg(&protos).arg("--grpc_python_out").arg(&protos);
        compile.run()?;
        let greeter = rust::release_program("thalweg-examples", "helloworld-server")?;
        Ok(Self { python, protos, thalweg: rust::release_command()?, greeter })
    }

    fn program(&self, name: &str, stack: &str, core: &str) -> Job {
        let job = Job::new(&self.python).arg(package().join("bench").join(name)).under(core);
        job.env("THALWEG_BENCH_STACK", stack).env("THALWEG_BENCH_PROTOS", &self.protos)
    }

    fn serve(&self, stack: &str, kind: &str) -> Result<Server> {
        Server::start(|port| self.program("server.py", stack, SERVER).arg(kind).arg(port.to_string()))
    }

    /// Runs a client once and returns its figure.
    fn figure(&self, stack: &str, load: &str, address: &str) -> Result<f64> {
        let job = self.program("client.py", stack, CLIENT).arg(load).arg(address).arg(WINDOW_S);
        job.text()?.trim().parse().map_err(|_| failed!("`{job}` printed no figure"))
    }

    fn both_ends(&self, row: &Row, rounds: usize) -> Result<Vec<String>> {
        let stacks: &[&str] = if row.has_grpclib { &[OURS, GRPCIO, GRPCLIB] } else { &[OURS, GRPCIO] };
        let servers = stacks.iter().map(|stack| Ok((*stack, self.serve(stack, row.server)?)));
        let servers = servers.collect::<Result<Vec<_>>>()?;
        let measured =
            alternating(rounds, &servers, |(stack, server)| self.figure(stack, row.load, &server.address()))?;
        let mut cells = vec![row.name.to_owned()];
        cells.extend((0..stacks.len()).map(|stack| grouped(column(&measured, stack).median)));
        cells.resize(4, "–".to_owned());
        cells.push(ratio(&measured, 0, 1).show(fixed(2)));
        Ok(cells)
    }

    /// Our client and grpcio's with the same server.
    fn client_alone(&self, row: &Row, rounds: usize) -> Result<Vec<String>> {
        let is_stream = row.load == "aio-send" || row.load == "aio-receive";
        let greeter = |port| Job::new(&self.greeter).arg(format!("127.0.0.1:{port}")).under(SERVER);
        let server = if is_stream { self.serve(OURS, row.server)? } else { Server::start(greeter)? };
        let measured =
            alternating(rounds, &[OURS, GRPCIO], |stack| self.figure(stack, row.load, &server.address()))?;
        Ok(end_row(&format!("client: {}", row.name), &measured, row.goal))
    }

    /// Our server and grpcio's with the same client.
    fn server_alone(&self, (kind, name, goal): &(&str, &str, f64), rounds: usize) -> Result<Vec<String>> {
        let servers = [self.serve(OURS, kind)?, self.serve(GRPCIO, kind)?];
        let measured = alternating(rounds, &servers, |server| {
            let load = format!("load {} --call helloworld.Greeter/SayHello --proto", server.address());
            let job =
                Job::new(&self.thalweg).words(&load).arg(package().join("tests/protos/helloworld.proto"));
            let job =
                job.arg("-d").arg(r#"{"name": "Ada"}"#).words(SERVER_LOAD).words("-O json").under(CLIENT);
            job.json()?["rate_per_s"].as_f64().ok_or_else(|| failed!("`{job}` reported no rate"))
        })?;
        Ok(end_row(name, &measured, Some(*goal)))
    }

    fn resting(&self, (load, name): &(&str, &str), rounds: usize) -> Result<Vec<String>> {
        let stacks = [OURS, GRPCIO, GRPCLIB];
        let servers = stacks.map(|stack| self.serve(stack, "aio").map(|server| (stack, server)));
        let servers = servers.into_iter().collect::<Result<Vec<_>>>()?;
        let measured =
            alternating(rounds, &servers, |(stack, server)| self.figure(stack, load, &server.address()))?;
        let medians = (0..stacks.len()).map(|stack| three_digits(column(&measured, stack).median));
        Ok([(*name).to_owned()].into_iter().chain(medians).collect())
    }
}

/// A row: the medians of both stacks, the ratio with its range, and the goal.
fn end_row(name: &str, measured: &[Vec<f64>], goal: Option<f64>) -> Vec<String> {
    let [ours, theirs] = [0, 1].map(|stack| grouped(column(measured, stack).median));
    let goal = goal.map_or_else(|| "–".to_owned(), |goal| format!("{goal:.1}"));
    vec![name.to_owned(), ours, theirs, ratio(measured, 0, 1).show(fixed(2)), goal]
}
