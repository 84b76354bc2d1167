//! Starts a new server for each window, so that its memory and caches belong to that window alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use super::driver::Driver;
use super::program::Program;
use super::server::{Addresses, Server, threads};
use crate::load::{Purpose, Strategy, Window, WindowMeasurement, Work};
use crate::record::{BareWire, LaneRule};
use crate::stack::{OURS, SOCKET, Stack};
use crate::study::{Execute, ExecuteError};

/// Starts a server for each window, drives it once, and stops it.
#[derive(Debug)]
pub struct FreshExecutor {
    programs: BTreeMap<String, Program>,
    cpus: CpuAssignment,
    interrupt: Interrupt,
    /// Certificates, created on first use.
    certificates: Option<TempDir>,
}

impl FreshExecutor {
    /// Creates an executor for these stacks, ours among them.
    pub fn new(programs: BTreeMap<String, Program>, cpus: CpuAssignment, interrupt: Interrupt) -> Self {
        Self { programs, cpus, interrupt, certificates: None }
    }

    /// Returns whether the stack's server starts with a certificate.
    pub fn serves_tls(&mut self, stack: &Stack) -> bool {
        self.start(stack, true).is_ok()
    }

    /// Returns the stack's program. The bare echo is part of ours.
    fn program(&self, stack: &Stack) -> Result<&Program, String> {
        let name = if stack.name() == SOCKET { OURS } else { stack.name() };
        self.programs.get(name).ok_or_else(|| format!("no program of the stack {stack}"))
    }

    fn start(&mut self, stack: &Stack, tls: bool) -> Result<Server, String> {
        let mut flags: Vec<OsString> = Vec::new();
        if stack.name() == SOCKET {
            flags.push("--bare-echo".into());
        } else {
            flags.extend(threads(&self.cpus));
        }
        if tls {
            let [certificate, key] = ["server.pem", "server.key"].map(|name| self.certificate(name));
            flags.extend(["--cert".into(), certificate?.into(), "--key".into(), key?.into()]);
        }
        let program = self.program(stack)?;
        let cpus = self.cpus.server_cpus.as_ref();
        Server::start(program, stack, Addresses::Tcp, &flags, cpus)
    }

    /// Returns the path of a file created by `thalweg certs`.
    fn certificate(&mut self, name: &str) -> Result<PathBuf, String> {
        if self.certificates.is_none() {
            let scratch = tempfile::tempdir()
                .map_err(|error| format!("failed to create a folder for certificates: {error}"))?;
            let mut command = Command::new(&self.program(&Stack::ours())?.path);
            let made = command.arg("certs").arg("--out").arg(scratch.path()).output();
            let made = made.map_err(|error| format!("failed to create certificates: {error}"))?;
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr);
                return Err(format!("failed to create certificates: {}", why.trim_end()));
            }
            self.certificates = Some(scratch);
        }
        let folder = self.certificates.as_ref().map(|scratch| scratch.path().join(name));
        folder.ok_or_else(|| "missing certificates".to_owned())
    }

    fn driver(&mut self, window: &Window, server: &Server) -> Result<Driver, String> {
        let Work::Call(_) = window.point.work else {
            return Err("only calls can have a server of their own".to_owned());
        };
        let pair = window.calling_pair().map_err(|error| error.to_string())?;
        let bare = window.is_bare().then(|| match pair.server.name() {
            SOCKET => BareWire::Echo,
            _ => BareWire::Grpc,
        });
        let client = if bare.is_some() { Stack::ours() } else { pair.client };
        let authority = if window.point.tls { Some(self.certificate("ca.pem")?) } else { None };
        let program = self.program(&client)?;
        let point = window.point.clone();
        Ok(Driver {
            variant: program.client_variant(&client).map(str::to_owned),
            lanes: window.strategy.map_or(LaneRule::Fixed, Strategy::rule),
            threads: self.cpus.client_threads.filter(|_| bare.is_none()),
            server_pid: Some(server.pid()),
            bare,
            authority,
            ..Driver::new(program, server.tcp().0, point, &self.cpus, &self.interrupt)
        })
    }
}

impl Execute for FreshExecutor {
    type Window = Window;
    type Measurement = WindowMeasurement;

    fn measure(&mut self, window: &Window) -> Result<WindowMeasurement, ExecuteError> {
        if self.interrupt.is_requested() {
            return Err(ExecuteError::Interrupted);
        }
        if window.purpose != Purpose::Figures {
            return Err(ExecuteError::Window("a server of its own supports figures only".to_owned()));
        }
        let pair = window.calling_pair()?;
        let mut server = self.start(&pair.server, window.point.tls).map_err(ExecuteError::Window)?;
        let found = self.driver(window, &server).map_err(ExecuteError::Window)?.run();
        match (found, server.exit_reason()) {
            (Ok(measured), None) => Ok(WindowMeasurement::Figures(Box::new(measured))),
            (Ok(_), Some(why)) => Err(ExecuteError::Window(why)),
            (Err(ExecuteError::Window(reason)), Some(why)) => {
                Err(ExecuteError::Window(format!("{reason}; {why}")))
            }
            (Err(error), _) => Err(error),
        }
    }
}
