//! Servers of one work by several protocols, each driven by our own client.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU64;
use std::time::Duration;

use thalweg_link::Rate;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::size::ByteSize;

use super::driver::{Driver, Echo, OwnFiles};
use super::hop::Hop;
use super::program::Program;
use super::server::{Addresses, Server};
use super::servers::{ServerKey, Servers};
use crate::echo::{EchoWork, Protocol};
use crate::load::{Measured, Point, Transport, Work};
use crate::record::{CallType, LaneRule};
use crate::stack::{OURS, Stack, VIEWS};
use crate::study::ExecuteError;

/// Runs one server of each stack, and drives one of them at a time, on processors apart where there are two or more.
#[derive(Debug)]
pub(crate) struct EchoProcesses {
    programs: BTreeMap<String, Program>,
    servers: Servers,
    hops: Vec<(Network, Hop)>,
    /// One's own messages, which our server and our client read.
    own: Option<OwnFiles>,
    cpus: CpuAssignment,
    interrupt: Interrupt,
}

/// A run of our client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoRun {
    pub(crate) work: EchoWork,
    pub(crate) in_flight: u32,
    /// Each call has a connection of its own.
    pub(crate) afresh: bool,
    pub(crate) warmup: Duration,
    /// How long it drives, as far as one knows before.
    pub(crate) duration: Duration,
    /// So many calls end it, and not the time.
    pub(crate) calls: Option<u64>,
    pub(crate) network: Network,
}

/// What is between both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Network {
    /// Added to a round trip.
    pub(crate) round_trip: Duration,
    /// Bits per second that pass.
    pub(crate) rate: Option<NonZeroU64>,
}

impl EchoProcesses {
    /// For stacks of these names, ours among them. Nothing is started yet.
    pub(crate) fn new(
        programs: BTreeMap<String, Program>,
        own: Option<OwnFiles>,
        cpus: CpuAssignment,
        interrupt: Interrupt,
    ) -> Self {
        Self { programs, servers: Servers::default(), hops: Vec::new(), own, cpus, interrupt }
    }

    /// Drives the stack's server, which serves as long as this is there; `with_json`: it serves JSON at all.
    pub(crate) fn drive(
        &mut self,
        stack: &Stack,
        with_json: bool,
        run: EchoRun,
    ) -> Result<Measured, ExecuteError> {
        if self.interrupt.is_asked() {
            return Err(ExecuteError::Interrupted);
        }
        let key = ServerKey { stack: stack.clone(), is_twin: false };
        let start = || start(&self.programs, self.own.as_ref(), &self.cpus, stack, with_json);
        let server = self.servers.serving(&key, start)?;
        let reached = reached(stack, server, run.work.protocol)?;
        let found = self.driver(reached, run)?.run();
        self.servers.judged(&key, found)
    }

    /// The same with a server that is started for this run, and ended behind it.
    pub(crate) fn drive_anew(
        &mut self,
        stack: &Stack,
        with_json: bool,
        run: EchoRun,
    ) -> Result<Measured, ExecuteError> {
        if self.interrupt.is_asked() {
            return Err(ExecuteError::Interrupted);
        }
        let server = start(&self.programs, self.own.as_ref(), &self.cpus, stack, with_json);
        let server = server.map_err(|why| failure(stack, why))?;
        self.driver(reached(stack, &server, run.work.protocol)?, run)?.run()
    }

    fn driver(&mut self, (server, target): (u32, String), run: EchoRun) -> Result<Driver, ExecuteError> {
        let EchoRun { work, in_flight, afresh, warmup, duration, calls, network } = run;
        let ours = self.programs.get(OURS);
        let ours = ours.ok_or_else(|| ExecuteError::Study("there is no client".to_owned()))?.clone();
        let connections = if work.protocol.is_http1() { in_flight } else { 1 };
        let unary = Work::Call(CallType::Unary);
        let point = Point {
            round_trip: network.round_trip,
            warmup,
            duration,
            ..Point::new(unary, ByteSize(0), Transport::Tcp, in_flight, connections)
        };
        let hop = self.hop(&target, network)?;
        Ok(Driver {
            lanes: if afresh { LaneRule::PerCall } else { LaneRule::Fixed },
            hop,
            server_pid: Some(server),
            echo: Some(Echo { work, own: self.own.clone(), calls }),
            ..Driver::new(&ours, &target, point, &self.cpus, &self.interrupt)
        })
    }

    fn hop(&mut self, target: &str, network: Network) -> Result<Option<Hop>, ExecuteError> {
        if network == Network::default() {
            return Ok(None);
        }
        let known = self.hops.iter().find(|(of, hop)| *of == network && hop.leads_to(target));
        if let Some((_, hop)) = known {
            return Ok(Some(hop.clone()));
        }
        let bytes = network.rate.and_then(|bits| NonZeroU64::new(bits.get() / 8));
        let rate = bytes.map(Rate::from_bytes_per_second);
        let hop = Hop::start(target, network.round_trip, rate, &self.cpus).map_err(ExecuteError::Window)?;
        self.hops.push((network, hop.clone()));
        Ok(Some(hop))
    }
}

/// Starts the stack's server; `own`: one's own messages, which ours has.
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

/// The server's process, and where it speaks the protocol.
fn reached(stack: &Stack, server: &Server, protocol: Protocol) -> Result<(u32, String), ExecuteError> {
    let target = match (protocol, server.tcp()) {
        (Protocol::Grpc, (grpc, _)) => grpc,
        (_, (_, Some(json))) => json,
        (_, (_, None)) => return Err(ExecuteError::Window(format!("{stack} serves no {protocol}"))),
    };
    Ok((server.pid(), target.to_owned()))
}

/// The end of ours is the end of the study.
fn failure(stack: &Stack, why: String) -> ExecuteError {
    if stack.is_ours() { ExecuteError::Study(why) } else { ExecuteError::Window(why) }
}
