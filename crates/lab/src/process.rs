//! Measures windows with processes: a `serve` of each stack for the whole study, and a `load` for each window.
//!
//! Ours and theirs are started alike, kept on the same processors, and looked at from outside alike.

mod driver;
mod echo;
mod fresh;
mod hop;
mod program;
mod server;
mod system_calls;
mod target;

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use crate::load::{Found, Label, Measured, Purpose, Strategy, SystemCalls, Window, Wire, Work};
use crate::record::{CallType, LaneRule};
use crate::socket;
use crate::stack::{Pair, Stack};
use crate::study::{Execute, ExecuteError};
use driver::Driver;
use hop::Hop;
use server::Server;

pub use driver::OwnFiles;
pub(crate) use echo::{EchoProcesses, EchoRun, Network};
pub use fresh::FreshExecutor;
pub use program::Program;
pub use target::TargetExecutor;

/// Runs one server of each stack, and drives one of them at a time, on processors apart where there are two or more.
#[derive(Debug)]
pub struct ProcessExecutor {
    programs: BTreeMap<String, Program>,
    servers: BTreeMap<ServerKey, ServerState>,
    /// Networks to the servers, by what they add to a round trip.
    hops: BTreeMap<(ServerKey, Duration), Hop>,
    interrupt: Interrupt,
    cpus: CpuAssignment,
}

/// Which server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServerKey {
    stack: Stack,
    /// Another one of the same, for the noise floor.
    is_twin: bool,
}

/// What is known of a server.
#[derive(Debug)]
enum ServerState {
    Serving {
        server: Server,
        restarted: bool,
    },
    /// It ended more than once. Why the last time.
    Gone(String),
}

/// Why a server cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the server `{program} serve`: {reason}")]
pub struct StartError {
    program: String,
    reason: String,
}

impl ProcessExecutor {
    /// For stacks of these names. Nothing is started yet.
    pub fn new(programs: BTreeMap<String, Program>, cpus: CpuAssignment, interrupt: Interrupt) -> Self {
        Self { programs, servers: BTreeMap::new(), hops: BTreeMap::new(), interrupt, cpus }
    }

    /// Starts the stack's server, on TCP and on a Unix domain socket, and waits until it listens on both. It serves
    /// until the executor is dropped; an idle server costs nothing.
    pub fn serve(&mut self, stack: &Stack) -> Result<(), StartError> {
        self.start(&ServerKey { stack: stack.clone(), is_twin: false }, false)
    }

    fn program(&self, stack: &Stack) -> Result<&Program, String> {
        self.programs.get(stack.name()).ok_or_else(|| format!("there is no program of the stack {stack}"))
    }

    fn start(&mut self, key: &ServerKey, restarted: bool) -> Result<(), StartError> {
        let start_error = |program: String| move |reason: String| StartError { program, reason };
        let program = self.program(&key.stack).map_err(start_error(key.stack.to_string()))?;
        let variant = program.server_variant(&key.stack);
        let CpuAssignment { server_threads, server_cpus, .. } = &self.cpus;
        let server = Server::start(program, variant, *server_threads, server_cpus.as_ref())
            .map_err(start_error(program.path.display().to_string()))?;
        self.servers.insert(key.clone(), ServerState::Serving { server, restarted });
        Ok(())
    }

    /// The server that this window drives. One that has ended is started again, once; ours may not end.
    fn server(&mut self, key: &ServerKey) -> Result<&mut Server, ExecuteError> {
        let ended = match self.servers.get_mut(key) {
            None => Some((None, false)),
            Some(ServerState::Gone(why)) => return Err(ExecuteError::Window(why.clone())),
            Some(ServerState::Serving { server, restarted }) => {
                server.ended().map(|why| (Some(why), *restarted))
            }
        };
        if let Some((why, restarted)) = ended {
            let failed = match why {
                Some(why) if key.stack.is_ours() => return Err(ExecuteError::Study(why)),
                Some(why) if restarted => Err(format!("{}, and not for the first time", why.trim_end())),
                why => self.start(key, why.is_some()).map_err(|error| error.to_string()),
            };
            if let Err(why) = failed {
                self.servers.insert(key.clone(), ServerState::Gone(why.clone()));
                return Err(ExecuteError::Window(why));
            }
        }
        match self.servers.get_mut(key) {
            Some(ServerState::Serving { server, .. }) => Ok(server),
            Some(ServerState::Gone(why)) => Err(ExecuteError::Window(why.clone())),
            None => Err(ExecuteError::Window(format!("there is no server of {}", key.stack))),
        }
    }

