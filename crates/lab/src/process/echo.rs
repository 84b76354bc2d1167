//! Measures servers that do the same work over several protocols, each driven by our client.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::size::ByteSize;

use super::driver::{Driver, Echo, OwnFiles};
use super::hop::{Hops, Network};
use super::program::Program;
use super::server::{Addresses, Server};
use super::servers::{ServerKey, Servers};
use crate::echo::{EchoWork, Protocol};
use crate::load::{MeasuredLoad, Point, Transport, Work};
use crate::record::{CallType, LaneRule};
use crate::stack::{OURS, Stack, VIEWS};
use crate::study::ExecuteError;

/// Runs one server of each stack and drives one at a time, on separate processors if there are two or more.
#[derive(Debug)]
pub struct EchoExecutor {
    programs: BTreeMap<String, Program>,
    servers: Servers,
    hops: Hops,
    /// User-supplied messages, read by our server and our client.
    own: Option<OwnFiles>,
    cpus: CpuAssignment,
    interrupt: Interrupt,
}

/// A run of our client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoRun {
    pub(crate) work: EchoWork,
    pub(crate) in_flight: u32,
    /// Whether each call uses a new connection.
    pub(crate) new_connection: bool,
    pub(crate) warmup: Duration,
    /// Expected duration.
    pub(crate) duration: Duration,
    /// Number of calls that ends the run, instead of the duration.
    pub(crate) calls: Option<u64>,
    pub(crate) network: Network,
}

impl EchoExecutor {
    /// Creates an executor for these stacks, ours among them, and user-supplied messages. It starts nothing yet.
    pub fn new(
        programs: BTreeMap<String, Program>,
        own: Option<OwnFiles>,
        cpus: CpuAssignment,
        interrupt: Interrupt,
    ) -> Self {
        Self { programs, servers: Servers::default(), hops: Hops::default(), own, cpus, interrupt }
    }

    /// Drives the stack's server. The server is kept for later runs, or with `restart` started for this run and stopped
    /// after it. `with_json`: whether it serves JSON at all.
    pub(crate) fn drive(
        &mut self,
        stack: &Stack,
        with_json: bool,
        restart: bool,
        run: EchoRun,
    ) -> Result<MeasuredLoad, ExecuteError> {
        if self.interrupt.is_requested() {
            return Err(ExecuteError::Interrupted);
        }
        let start = || start(&self.programs, self.own.as_ref(), &self.cpus, stack, with_json);
        if restart {
            let server = start().map_err(|why| failure(stack, why))?;
            return self.driver(server_address(stack, &server, run.work.protocol)?, run)?.run();
        }
        let key = ServerKey { stack: stack.clone(), is_twin: false };
        let server = self.servers.get_or_start(&key, start)?;
        let reached = server_address(stack, server, run.work.protocol)?;
        let found = self.driver(reached, run)?.run();
        self.servers.check_result(&key, found)
    }

    fn driver(&mut self, (server, target): (u32, String), run: EchoRun) -> Result<Driver, ExecuteError> {
        let EchoRun { work, in_flight, new_connection, warmup, duration, calls, network } = run;
        let ours = self.programs.get(OURS);
        let ours = ours.ok_or_else(|| ExecuteError::Study("missing client".to_owned()))?.clone();
        let connections = if work.protocol.is_http1() { in_flight } else { 1 };
        let unary = Work::Call(CallType::Unary);
        let point = Point {
            round_trip: network.round_trip,
            warmup,
            duration,
            ..Point::new(unary, ByteSize(0), Transport::Tcp, in_flight, connections)
        };
        let has_hop = network != Network::default();
        let hop = has_hop.then(|| self.hops.to(&target, network, &self.cpus)).transpose()?;
        Ok(Driver {
            lanes: if new_connection { LaneRule::PerCall } else { LaneRule::Fixed },
            hop,
            server_pid: Some(server),
            echo: Some(Echo { work, own: self.own.clone(), calls }),
            ..Driver::new(&ours, &target, point, &self.cpus, &self.interrupt)
        })
    }
}

/// Starts the stack's server; `own`: user-supplied messages for our server.
fn start(
    programs: &BTreeMap<String, Program>,
    own: Option<&OwnFiles>,
    cpus: &CpuAssignment,
    stack: &Stack,
    with_json: bool,
) -> Result<Server, String> {
    let program = Program::of(programs, stack)?;
    let own = own.filter(|_| stack.is_ours()).map(OwnFiles::of_type);
    let mut flags: Vec<OsString> = own.into_iter().flatten().map(OsStr::to_owned).collect();
    if stack.is_ours() && stack.variant() == Some(VIEWS) {
        flags.push("--views".into());
    }
    let addresses = if with_json { Addresses::TcpAndJson } else { Addresses::Tcp };
    Server::start(program, stack, addresses, &flags, cpus.server_cpus.as_ref())
}

/// Returns the server's process and its address for the protocol.
fn server_address(stack: &Stack, server: &Server, protocol: Protocol) -> Result<(u32, String), ExecuteError> {
    let target = match (protocol, server.tcp()) {
        (Protocol::Grpc, (grpc, _)) => grpc,
        (_, (_, Some(json))) => json,
        (_, (_, None)) => return Err(ExecuteError::Window(format!("{stack} does not serve {protocol}"))),
    };
    Ok((server.pid(), target.to_owned()))
}

/// Maps a failure to an error. If our own server fails, the study ends.
fn failure(stack: &Stack, why: String) -> ExecuteError {
    if stack.is_ours() { ExecuteError::Study(why) } else { ExecuteError::Window(why) }
}
