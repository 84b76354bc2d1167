//! Measures windows with processes: one `serve` per stack for the whole study, and one `load` per window.
//!
//! All stacks are started, pinned and observed in the same way.

mod driver;
mod echo;
mod fresh;
mod hop;
mod program;
mod query;
mod server;
mod servers;
mod system_calls;
mod target;

use std::collections::BTreeMap;

use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use crate::load::{
    AaSide, MeasuredLoad, Purpose, Strategy, SystemCalls, Window, WindowMeasurement, WireTraffic, Work,
};
use crate::record::LaneRule;
use crate::socket;
use crate::stack::{Pair, Stack};
use crate::study::{Execute, ExecuteError};
use driver::Driver;
use hop::Hops;
use server::{Addresses, Server, threads};
use servers::{ServerKey, Servers};

pub use driver::OwnFiles;
pub use echo::EchoExecutor;
pub(crate) use echo::EchoRun;
pub use fresh::FreshExecutor;
pub(crate) use hop::Network;
pub use program::Program;
pub(crate) use query::{contract_violation, query_program};
pub use target::TargetExecutor;

/// Runs one server of each stack and drives one at a time, on separate processors if there are two or more.
#[derive(Debug)]
pub struct ProcessExecutor {
    programs: BTreeMap<String, Program>,
    servers: Servers,
    hops: Hops,
    interrupt: Interrupt,
    cpus: CpuAssignment,
}

/// Error that prevented a server from starting.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl ProcessExecutor {
    /// Creates an executor for these stacks. It starts nothing yet.
    pub fn new(programs: BTreeMap<String, Program>, cpus: CpuAssignment, interrupt: Interrupt) -> Self {
        Self { programs, servers: Servers::default(), hops: Hops::default(), interrupt, cpus }
    }

    /// Starts the stack's server on TCP and on a Unix domain socket, and waits until it listens on both. It serves
    /// until the executor is dropped; an idle server costs nothing.
    pub fn serve(&mut self, stack: &Stack) -> Result<(), StartError> {
        let server = start(&self.programs, &self.cpus, stack).map_err(StartError)?;
        self.servers.insert(&ServerKey { stack: stack.clone(), is_twin: false }, server);
        Ok(())
    }

    /// Returns a driver for the pair's client and server.
    fn driver(&mut self, window: &Window, pair: &Pair) -> Result<Driver, ExecuteError> {
        if self.interrupt.is_requested() {
            return Err(ExecuteError::Interrupted);
        }
        let key = server_key(window, pair);
        let server = self.servers.get_or_start(&key, || start(&self.programs, &self.cpus, &key.stack))?;
        let (server_pid, target) = (server.pid(), server.target(window.point.transport).to_owned());
        let network = Network { round_trip: window.point.round_trip, rate: None };
        let has_hop = network != Network::default() || window.purpose == Purpose::Wire;
        let hop = has_hop.then(|| self.hops.to(&target, network, &self.cpus)).transpose()?;
        let program = Program::of(&self.programs, &pair.client).map_err(ExecuteError::Window)?;
        Ok(Driver {
            variant: program.client_variant(&pair.client).map(str::to_owned),
            hop,
            server_pid: Some(server_pid),
            lanes: window.strategy.map_or(LaneRule::Fixed, Strategy::rule),
            threads: self.client_threads(window),
            ..Driver::new(program, &target, window.point.clone(), &self.cpus, &self.interrupt)
        })
    }

    /// Sets one thread per client processor when connection strategies are compared.
    fn client_threads(&self, window: &Window) -> Option<u32> {
        let CpuAssignment { client_threads, client_cpus, .. } = &self.cpus;
        let processors = || u32::try_from(client_cpus.as_ref()?.as_slice().len()).ok();
        client_threads.or_else(|| window.strategy.and_then(|_| processors()))
    }
}

/// Starts the stack's server on TCP and on a Unix domain socket.
fn start(
    programs: &BTreeMap<String, Program>,
    cpus: &CpuAssignment,
    stack: &Stack,
) -> Result<Server, String> {
    let program = Program::of(programs, stack)?;
    Server::start(program, stack, Addresses::TcpAndUds, &threads(cpus), cpus.server_cpus.as_ref())
}

fn server_key(window: &Window, pair: &Pair) -> ServerKey {
    ServerKey { stack: pair.server.clone(), is_twin: window.purpose == Purpose::NoiseFloor(AaSide::B) }
}

impl Execute for ProcessExecutor {
    type Window = Window;
    type Measurement = WindowMeasurement;

    fn measure(&mut self, window: &Window) -> Result<WindowMeasurement, ExecuteError> {
        match window.purpose {
            Purpose::Figures | Purpose::NoiseFloor(_) => {
                self.run(window).map(|measured| WindowMeasurement::Figures(Box::new(measured)))
            }
            Purpose::SystemCalls => self.count_system_calls(window).map(WindowMeasurement::SystemCalls),
            Purpose::Wire => self.watch_wire(window).map(|wire| WindowMeasurement::Wire(Box::new(wire))),
        }
    }
}

impl ProcessExecutor {
    fn run(&mut self, window: &Window) -> Result<MeasuredLoad, ExecuteError> {
        if self.interrupt.is_requested() {
            return Err(ExecuteError::Interrupted);
        }
        match window.point.work {
            Work::Call(_) => self.driven(window, "", Driver::run),
            Work::Socket(pattern) => {
                let CpuAssignment { client_cpus, server_cpus, .. } = &self.cpus;
                socket::measure(&window.point, pattern, client_cpus.as_ref(), server_cpus.as_ref())
                    .map(|load| MeasuredLoad { load, usage: None })
                    .map_err(|error| ExecuteError::Window(format!("the bare socket: {error}")))
            }
        }
    }

    /// Applies `of` to the driver of a window of calls; fails with `why_not` for a bare socket.
    fn driven<T>(
        &mut self,
        window: &Window,
        why_not: &str,
        of: impl FnOnce(&Driver) -> Result<T, ExecuteError>,
    ) -> Result<T, ExecuteError> {
        if matches!(window.point.work, Work::Socket(_)) {
            return Err(ExecuteError::Window(why_not.to_owned()));
        }
        let pair = window.calling_pair()?;
        let found = of(&self.driver(window, &pair)?);
        self.servers.check_result(&server_key(window, &pair), found)
    }

    fn count_system_calls(&mut self, window: &Window) -> Result<SystemCalls, ExecuteError> {
        self.driven(window, "system calls of a bare socket cannot be counted", system_calls::count)
    }

    fn watch_wire(&mut self, window: &Window) -> Result<WireTraffic, ExecuteError> {
        self.driven(window, "the wire of a bare socket cannot be observed", Driver::watch_wire)
    }
}

#[cfg(test)]
mod tests;