    /// What drives the pair's server with the pair's client.
    fn driver(&mut self, window: &Window, call: CallType, pair: &Pair) -> Result<Driver, ExecuteError> {
        if self.interrupt.is_asked() {
            return Err(ExecuteError::Interrupted);
        }
        let key = server_key(window, pair);
        let server = self.server(&key)?;
        let (server_pid, target) = (server.pid(), server.target(window.point.transport).to_owned());
        let hop = self.hop(window, &key, &target)?;
        let program = self.program(&pair.client).map_err(ExecuteError::Window)?;
        Ok(Driver {
            program: program.clone(),
            variant: program.client_variant(&pair.client).map(str::to_owned),
            call,
            point: window.point.clone(),
            target,
            hop,
            server_pid: Some(server_pid),
            method: None,
            echo: None,
            bare: None,
            authority: None,
            lanes: window.strategy.map_or(LaneRule::Fixed, Strategy::rule),
            threads: self.client_threads(window),
            cpus: self.cpus.client_cpus.clone(),
            server_cpus: self.cpus.server_cpus.clone(),
            interrupt: self.interrupt.clone(),
        })
    }

    /// What the window's driver talks through, if it is not to talk to the server directly.
    fn hop(&mut self, window: &Window, key: &ServerKey, target: &str) -> Result<Option<Hop>, ExecuteError> {
        let round_trip = window.point.round_trip;
        if round_trip.is_zero() && window.purpose != Purpose::Wire {
            return Ok(None);
        }
        let hop_key = (key.clone(), round_trip);
        // A server that was started again listens elsewhere.
        if let Some(hop) = self.hops.get(&hop_key).filter(|hop| hop.leads_to(target)) {
            return Ok(Some(hop.clone()));
        }
        let hop = Hop::start(target, round_trip, None, &self.cpus).map_err(ExecuteError::Window)?;
        self.hops.insert(hop_key, hop.clone());
        Ok(Some(hop))
    }

    /// Where clients' ways to come by connections are compared, each has a thread for each of its processors.
    fn client_threads(&self, window: &Window) -> Option<u32> {
        let CpuAssignment { client_threads, client_cpus, .. } = &self.cpus;
        let processors = || u32::try_from(client_cpus.as_ref()?.as_slice().len()).ok();
        client_threads.or_else(|| window.strategy.and_then(|_| processors()))
    }

    /// Nothing counts that was found of a server which ended meanwhile. The end of ours ends the study, too.
    fn judged<T>(&mut self, key: &ServerKey, found: Result<T, ExecuteError>) -> Result<T, ExecuteError> {
        let Some(ServerState::Serving { server, .. }) = self.servers.get_mut(key) else { return found };
        match found {
            Err(ExecuteError::Interrupted) => found,
            _ if !server.has_ended() => found,
            _ if key.stack.is_ours() => server.ended().map_or(found, |why| Err(ExecuteError::Study(why))),
            Err(ExecuteError::Window(reason)) => {
                Err(ExecuteError::Window(format!("{reason}; the server is gone")))
            }
            _ => Err(ExecuteError::Window("the server ended within the window".to_owned())),
        }
    }
}

fn server_key(window: &Window, pair: &Pair) -> ServerKey {
    ServerKey { stack: pair.server.clone(), is_twin: window.purpose == Purpose::NoiseFloor(Label::B) }
}

impl Execute for ProcessExecutor {
    type Window = Window;
    type Found = Found;

    fn measure(&mut self, window: &Window) -> Result<Found, ExecuteError> {
        match window.purpose {
            Purpose::Figures | Purpose::NoiseFloor(_) => {
                self.run(window).map(|measured| Found::Figures(Box::new(measured)))
            }
            Purpose::SystemCalls => self.count_system_calls(window).map(Found::SystemCalls),
            Purpose::Wire => self.watch_wire(window).map(|wire| Found::Wire(Box::new(wire))),
        }
    }
}

impl ProcessExecutor {
    fn run(&mut self, window: &Window) -> Result<Measured, ExecuteError> {
        if self.interrupt.is_asked() {
            return Err(ExecuteError::Interrupted);
        }
        match window.point.work {
            Work::Call(call) => {
                let pair = window.callers()?;
                let driven = self.driver(window, call, &pair)?.run();
                self.judged(&server_key(window, &pair), driven)
            }
            Work::Socket(pattern) => {
                let CpuAssignment { client_cpus, server_cpus, .. } = &self.cpus;
                socket::measure(&window.point, pattern, client_cpus.as_ref(), server_cpus.as_ref())
                    .map(|load| Measured { load, usage: None })
                    .map_err(|error| ExecuteError::Window(format!("the bare socket: {error}")))
            }
        }
    }

    fn count_system_calls(&mut self, window: &Window) -> Result<SystemCalls, ExecuteError> {
        let Work::Call(call) = window.point.work else {
            return Err(ExecuteError::Window("system calls of a bare socket are not counted".to_owned()));
        };
        let pair = window.callers()?;
        let counted = system_calls::count(&self.driver(window, call, &pair)?);
        self.judged(&server_key(window, &pair), counted)
    }

    fn watch_wire(&mut self, window: &Window) -> Result<Wire, ExecuteError> {
        let Work::Call(call) = window.point.work else {
            return Err(ExecuteError::Window("the wire of a bare socket is not watched".to_owned()));
        };
        let pair = window.callers()?;
        let watched = self.driver(window, call, &pair)?.watch_wire();
        self.judged(&server_key(window, &pair), watched)
    }
}

#[cfg(test)]
mod tests;
